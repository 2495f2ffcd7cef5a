"""`rdc unite` on a terminal: the table of what is done at which side, the conflicts, and the last line."""

from __future__ import annotations

import time

from rdc.errors import printable
from rdc.limits import UNITE_LISTED
from rdc.report.output import TerminalOutput, counted, size_text
from rdc.uniting.records import UniteConflict, UniteItem, UnitePair, UniteReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_ABOUT = {
    "content": "both sides edited it",
    "kind": "file, directory or symlink at the other side",
    "unit": "both sides changed something in it",
    "mode": "both sides changed its permissions",
}


class UniteTerminal(TerminalOutput):
    """Items and conflicts on stdout, problems and the summary on stderr."""

    def __init__(
        self,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        operands: tuple[str, str],
        *,
        quiet: bool,
        items: bool,
        dry_run: bool,
    ) -> None:
        """`operands`: both directories as typed, for commands that solve conflicts. `items`: each is
        shown."""
        super().__init__(data, talk, quiet=quiet)
        self._operands = operands
        self._items = items
        self._dry_run = dry_run
        self._headed = False
        self._conflicts = 0
        self._first = ""

    def __call__(self, event: object, /) -> None:
        if isinstance(event, UniteItem):
            if self._items:
                self._head()
                self._data(item_line(event) + "\n")
        elif isinstance(event, UniteConflict):
            self._conflict(event)
        elif isinstance(event, UnitePair):
            for line in pair_lines(event, self._operands):
                self._data(line + "\n")
        else:
            super().__call__(event)

    def _head(self) -> None:
        if not self._headed:
            self._headed = True
            self._data("left                right\n")

    def _conflict(self, event: UniteConflict) -> None:
        self._conflicts += 1
        if self._conflicts == 1:
            self._first = printable(event.path)
        if self._conflicts <= UNITE_LISTED:
            self._data(conflict_line(event) + "\n")

    def summary(self, report: UniteReport) -> str:
        if self._conflicts > UNITE_LISTED:
            self._talk(f"{self._conflicts - UNITE_LISTED:,} more conflicts\n")
        if self._conflicts:
            left, right = self._operands
            self._talk(
                f"keep one version: rdc unite {left} {right} --resolve={self._first}=left     both: =both\n"
            )
        return summary_line(report, dry_run=self._dry_run)


def item_line(item: UniteItem) -> str:
    """`new         →               notes.txt  4.1 KB`: what was done, at which side, and where."""
    from_left = item.side == "right"
    left, right = (item.action, "") if from_left else ("", item.action)
    arrow = "→" if from_left else "←"
    path = printable(item.path)
    if item.target is not None:
        path += f" to {printable(item.target)}"
    size = f"  {size_text(item.copied)}" if item.copied else ""
    return f"{left:<10} {arrow} {right:<10}  {path}{size}"


def conflict_line(event: UniteConflict) -> str:
    """`conflict   ≠             a.txt  left 9 B 10:14:02, right 7 B 10:20:00: both sides edited it`."""
    left, right = (
        f"{size_text(size)} {_when(mtime_ns)}"
        for size, mtime_ns in (
            (event.left_size, event.left_mtime_ns),
            (event.right_size, event.right_mtime_ns),
        )
    )
    about = _ABOUT[event.about]
    return f"{'conflict':<10} ≠ {'':<10}  {printable(event.path)}  left {left}, right {right}: {about}"


def _when(mtime_ns: int) -> str:
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(mtime_ns // 1_000_000_000))
    except (OverflowError, ValueError, OSError):
        return "of no time"


def summary_line(report: UniteReport, *, dry_run: bool) -> str:
    """Return the last line of a run."""
    parts = [
        f"left ← {counted(report.left, 'entry', 'entries')}, {size_text(report.left_bytes)}",
        f"right → {counted(report.right, 'entry', 'entries')}, {size_text(report.right_bytes)}",
        counted(report.conflicts, "conflict"),
    ]
    if report.held:
        parts.append(f"{report.held:,} held or failed")
    text = "   ".join(parts)
    return f"would change: {text}; nothing was written" if dry_run else text


def pair_lines(pair: UnitePair, operands: tuple[str, str]) -> list[str]:
    """Return what --status shows of one pair."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(pair.seconds))
    entries = counted(pair.entries, "entry", "entries")
    lines = [f"{printable(pair.place)}: last united {when}, {entries} in common"]
    if pair.interrupted:
        lines.append("  a run was interrupted since; the next one goes on")
    lines += ["  " + conflict_line(each) for each in pair.conflicts[:UNITE_LISTED]]
    if len(pair.conflicts) > UNITE_LISTED:
        lines.append(f"  {len(pair.conflicts) - UNITE_LISTED:,} more conflicts")
    return lines
