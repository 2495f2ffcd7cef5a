"""Output: what shows a job. Its terminal form is here, its JSON form in rdc/report/json_output.py.

A job reports events while it runs. At its end it has a report, or the error that ended it.
"""

from __future__ import annotations

from rdc.errors import ExitCode, one_line, printable
from rdc.lean.typed import Protocol
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from rdc.errors import RdcError

__all__ = ["Bar", "ForwardedOutput", "Output", "TerminalOutput"]

LINES = 10
"""Problems of one kind that get lines of their own. The others are counted."""

KINDS = 1000
"""Kinds that are told apart. Problems of further kinds all get lines."""

_NUMBERS = str.maketrans("", "", "0123456789,")
"""Takes away what numbers are made of. This module is loaded at each start, so it uses no patterns."""


class Bar(Protocol):
    """The progress of one job on a terminal: a bar, or lines where no bar can be drawn."""

    def follow(self, event: object) -> None:
        """Show what an event says of the progress."""

    def line(self, text: str) -> bool:
        """Print `text` above the bar. Return whether this was done; otherwise the caller prints it."""

    def close(self) -> None:
        """Remove the bar. May be called twice."""


class Output:
    """Shows one job. A Reporter of any job: an event that a form does not show is ignored."""

    def start(self) -> None:
        """Show that the job begins."""

    def __call__(self, event: object, /) -> None:
        """Show one event."""

    def finish(self, report: Any) -> None:
        """Show the result of a job that came to its end."""

    def fail(self, error: RdcError) -> None:
        """Show the error that ended the job. The command line prints it to stderr, for every verb alike."""
        self.close()

    def close(self) -> None:
        """End the output. May be called twice."""


class ForwardedOutput(Output):
    """Passes everything to another output. Subclasses add what they do with it."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def start(self) -> None:
        self._output.start()

    def __call__(self, event: object, /) -> None:
        self._output(event)

    def finish(self, report: Any) -> None:
        self._output.finish(report)

    def fail(self, error: RdcError) -> None:
        self._output.fail(error)

    def close(self) -> None:
        self._output.close()


class TerminalOutput(Output):
    """Text for people: results on stdout, problems, progress and a summary on stderr.

    Problems are of one kind if nothing but paths and numbers differs. Each kind gets LINES lines. Subclasses
    add their events and their results.
    """

    def __init__(
        self,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: Bar | None = None,
        *,
        quiet: bool = False,
    ) -> None:
        """`data` writes whole lines to stdout, `talk` to stderr. `quiet`: only problems and results, neither
        notices nor a summary."""
        self._data = data
        self._talk = talk
        self._bar = bar
        self._quiet = quiet
        self._kinds: dict[str, int] = {}
        """How many problems of each kind were met."""
        self._last: dict[str, str] = {}
        """What the last problem of a kind says, for kinds of which some are only counted."""

    def __call__(self, event: object, /) -> None:
        if isinstance(event, Problem):
            self._take(event)
        elif self._bar is not None:
            self._bar.follow(event)

    def finish(self, report: Any) -> None:
        """Show the summary, after everything else is gone from the screen."""
        self.close()
        if not self._quiet and (text := self.summary(report)):
            self._talk(text + "\n")

    def summary(self, report: Any) -> str:
        """Return the last lines of a run; "" for none."""
        return ""

    def settle(self) -> None:
        """Tell how many problems got no lines, and begin to count again."""
        for kind, said in self._last.items():
            mark = "note: " if kind.startswith("note: ") else ""
            self._say(f"rdc: {mark}{self._kinds[kind] - LINES:,} more like this: {said}")
        self._kinds.clear()
        self._last.clear()

    def close(self) -> None:
        """Tell what was only counted, and remove the bar, before the results are printed."""
        self.settle()
        if self._bar is not None:
            self._bar.close()

    def _take(self, event: Problem) -> None:
        notice = event.code is ExitCode.OK
        if notice and self._quiet:
            return
        message = one_line(event.message)
        mark = "note: " if notice else ""
        said = _without_path(message, event.path)
        kind = mark + said.translate(_NUMBERS)
        count = self._kinds.get(kind, 0) + 1
        if count > 1 or len(self._kinds) < KINDS:
            self._kinds[kind] = count
        if count <= LINES:
            self._say(f"rdc: {mark}{message}")
        else:
            self._last[kind] = said

    def _say(self, line: str) -> None:
        if self._bar is None or not self._bar.line(line):
            self._talk(line + "\n")


def _without_path(message: str, path: bytes) -> str:
    """Return what a message says of the entry at `path`."""
    before, colon, said = message.partition(f"{printable(path)}: ")
    return said if colon and path else before + colon + said
