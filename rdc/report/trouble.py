"""Problems and progress of a run on stderr, for commands whose results come at the end."""

from __future__ import annotations

from collections.abc import Callable

from rdc.errors import ExitCode, one_line
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Event
    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["Trouble"]


class Trouble:
    """A Reporter. `talk` writes whole lines to stderr. `quiet`: only problems, no notices."""

    def __init__(
        self, talk: Callable[[str], None], bar: ProgressBar | ProgressLines | None, *, quiet: bool = False
    ) -> None:
        self._talk = talk
        self._bar = bar
        self._quiet = quiet

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self._print(event)
        elif self._bar is not None:
            self._bar.follow(event)

    def _print(self, event: Problem) -> None:
        notice = event.code is ExitCode.OK
        if notice and self._quiet:
            return
        line = f"rdc: {'note: ' if notice else ''}{one_line(event.message)}"
        if self._bar is None or not self._bar.line(line):
            self._talk(line + "\n")

    def close(self) -> None:
        """Removes the bar, before the results are printed."""
        if self._bar is not None:
            self._bar.close()
