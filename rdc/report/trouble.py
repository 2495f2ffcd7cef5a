"""Problems and progress of a run on stderr, for commands whose results come at the end."""

from __future__ import annotations

from collections.abc import Callable

from rdc.errors import ExitCode, one_line, printable
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import Event
    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["Trouble"]

LINES = 10
"""Problems of one kind that get lines of their own. The others are counted."""

KINDS = 1000
"""Kinds that are told apart. Problems of further kinds all get lines."""

_NUMBERS = str.maketrans("", "", "0123456789,")
"""Takes away what numbers are made of. This module is loaded at each start, so it uses no patterns."""


class Trouble:
    """A Reporter. `talk` writes whole lines to stderr. `quiet`: only problems, no notices.

    Problems are of one kind if nothing but paths and numbers differs.
    """

    def __init__(
        self, talk: Callable[[str], None], bar: ProgressBar | ProgressLines | None, *, quiet: bool = False
    ) -> None:
        self._talk = talk
        self._bar = bar
        self._quiet = quiet
        self._kinds: dict[str, int] = {}
        """How many problems of each kind were met."""
        self._last: dict[str, str] = {}
        """What the last problem of a kind says, for kinds of which some are only counted."""

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self._take(event)
        elif self._bar is not None:
            self._bar.follow(event)

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

    def settle(self) -> None:
        """Tells how many problems got no lines, and begins to count again."""
        for kind, said in self._last.items():
            mark = "note: " if kind.startswith("note: ") else ""
            self._say(f"rdc: {mark}{self._kinds[kind] - LINES:,} more like this: {said}")
        self._kinds.clear()
        self._last.clear()

    def _say(self, line: str) -> None:
        if self._bar is None or not self._bar.line(line):
            self._talk(line + "\n")

    def close(self) -> None:
        """Tells what was only counted, and removes the bar, before the results are printed."""
        self.settle()
        if self._bar is not None:
            self._bar.close()


def _without_path(message: str, path: bytes) -> str:
    """What a message says of the entry at `path`."""
    before, colon, said = message.partition(f"{printable(path)}: ")
    return said if colon and path else before + colon + said
