"""Reads one directory into the columns of a Listing: the definition of what read_directory.c does faster."""

from __future__ import annotations

import errno
import os
import struct
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable

from rdc.files.metadata import KIND_OF_FORMAT
from rdc.files.temporary import TEMPORARY_RANGE, is_temporary
from rdc.limits import DIRECTORY_BYTES, NAME_BYTES
from rdc.model.entries import Kind, Listing, PackedInodes

__all__ = ["read_directory", "read_with_inodes"]

ENTRY_BYTES = 160
"""What an entry counts besides its name and target: its row of columns, as much before they are sorted, and
its place in the sort."""

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_UINT32_MAX = (1 << 32) - 1


def read_directory(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int = DIRECTORY_BYTES
) -> Listing:
    """The entries of the directory open for reading at `fd`, one fstatat each.

    `on_temporary` takes the names of temporary files instead of the Listing; None leaves them in it. An entry
    that vanishes between the reading of its name and its stat was never there. Raises OSError: ENAMETOOLONG
    for a name of more than NAME_BYTES, EOVERFLOW when names, targets and ENTRY_BYTES an entry add up to more
    than `limit` bytes.
    """
    return _read(fd, on_temporary, limit)[0]


def read_with_inodes(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int = DIRECTORY_BYTES
) -> tuple[Listing, PackedInodes]:
    """As `read_directory`, and which files these are."""
    listing, stats = _read(fd, on_temporary, limit)
    return listing, PackedInodes(
        devices=_packed("<Q", [found.st_dev for found in stats]),
        inodes=_packed("<Q", [found.st_ino for found in stats]),
        links=_packed("<I", [min(found.st_nlink, _UINT32_MAX) for found in stats]),
        allocated=_packed("<Q", [found.st_blocks * 512 for found in stats]),
        ctimes=_packed("<q", list(_nanoseconds([found.st_ctime_ns for found in stats]))),
    )


def _read(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int
) -> tuple[Listing, list[os.stat_result]]:
    """The entries and, row by row, their stats."""
    encoding = sys.getfilesystemencoding()
    os.lseek(fd, 0, os.SEEK_SET)
    entries = {}
    with os.scandir(fd) as scanned:
        for entry in scanned:
            name = entry.name.encode(encoding, "surrogateescape")
            if len(name) > NAME_BYTES:
                raise _failed(errno.ENAMETOOLONG)
            limit -= ENTRY_BYTES + len(name) + 1
            if limit < 0:
                raise _failed(errno.EOVERFLOW)
            entries[name] = entry
    if not entries and os.fstat(fd).st_nlink == 0:
        # The C library hides that the directory itself was removed.
        raise _failed(errno.ENOENT)
    names = sorted(entries)
    if on_temporary is not None:
        # Sorted, they stand together: no name outside of this range needs a look.
        first, last = (bisect_left(names, bound) for bound in TEMPORARY_RANGE)
        kept = []
        for name in names[first:last]:
            if is_temporary(name):
                on_temporary(name)
            else:
                kept.append(name)
        names[first:last] = kept
    try:
        stats = [entries[name].stat(follow_symlinks=False) for name in names]
    except FileNotFoundError:
        # A DirEntry keeps its stat: those that were there are not asked again, and cannot fail any more.
        names = [name for name in names if _is_there(entries[name])]
        stats = [entries[name].stat(follow_symlinks=False) for name in names]
    kinds = _kinds(stats)
    targets: list[bytes] = []
    if kinds.count(Kind.SYMLINK):
        rows = zip(names, kinds, strict=True)
        links = {name: _target(name, fd) for name, kind in rows if kind == Kind.SYMLINK}
        targets = [target for target in links.values() if target is not None]
        if sum(map(len, targets)) + len(targets) > limit:
            raise _failed(errno.EOVERFLOW)
        if len(targets) < len(links):
            names = [name for name in names if links.get(name, b"") is not None]
            stats = [entries[name].stat(follow_symlinks=False) for name in names]
            kinds = _kinds(stats)
    sizes = array("Q", [found.st_size for found in stats])
    if kinds.count(Kind.FILE) < len(kinds):
        for row, kind in enumerate(kinds):
            if kind != Kind.FILE:
                sizes[row] = 0
    listing = Listing(
        names=tuple(names),
        kinds=kinds,
        modes=array("H", [found.st_mode & 0o7777 for found in stats]),
        sizes=sizes,
        mtimes=_nanoseconds([found.st_mtime_ns for found in stats]),
        uids=array("I", [found.st_uid for found in stats]),
        gids=array("I", [found.st_gid for found in stats]),
        targets=tuple(targets),
    )
    return listing, stats


def _failed(number: int) -> OSError:
    return OSError(number, os.strerror(number))


def _is_there(entry: os.DirEntry[str]) -> bool:
    try:
        entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _target(name: bytes, directory: int) -> bytes | None:
    """None when the link has gone since its stat.

    One that was replaced by something else is an error (EINVAL): left out, it would look deleted.
    """
    try:
        return os.readlink(name, dir_fd=directory)
    except FileNotFoundError:
        return None


def _kinds(stats: list[os.stat_result]) -> bytes:
    return bytes([found.st_mode >> 12 for found in stats]).translate(KIND_OF_FORMAT)


def _packed(format_: str, numbers: list[int]) -> bytes:
    return struct.pack(f"{format_[0]}{len(numbers)}{format_[1]}", *numbers)


def _nanoseconds(times: Iterable[int]) -> array[int]:
    """64-bit nanoseconds end in the year 2262; file systems with 64-bit seconds do not, and are clamped."""
    try:
        return array("q", times)
    except OverflowError:
        return array("q", [min(max(time, _INT64_MIN), _INT64_MAX) for time in times])
