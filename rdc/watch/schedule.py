"""When a source is looked at though inotify told nothing: as a whole from time to time, or for want of it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LIMITED_SECONDS", "Schedule"]

LIMITED_SECONDS = 10
"""Between two looks at a tree of which not every directory can be watched."""

EARLY_SECONDS = 5.0
"""After a turn with errors, until the whole trees are compared again; doubled each time, up to --rescan."""


class Schedule:
    def __init__(self, clock: Callable[[], float], rescan: int) -> None:
        """`clock`: seconds that never go back. `rescan`: seconds between two comparisons; 0: never."""
        self._clock = clock
        self._rescan = rescan
        self._early = EARLY_SECONDS
        self._compare: float | None = None
        self._look: float | None = None

    @property
    def seconds(self) -> float | None:
        """Until something is due; None: nothing will be."""
        moments = [moment for moment in (self._compare, self._look) if moment is not None]
        return min(moments) - self._clock() if moments else None

    @property
    def compare_due(self) -> bool:
        """The trees are to be compared as a whole."""
        return self._compare is not None and self._compare <= self._clock()

    def look_due(self) -> bool:
        """The source is to be read as a whole; True once each time."""
        if self._look is None or self._look > self._clock():
            return False
        self._look = self._clock() + LIMITED_SECONDS
        return True

    def limited(self) -> bool:
        """Not every directory is watched, from now on. True the first time."""
        if self._look is not None:
            return False
        self._look = self._clock() + LIMITED_SECONDS
        return True

    def compared(self) -> None:
        """The trees were compared now."""
        self._compare = self._clock() + self._rescan if self._rescan else None

    def compare_now(self) -> None:
        self._compare = self._clock()

    def ended(self, *, whole: bool, errors: bool) -> None:
        """A turn: one with errors has the next comparison come early."""
        if errors:
            early = self._clock() + self._early
            self._compare = early if self._compare is None else min(self._compare, early)
            self._early = min(2 * self._early, max(EARLY_SECONDS, float(self._rescan)))
        elif whole:
            self._early = EARLY_SECONDS
