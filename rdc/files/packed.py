"""Reads one directory into a PackedListing: in C on Linux, elsewhere as rdc.files.listing defines it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

from rdc.files.listing import read_directory, read_with_inodes
from rdc.limits import DIRECTORY_BYTES
from rdc.model.entries import PackedInodes, PackedListing, strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["list_beneath", "open_directory", "read_packed", "read_packed_inodes"]


_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def _built() -> ModuleType | None:
    try:
        from rdc.files import _walk
    except ImportError:  # a checkout without a compiler: correct, and several times slower
        return None
    return _walk if hasattr(_walk, "read_directory") else None


_extension = _built()


def read_packed(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int = DIRECTORY_BYTES
) -> PackedListing:
    """The entries of the directory open for reading at `fd`: what `listing.read_directory` gives."""
    if _extension is None:
        return read_directory(fd, on_temporary, limit).packed()
    *columns, temporaries = _extension.read_directory(fd, on_temporary is not None, limit, False)
    _tell(temporaries, on_temporary)
    return PackedListing(*columns)


def list_beneath(
    directory: int, path: bytes, on_temporary: Callable[[bytes], None] | None, limit: int = DIRECTORY_BYTES
) -> PackedListing:
    """`read_packed` of the directory at `path`, not empty, as `open_directory` finds it. Raises OSError, with
    EINVAL for a path that is not of plain names."""
    if _extension is None:
        fd = open_directory(directory, path)
        try:
            return read_packed(fd, on_temporary, limit)
        finally:
            os.close(fd)
    *columns, temporaries = _extension.list_directory(directory, path, on_temporary is not None, limit)
    if temporaries:
        _tell(temporaries, on_temporary)
    return PackedListing(*columns)


def read_packed_inodes(
    fd: int, on_temporary: Callable[[bytes], None] | None, limit: int = DIRECTORY_BYTES
) -> tuple[PackedListing, PackedInodes]:
    """As `read_packed`, and which files these are: what `listing.read_with_inodes` gives."""
    if _extension is None:
        listing, inodes = read_with_inodes(fd, on_temporary, limit)
        return listing.packed(), inodes
    *columns, temporaries, devices, numbers, links, allocated, ctimes = _extension.read_directory(
        fd, on_temporary is not None, limit, True
    )
    _tell(temporaries, on_temporary)
    return PackedListing(*columns), PackedInodes(devices, numbers, links, allocated, ctimes)


def open_directory(directory: int, path: bytes) -> int:
    """A descriptor for reading of the directory at `path`, not empty, below the one open at `directory`.

    Follows no link, on the way neither. Raises OSError, for a path that is not of plain names as well.
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


def _tell(temporaries: bytes, on_temporary: Callable[[bytes], None] | None) -> None:
    if temporaries and on_temporary is not None:
        for name in strings(temporaries):
            on_temporary(name)
