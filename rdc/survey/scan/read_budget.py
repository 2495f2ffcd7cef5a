"""ReadBudget: decides when a scan stops reading: at its time limit, at a complete sample, or on request."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rdc.model.scan import ScanOptions
    from rdc.survey.scan.found_files import Run

__all__ = ["ReadBudget"]


class ReadBudget:
    """Knows why reading ends. A request or the time limit stops the scan at once. A complete sample does not:
    files already selected are still read."""

    def __init__(self, options: ScanOptions, stopped: Callable[[], bool], clock: Callable[[], float]) -> None:
        """`stopped`: whether the caller wants to end. `clock`: seconds, starting now."""
        self._options = options
        self._asked_to_stop = stopped
        self._clock = clock
        self._deadline = None if options.seconds is None else clock() + options.seconds
        self._enough: float = float("inf")
        self.total = 0
        """Approximate bytes to be read."""
        self.reason = ""
        """As in Coverage; "" while there is no reason to stop."""

    @property
    def of_a_part(self) -> bool:
        """Whether only a part of the files may be read. Files must then come in random order."""
        return self._options.seconds is not None or self._options.sample is not None

    @property
    def over(self) -> bool:
        """Whether reading has ended, without asking again."""
        return self.reason in ("interrupted", "time")

    def expect(self, found: int) -> None:
        """Announces the bytes that were found."""
        self.total = found
        sample = self._options.sample
        if sample is not None and sample < 1:
            self._enough = sample * found
            self.total = int(self._enough)

    def stopped(self) -> bool:
        """Asks whether reading must end."""
        if not self.over:
            if self._asked_to_stop():
                self.reason = "interrupted"
            elif self._deadline is not None and self._clock() >= self._deadline:
                self.reason = "time"
        return self.over

    def wanted(self, runs: Iterable[Run]) -> Iterator[Run]:
        """The runs to read, until there is a reason to stop. The sample ends after the file that completes
        it."""
        taken = 0
        for run in runs:
            if self.stopped():
                return
            if taken and taken >= self._enough:
                self.reason = self.reason or "sample"
                return
            if self._enough != float("inf"):
                taken += run.bytes
            yield run
