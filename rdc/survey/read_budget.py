"""How much of what was found is read: until time is over, a sample is complete, or somebody asks."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rdc.model.scan import ScanOptions
    from rdc.survey.found import Run

__all__ = ["ReadBudget"]


class ReadBudget:
    """Knows why reading ends. An interruption or the end of time stops at once, a complete sample does not:
    what waits of it is read."""

    def __init__(self, options: ScanOptions, stopped: Callable[[], bool], clock: Callable[[], float]) -> None:
        """`stopped`: whether somebody wants an end; `clock`: seconds, from now on."""
        self._options = options
        self._asked_to_stop = stopped
        self._clock = clock
        self._deadline = None if options.seconds is None else clock() + options.seconds
        self._enough: float = float("inf")
        self.total = 0
        """Bytes that are to be read, about."""
        self.reason = ""
        """As Coverage has it; "" while there is none."""

    @property
    def of_a_part(self) -> bool:
        """Whether a part of the files may be read, which are then to come in random order."""
        return self._options.seconds is not None or self._options.sample is not None

    @property
    def over(self) -> bool:
        """Whether nothing more is read, by what is known."""
        return self.reason in ("interrupted", "time")

    def expect(self, found: int) -> None:
        """So many bytes were found."""
        self.total = found
        sample = self._options.sample
        if sample is not None and sample < 1:
            self._enough = sample * found
            self.total = int(self._enough)

    def stopped(self) -> bool:
        """Asks: whether nothing more is read."""
        if not self.over:
            if self._asked_to_stop():
                self.reason = "interrupted"
            elif self._deadline is not None and self._clock() >= self._deadline:
                self.reason = "time"
        return self.over

    def wanted(self, runs: Iterable[Run]) -> Iterator[Run]:
        """Until there is a reason to stop. The sample ends behind the file that completes it."""
        taken = 0
        for run in runs:
            if self.stopped():
                return
            if taken and taken >= self._enough:
                self.reason = self.reason or "sample"
                return
            if self._enough != float("inf"):
                taken += sum(run.directory.sizes[run.start : run.stop])
            yield run
