"""What a survey tells people while it runs: trouble as it comes, and a bar."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, printable
from rdc.progress import Problem, Progressed

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
        self._talk = talk
        self._bar = bar

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            note = "note: " if event.code is ExitCode.OK else ""
            line = f"rdc: {note}{printable(event.message)}"
            if self._bar is None or not self._bar.line(line):
                self._talk(line + "\n")
        elif isinstance(event, Progressed) and self._bar is not None:
            self._bar.follow(event)

    def close(self) -> None:
        """Wipe the bar: the answer follows."""
        if self._bar is not None:
            self._bar.close()
