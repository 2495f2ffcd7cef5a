"""Lines about the entries of a source, as rsync --list-only prints them."""

from __future__ import annotations

import stat
import time

from rdc.errors import printable
from rdc.model.entries import Kind
from rdc.model.times import real_time
from rdc.report.out_format import grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.listing import ListedEntry

__all__ = ["entry_line"]

SIZE_COLUMNS = 14

_LETTERS = {Kind.FILE: "-", Kind.DIRECTORY: "d", Kind.SYMLINK: "l"}


def entry_line(entry: ListedEntry, *, level: int) -> str:
    """Permissions, size, time and name. `level`: of readability, as in `grouped`."""
    mode = 0o777 if entry.kind is Kind.SYMLINK else entry.metadata.mode
    kind = _LETTERS.get(entry.kind, "?")
    size = entry.size if entry.link is None else len(entry.link)
    name = printable(entry.path) + ("" if entry.link is None else f" -> {printable(entry.link)}")
    permissions = stat.filemode(mode)[1:]
    return f"{kind}{permissions} {grouped(size, level):>{SIZE_COLUMNS}} {_time(entry)} {name}"


def _time(entry: ListedEntry) -> str:
    seconds = real_time(entry.metadata.mtime_ns) // 10**9
    try:
        return time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):
        return f"{seconds:>19}"
