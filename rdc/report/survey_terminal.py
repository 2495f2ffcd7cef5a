"""What a survey tells people while it runs: trouble as it comes, and a bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rdc.errors import ExitCode
from rdc.progress import Problem, Progressed
from rdc.report.trouble import Trouble

if TYPE_CHECKING:
    from rdc.progress import Event
    from rdc.report.progress_bar import ProgressBar

__all__ = ["SurveyTerminal", "worse"]


def worse(before: ExitCode, now: ExitCode) -> ExitCode:
    """The exit code of a run with both: what could not be read outweighs what went away by itself."""
    return before if now is ExitCode.OK or before is ExitCode.PARTIAL else now


class SurveyTerminal:
    """A Reporter; `talk` writes whole lines to stderr."""

    def __init__(self, talk: Callable[[str], None], bar: ProgressBar | None) -> None:
        self._trouble = Trouble(talk, bar)

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self._trouble.tell(event)
        elif isinstance(event, Progressed):
            self._trouble.follow(event)

    def close(self) -> None:
        """Wipe the bar: the answer follows."""
        self._trouble.close()
