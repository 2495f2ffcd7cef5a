"""Reads one directory into the columns of a Listing."""

from __future__ import annotations

import os
import stat
import sys
from array import array
from collections.abc import Callable, Iterable

from rdc.files.metadata import KIND_OF_FORMAT
from rdc.files.temporary import is_temporary
from rdc.model.entries import Kind, Listing

__all__ = ["read_directory"]

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


def read_directory(fd: int, on_temporary: Callable[[bytes], None] | None) -> Listing:
    """The entries of the directory open for reading at `fd`, one fstatat each; raises OSError.

    `on_temporary` takes the names of temporary files instead of the Listing; None leaves them in it. An entry
    that vanishes between the reading of its name and its stat was never there.
    """
    encoding = sys.getfilesystemencoding()
    rows: list[tuple[bytes, os.stat_result, bytes]] = []
    with os.scandir(fd) as entries:
        for entry in entries:
            name = entry.name.encode(encoding, "surrogateescape")
            if on_temporary is not None and is_temporary(name):
                on_temporary(name)
                continue
            try:
                found = entry.stat(follow_symlinks=False)
                target = os.readlink(name, dir_fd=fd) if stat.S_ISLNK(found.st_mode) else b""
            except FileNotFoundError:
                continue
            rows.append((name, found, target))
    rows.sort(key=_name)
    stats = [row[1] for row in rows]
    kinds = bytes([found.st_mode >> 12 for found in stats]).translate(KIND_OF_FORMAT)
    sizes = array("Q", [found.st_size for found in stats])
    if kinds.count(Kind.FILE) != len(kinds):
        for row, kind in enumerate(kinds):
            if kind != Kind.FILE:
                sizes[row] = 0
    return Listing(
        names=tuple([row[0] for row in rows]),
        kinds=kinds,
        modes=array("H", [found.st_mode & 0o7777 for found in stats]),
        sizes=sizes,
        mtimes=_nanoseconds([found.st_mtime_ns for found in stats]),
        uids=array("I", [found.st_uid for found in stats]),
        gids=array("I", [found.st_gid for found in stats]),
        targets=tuple([row[2] for row, kind in zip(rows, kinds, strict=True) if kind == Kind.SYMLINK]),
    )


def _name(row: tuple[bytes, os.stat_result, bytes]) -> bytes:
    return row[0]


def _nanoseconds(times: Iterable[int]) -> array[int]:
    """64-bit nanoseconds end in the year 2262; file systems with 64-bit seconds do not, and are clamped."""
    try:
        return array("q", times)
    except OverflowError:
        return array("q", [min(max(time, _INT64_MIN), _INT64_MAX) for time in times])
