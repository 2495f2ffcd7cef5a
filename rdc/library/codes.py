"""CodeReporter: passes events on and keeps the exit code of a job whose search does not count problems."""

from __future__ import annotations

from rdc.errors import ExitCode, worse
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Event, Reporter

__all__ = ["CodeReporter"]


class CodeReporter:
    """A Reporter. `code` is the exit code so far."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self.code = ExitCode.OK

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self.code = worse(self.code, event.code)
        self._reporter(event)
