"""The times at which a source is read without an inotify event: at intervals, or where events are missing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LIMITED_SECONDS", "Schedule"]

LIMITED_SECONDS = 10
"""Seconds between two scans of a tree that is not watched completely."""

EARLY_SECONDS = 5.0
"""Seconds from a turn with errors to the next comparison of the whole trees; doubled each time, up to
--rescan."""


class Schedule:
    def __init__(self, clock: Callable[[], float], rescan: int) -> None:
        """clock: monotonic seconds. rescan: seconds between two comparisons, 0 for never."""
        self._clock = clock
        self._rescan = rescan
        self._early = EARLY_SECONDS
        self._compare: float | None = None
        self._look: float | None = None

    @property
    def seconds(self) -> float | None:
        """Seconds until something is due; None for never."""
        moments = [moment for moment in (self._compare, self._look) if moment is not None]
        return min(moments) - self._clock() if moments else None

    @property
    def compare_due(self) -> bool:
        """Whether the whole trees are due for a comparison."""
        return self._compare is not None and self._compare <= self._clock()

    def look_due(self) -> bool:
        """Whether the whole source is due for a scan; True once each time."""
        if self._look is None or self._look > self._clock():
            return False
        self._look = self._clock() + LIMITED_SECONDS
        return True

    def limited(self) -> bool:
        """Some directories are not watched from now on. True on the first call."""
        if self._look is not None:
            return False
        self._look = self._clock() + LIMITED_SECONDS
        return True

    def compared(self) -> None:
        """Record a comparison of the trees."""
        self._compare = self._clock() + self._rescan if self._rescan else None

    def compare_now(self) -> None:
        self._compare = self._clock()

    def ended(self, *, whole: bool, errors: bool) -> None:
        """Record a turn. Errors make the next comparison come early."""
        if errors:
            early = self._clock() + self._early
            self._compare = early if self._compare is None else min(self._compare, early)
            self._early = min(2 * self._early, max(EARLY_SECONDS, float(self._rescan)))
        elif whole:
            self._early = EARLY_SECONDS
