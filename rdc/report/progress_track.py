"""How far a job is, as a value that only grows: the plan gives the total, events can only add to it."""

from __future__ import annotations

from dataclasses import dataclass

from rdc.progress import Event, PlanKnown, Progressed

__all__ = ["ProgressTrack", "Standing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """One moment of a job."""

    phase: str
    done: int
    """Bytes in phase 'transfer', entries in the others."""
    total: int | None
    """None while unknown."""


_ORDER = {"compare": 0, "transfer": 1, "delete": 2}


class ProgressTrack:
    """Follows the events of one job. Phases come in order, and a late event of an earlier phase is
    dropped."""

    def __init__(self) -> None:
        self._standing = Standing("compare", 0, None)
        self._plan: PlanKnown | None = None

    @property
    def standing(self) -> Standing:
        return self._standing

    def follow(self, event: Event) -> None:
        if isinstance(event, PlanKnown):
            if self._plan is None:
                self._plan = event
                self._standing = Standing("transfer", 0, event.bytes)
        elif isinstance(event, Progressed):
            self._progressed(event)

    def _progressed(self, event: Progressed) -> None:
        order, at = _ORDER.get(event.phase), _ORDER[self._standing.phase]
        if order is None or order < at:
            return
        total = self._total(event)
        before = self._standing.done if order == at else 0
        done = max(before, event.done if total is None else min(event.done, total))
        self._standing = Standing(event.phase, done, total)

    def _total(self, event: Progressed) -> int | None:
        """The plan's total, so that files that grow meanwhile cannot move the bar back.

        None for the comparison: its end is known only once it is reached.
        """
        if self._plan is None or event.phase == "compare":
            return None
        return self._plan.bytes if event.phase == "transfer" else self._plan.deletes
