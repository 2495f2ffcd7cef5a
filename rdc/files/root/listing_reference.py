"""Reads one directory into the columns of a Listing. It defines what read_directory.c does faster."""

from __future__ import annotations

import errno
import os
import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Sequence

from rdc.files.base.metadata import KIND_OF_FORMAT
from rdc.files.base.temporary_names import reserved_rows
from rdc.limits.paths import DIRECTORY_BYTES, ENTRY_BYTES, NAME_BYTES
from rdc.model.entries import Kind, Listing, PackedInodes

__all__ = ["packed_inodes", "read_directory", "read_with_inodes", "times_of"]

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1
_UINT32_MAX = (1 << 32) - 1


def read_directory(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int = DIRECTORY_BYTES
) -> Listing:
    """Return the entries of the directory open for reading at `fd`, with one fstatat each.

    `on_temporary` receives the reserved names (rdc.files.base.temporary_names), which are then left out; None
    includes them. An entry that vanishes between the reading of its name and its stat is left out.

    Raises OSError: ENAMETOOLONG for a name longer than NAME_BYTES, EOVERFLOW if names, targets and
    ENTRY_BYTES per entry exceed `limit` bytes.
    """
    return _read(fd, on_temporary, limit)[0]


def read_with_inodes(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int = DIRECTORY_BYTES
) -> tuple[Listing, PackedInodes]:
    """Return what `read_directory` returns and the inode of each entry."""
    listing, stats = _read(fd, on_temporary, limit)
    return listing, packed_inodes(stats)


def packed_inodes(stats: Sequence[os.stat_result]) -> PackedInodes:
    """Return the inodes of entries, row by row."""
    return PackedInodes(
        devices=_packed("<Q", [found.st_dev for found in stats]),
        inodes=_packed("<Q", [found.st_ino for found in stats]),
        links=_packed("<I", [min(found.st_nlink, _UINT32_MAX) for found in stats]),
        allocated=_packed("<Q", [found.st_blocks * 512 for found in stats]),
        ctimes=_packed("<q", list(times_of([found.st_ctime_ns for found in stats]))),
    )


def _read(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int
) -> tuple[Listing, list[os.stat_result]]:
    """Return the entries and, row by row, their stats."""
    # long because the definition stands in one piece, to be compared with the C form
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
        # The C library returns no error for a directory that was removed.
        raise _failed(errno.ENOENT)
    names = sorted(entries)
    if on_temporary is not None:
        reserved = reserved_rows(names)
        for row in reserved:
            on_temporary(names[row])
        for row in reversed(reserved):
            del names[row]
    try:
        stats = [entries[name].stat(follow_symlinks=False) for name in names]
    except FileNotFoundError:
        # A DirEntry caches its stat, so entries that were found before cannot fail now.
        names = [name for name in names if _is_there(entries[name])]
        stats = [entries[name].stat(follow_symlinks=False) for name in names]
    kinds = _kinds(stats)
    targets: list[bytes] = []
    if kinds.count(Kind.SYMLINK):
        rows = zip(names, kinds, strict=True)
        links = {name: _read_link(name, fd) for name, kind in rows if kind == Kind.SYMLINK}
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
        mtimes=times_of([found.st_mtime_ns for found in stats]),
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


def _read_link(name: bytes, directory: int) -> bytes | None:
    """Return the link's target, or None if the link vanished since its stat.

    A link replaced by another kind of entry is an error (EINVAL), because leaving it out would make it look
    deleted.
    """
    try:
        return os.readlink(name, dir_fd=directory)
    except FileNotFoundError:
        return None


def _kinds(stats: list[os.stat_result]) -> bytes:
    return bytes([found.st_mode >> 12 for found in stats]).translate(KIND_OF_FORMAT)


def _packed(format_: str, numbers: list[int]) -> bytes:
    return struct.pack(f"{format_[0]}{len(numbers)}{format_[1]}", *numbers)


def times_of(times: Iterable[int]) -> array[int]:
    """Return times as int64 nanoseconds, which end in the year 2262. File systems with 64-bit seconds exceed
    that; such times are clamped."""
    try:
        return array("q", times)
    except OverflowError:
        return array("q", [min(max(time, _INT64_MIN), _INT64_MAX) for time in times])
