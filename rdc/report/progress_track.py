"""ProgressTrack: the progress of a job as a value that only grows."""

from __future__ import annotations

from rdc.progress import Event, ItemChanged, PlanKnown, Progressed
from rdc.records import dataclass
from rdc.report.sizes import counted, size_text

__all__ = ["PHASES", "ProgressTrack", "PhaseProgress", "detail_text", "progress_text"]

PHASES = {
    "compare": "comparing",
    "transfer": "transferring",
    "delete": "deleting",
    "read": "reading",
    "share": "sharing",
}
"""Phases in order, with the words shown to users. A scan has only "read"."""


@dataclass(frozen=True, slots=True)
class PhaseProgress:
    """The progress at one moment."""

    phase: str
    done: int
    """Entries in phase 'delete', bytes in the others."""
    total: int | None
    """None while unknown."""


_ORDER = {phase: order for order, phase in enumerate(PHASES)}


class ProgressTrack:
    """Follows the events of one job. Phases come in order; a late event of an earlier phase is ignored.

    Files are transferred while others are still compared. The comparison is shown until it ends, if its total
    is known, because only then is the total of the transfer known.
    """

    def __init__(self) -> None:
        self._progress_by_phase = {phase: PhaseProgress(phase, 0, None) for phase in PHASES}
        self._phase = "compare"
        self._plan: PlanKnown | None = None
        self._entries = 0

    @property
    def entries_text(self) -> str:
        """`120/300 entries` of a transfer; "" while there is nothing to tell. A far destination names no
        entries without -i or -v, so that only their total is known: `300 entries`."""
        if self._phase != "transfer" or self._plan is None or not self._plan.files:
            return ""
        total = self._plan.files
        done = f"{min(self._entries, total):,}/" if self._entries else ""
        return f"{done}{counted(total, 'entry', 'entries')}"

    @property
    def phase_progress(self) -> PhaseProgress:
        return self._progress_by_phase[self._phase]

    def follow(self, event: Event) -> None:
        if isinstance(event, PlanKnown):
            if self._plan is None:
                self._plan = event
                # A first copy transfers while it still compares; the plan then only adds the total.
                self._advance("transfer", 0, None)
        elif isinstance(event, ItemChanged):
            self._entries += event.change[:1] != "*"
        elif isinstance(event, Progressed):
            self._advance(event.phase, event.done, event.total)

    def _advance(self, phase: str, done: int, total: int | None) -> None:
        if phase not in _ORDER or _ORDER[phase] < _ORDER[self._phase]:
            return
        before = self._progress_by_phase[phase]
        total = self._total(before, total)
        if total is not None:
            total = max(total, before.done)
            done = min(done, total)
        self._progress_by_phase[phase] = PhaseProgress(phase, max(before.done, done), total)
        compare = self._progress_by_phase["compare"]
        compared = compare.total is None or compare.done >= compare.total
        if self._phase != "compare" or phase in ("delete", "read", "share"):
            self._phase = phase
        elif compared and (phase == "transfer" or self._plan is not None):
            self._phase = "transfer"
            self._progress_by_phase["transfer"] = self._bounded(self._progress_by_phase["transfer"])

    def _bounded(self, phase_progress: PhaseProgress) -> PhaseProgress:
        total = self._total(phase_progress, None)
        return (
            phase_progress
            if total is None
            else PhaseProgress(phase_progress.phase, min(phase_progress.done, total), total)
        )

    def _total(self, before: PhaseProgress, announced: int | None) -> int | None:
        """The first total announced, so that growing files cannot move the bar back."""
        if before.total is not None:
            return before.total
        if before.phase in ("compare", "read", "share"):
            return announced
        if self._plan is None:
            return None
        return self._plan.bytes if before.phase == "transfer" else self._plan.deletes


def detail_text(phase_progress: PhaseProgress) -> str:
    """Done and total: `1.2 GB of 3.4 GB`, `7 of 9`."""
    text = f"{phase_progress.done:,}" if phase_progress.phase == "delete" else size_text(phase_progress.done)
    if phase_progress.total is None:
        return text
    return f"{text} of " + (
        f"{phase_progress.total:,}" if phase_progress.phase == "delete" else size_text(phase_progress.total)
    )


def progress_text(phase_progress: PhaseProgress) -> str:
    return f"{PHASES[phase_progress.phase]}: {detail_text(phase_progress)}"
