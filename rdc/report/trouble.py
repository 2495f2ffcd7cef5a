"""Trouble as people read it: a line each on stderr, above the bar where one is drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, printable

if TYPE_CHECKING:
    from rdc.progress import Event, Problem
    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["Trouble"]


class Trouble:
    """`talk` writes whole lines to stderr; `quiet`: no notices, problems alone."""

    def __init__(
        self, talk: Callable[[str], None], bar: ProgressBar | ProgressLines | None, *, quiet: bool = False
    ) -> None:
        self._talk = talk
        self._bar = bar
        self._quiet = quiet

    def follow(self, event: Event) -> None:
        """Let the bar take notice."""
        if self._bar is not None:
            self._bar.follow(event)

    def tell(self, event: Problem) -> None:
        notice = event.code is ExitCode.OK
        if notice and self._quiet:
            return
        line = f"rdc: {'note: ' if notice else ''}{printable(event.message)}"
        if self._bar is None or not self._bar.line(line):
            self._talk(line + "\n")

    def close(self) -> None:
        """Wipe the bar: the answer follows."""
        if self._bar is not None:
            self._bar.close()
