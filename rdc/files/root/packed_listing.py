"""Reads one directory into a PackedListing: in C on Linux, elsewhere as rdc.files.root.listing_reference
defines."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from rdc.files.depth.depth import RowsSeen
from rdc.files.root.listing_reference import read_directory, read_with_inodes
from rdc.limits.paths import DIRECTORY_BYTES
from rdc.model.entries import PackedInodes, PackedListing, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    from rdc.files.depth.depth import Looking

__all__ = ["list_beneath", "list_inodes_beneath", "open_directory", "read_packed", "read_packed_inodes"]


_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _built() -> ModuleType | None:
    try:
        from rdc.files.root import _walk
    except ImportError:  # a checkout without a compiler: correct, and several times slower
        return None
    return _walk if hasattr(_walk, "read_directory") else None


_extension = _built()


def read_packed(
    fd: int,
    on_temporary: Callable[[bytes], None] | None,
    limit: int = DIRECTORY_BYTES,
    depth: Looking | None = None,
) -> PackedListing:
    """Return the entries of the directory open for reading at `fd`, as `listing_reference.read_directory`
    defines. `depth`: of the looks at entries, one at a time if there is none."""
    if _extension is None:
        return read_directory(fd, on_temporary, limit).packed()
    *columns, temporaries, seen = _extension.read_directory(
        fd, on_temporary is not None, limit, False, *_bounds(depth)
    )
    _take_in(depth, seen)
    _report(temporaries, on_temporary)
    return PackedListing(*columns)


def list_beneath(
    directory: int,
    path: bytes,
    on_temporary: Callable[[bytes], None] | None,
    limit: int = DIRECTORY_BYTES,
    depth: Looking | None = None,
) -> PackedListing:
    """Return `read_packed` of the directory at `path` (not empty), opened as by `open_directory`.

    Raises OSError; EINVAL for a path that is not plain names.
    """
    if _extension is None:
        fd = open_directory(directory, path)
        try:
            return read_packed(fd, on_temporary, limit)
        finally:
            os.close(fd)
    *columns, temporaries, seen = _extension.list_directory(
        directory, path, on_temporary is not None, limit, False, *_bounds(depth)
    )
    _take_in(depth, seen)
    if temporaries:
        _report(temporaries, on_temporary)
    return PackedListing(*columns)


def list_inodes_beneath(
    directory: int,
    path: bytes,
    on_temporary: Callable[[bytes], None] | None,
    limit: int = DIRECTORY_BYTES,
    depth: Looking | None = None,
) -> tuple[PackedListing, PackedInodes]:
    """Return `read_packed_inodes` of the directory at `path`, as `list_beneath` returns `read_packed`."""
    if _extension is None:
        fd = open_directory(directory, path)
        try:
            return read_packed_inodes(fd, on_temporary, limit)
        finally:
            os.close(fd)
    *columns, temporaries, devices, numbers, links, allocated, ctimes, seen = _extension.list_directory(
        directory, path, on_temporary is not None, limit, True, *_bounds(depth)
    )
    _take_in(depth, seen)
    if temporaries:
        _report(temporaries, on_temporary)
    return PackedListing(*columns), PackedInodes(devices, numbers, links, allocated, ctimes)


def read_packed_inodes(
    fd: int,
    on_temporary: Callable[[bytes], None] | None,
    limit: int = DIRECTORY_BYTES,
    depth: Looking | None = None,
) -> tuple[PackedListing, PackedInodes]:
    """Return what `read_packed` returns and the inode of each entry, as `listing_reference.read_with_inodes`
    defines."""
    if _extension is None:
        listing, inodes = read_with_inodes(fd, on_temporary, limit)
        return listing.packed(), inodes
    *columns, temporaries, devices, numbers, links, allocated, ctimes, seen = _extension.read_directory(
        fd, on_temporary is not None, limit, True, *_bounds(depth)
    )
    _take_in(depth, seen)
    _report(temporaries, on_temporary)
    return PackedListing(*columns), PackedInodes(devices, numbers, links, allocated, ctimes)


def open_directory(directory: int, path: bytes) -> int:
    """Return a descriptor for reading of the directory at `path` (not empty), below the one open at
    `directory`.

    No link is followed. Raises OSError; EINVAL for a path that is not plain names.
    """
    if _extension is not None:
        opened: int = _extension.open_directory(directory, path)
        return opened
    here = os.dup(directory)
    *above, last = path.split(b"/")
    for name, flags in [*((name, _PASS) for name in above), (last, _READ)]:
        try:
            if name in {b"", b".", b".."}:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            opened = os.open(name, flags, dir_fd=here)
        finally:
            os.close(here)
        here = opened
    return here


def _bounds(depth: Looking | None) -> tuple[int, int]:
    return (1, 1) if depth is None else (depth.now, depth.most)


def _take_in(depth: Looking | None, seen: tuple[int, int, int, int, int, int]) -> None:
    if depth is not None:
        depth.saw(RowsSeen(*seen))


def _report(temporaries: bytes, on_temporary: Callable[[bytes], None] | None) -> None:
    if temporaries and on_temporary is not None:
        for name in strings(temporaries):
            on_temporary(name)
