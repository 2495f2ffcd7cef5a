"""Reads one directory: in C on Linux, elsewhere as rdc.files.root.listing_reference defines."""

from __future__ import annotations

import errno
import os

from rdc.files import _files
from rdc.files.depth.depth import RowsSeen
from rdc.files.root.listing_reference import read_directory
from rdc.lean.records import replace
from rdc.limits.wire import DIRECTORY_BYTES
from rdc.model.entries import BadCall, BadEntry, Listed, PackedInodes, PackedListing, strings
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from rdc.files.depth.depth import Looking

__all__ = ["list_directory", "open_directory"]


_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


_extension: ModuleType | None = _files if hasattr(_files, "list_directory") else None
"""The C part, which Linux alone has."""


def list_directory(
    directory: int, path: bytes = b"", *, limit: int = DIRECTORY_BYTES, depth: Looking | None = None
) -> Listed:
    """Return what `listing_reference.read_directory` returns for the directory at `path` below the one open
    at `directory`, or for that one itself.

    No link is followed. `depth`: of the looks at entries, one at a time if there is none. Raises OSError:
    EINVAL for a path that is not plain names, EOVERFLOW for a directory of more than `limit` bytes.
    """
    if _extension is None:
        fd = open_directory(directory, path) if path else os.open(b".", _READ, dir_fd=directory)
        try:
            return read_directory(fd, limit)
        finally:
            os.close(fd)
    now, most = (1, 1) if depth is None else (depth.now, depth.most)
    columns, inodes, reserved, mtimes, ctimes, bad, seen = _extension.list_directory(
        directory, path, limit, now, most
    )
    if depth is not None:
        depth.saw(RowsSeen(*seen))
    listing, nodes = PackedListing(*columns), PackedInodes(*inodes)
    if mtimes:
        listing = replace(listing, mtimes=_with_stamps(listing.mtimes, mtimes))
    if ctimes:
        nodes = replace(nodes, ctimes=_with_stamps(nodes.ctimes, ctimes))
    return Listed(
        listing,
        nodes,
        tuple(strings(reserved)) if reserved else (),
        tuple([BadEntry(name, number, BadCall(call), known) for name, number, call, known in bad])
        if bad
        else (),
    )


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


def _with_stamps(column: bytes, times: Sequence[tuple[int, int, int]]) -> bytes:
    """Return a column of packed times with the stamps of distant ones: row, seconds, nanoseconds."""
    packed = bytearray(column)
    for row, seconds, rest in times:
        stamp = packed_time(seconds * 1_000_000_000 + rest)
        packed[8 * row : 8 * row + 8] = stamp.to_bytes(8, "little", signed=True)
    return bytes(packed)
