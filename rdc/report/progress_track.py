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
                # A first copy transfers while it still compares: the plan then only adds the total.
                self._advance("transfer", 0)
        elif isinstance(event, Progressed):
            self._advance(event.phase, event.done)

    def _advance(self, phase: str, done: int) -> None:
        order, at = _ORDER.get(phase), _ORDER[self._standing.phase]
        if order is None or order < at:
            return
        before = self._standing.done if order == at else 0
        total = self._total(phase)
        if total is not None:
            total = max(total, before)
            done = min(done, total)
        self._standing = Standing(phase, max(before, done), total)

    def _total(self, phase: str) -> int | None:
        """The plan's total, so that files that grow meanwhile cannot move the bar back.

        None for the comparison: its end is known only once it is reached.
        """
        if self._plan is None or phase == "compare":
            return None
        return self._plan.bytes if phase == "transfer" else self._plan.deletes
