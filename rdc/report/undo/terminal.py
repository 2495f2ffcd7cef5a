"""An undo as text: taken back entries and listed syncs on stdout, problems and the summary on stderr."""

from __future__ import annotations

import time

from rdc.errors import RdcError, printable
from rdc.model.undo import UndoableSync, UndoItem, UndoReport
from rdc.report.sizes import counted, size_text
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.progress import Problem

__all__ = ["UndoTerminal"]

_WIDTH = 8


class UndoTerminal:
    """Receives the events of one undo."""

    def __init__(
        self,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        *,
        quiet: bool,
        names: bool,
        dry_run: bool,
    ) -> None:
        """`data` writes whole lines to stdout, `talk` to stderr. `names`: name each entry taken back."""
        self._data = data
        self._talk = talk
        self._quiet = quiet
        self._names = names
        self._dry_run = dry_run
        self._trouble = Trouble(talk, None, quiet=quiet)

    def start(self) -> None:
        """Prints nothing before the first event."""

    def __call__(self, event: UndoItem | Problem, /) -> None:
        if not isinstance(event, UndoItem):
            self._trouble(event)
        elif self._names and not self._quiet:
            self._data(f"{event.action:<{_WIDTH}}  {printable(event.path or b'.')}\n")

    def listed(self, syncs: tuple[UndoableSync, ...]) -> None:
        for sync in syncs:
            self._data(_line(sync) + "\n")
        if not (syncs or self._quiet):
            self._talk("there is nothing to undo\n")

    def finish(self, report: UndoReport) -> None:
        if not self._quiet:
            self._talk(_summary(report, dry_run=self._dry_run) + "\n")

    def fail(self, error: RdcError) -> None:
        """Does nothing: the command line prints the error in the same way for every command."""

    def close(self) -> None:
        self._trouble.close()


def _line(sync: UndoableSync) -> str:
    """`12  2026-11-25 21:14  3,201 entries  1.2 GB`: number, local time, what it changed and keeps."""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(sync.seconds))
    parts = [f"{sync.number:>4}", began, counted(sync.entries, "entry", "entries"), size_text(sync.bytes)]
    if not sync.complete:
        parts.append("interrupted")
    if sync.left_alone is not None:
        parts.append(f"undone, {counted(sync.left_alone, 'entry', 'entries')} left alone")
    return "  ".join(parts)


def _summary(report: UndoReport, *, dry_run: bool) -> str:
    if report.number is None:
        return "there is nothing to undo"
    would = "would be " if dry_run else ""
    parts = [
        f"sync {report.number} {would}undone: {report.restored:,} restored, {report.removed:,} removed,"
        f" {report.moved:,} moved, {report.changed:,} changed"
    ]
    if report.left_alone:
        parts.append(f"{report.left_alone:,} left alone, exit code {int(report.exit)}")
    parts.append(f"{counted(report.older, 'older sync')} left to undo")
    return "; ".join(parts)
