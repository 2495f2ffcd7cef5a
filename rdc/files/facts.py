"""One look at a file: which instance it is, and where it begins on disk."""

from __future__ import annotations

import os

from rdc.files.attributes import read_attributes
from rdc.files.extents import extents
from rdc.model.instances import FileFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root

__all__ = ["facts_of"]

SECTOR_BYTES = 512
"""Of st_blocks, whatever the file system's own blocks are."""


def facts_of(root: Root, path: bytes, *, attributes: bool) -> FileFacts:
    """Raises FileChangedError where no regular file is, FileError where it cannot be opened."""
    with root.open_read(path) as source:
        fd = source.fileno()
        try:
            found = os.fstat(fd)
            held = read_attributes(fd) if attributes else ()
        except OSError as error:
            raise root.failure(error, path, "look at it", reading=True) from error
        return FileFacts(
            source.identity,
            source.metadata,
            found.st_nlink,
            found.st_blocks * SECTOR_BYTES,
            _first_place(fd),
            held,
        )


def _first_place(fd: int) -> int | None:
    try:
        first = next(extents(fd, 0, 1), None)
    except OSError:
        return None
    return None if first is None or first.in_metadata else first.place(0)
