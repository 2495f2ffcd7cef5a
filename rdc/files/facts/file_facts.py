"""facts_of: identity, metadata, links, disk usage and location of one file."""

from __future__ import annotations

import os

from rdc.files.facts.extents import extents
from rdc.files.facts.open_file_xattrs import read_attributes
from rdc.model.instances import FileFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root

__all__ = ["facts_of"]

SECTOR_BYTES = 512
"""The unit of st_blocks, whatever the file system's block size is."""


def facts_of(root: Root, path: bytes, *, attributes: bool) -> FileFacts:
    """Return the facts of the file at `path`, with its extended attributes if `attributes`.

    Raises FileChangedError if no regular file is there, FileError if it cannot be opened.
    """
    with root.open_read(path) as source:
        fd = source.fileno()
        try:
            found = os.fstat(fd)
            found_attributes = read_attributes(fd) if attributes else ()
        except OSError as error:
            raise root.failure(error, path, "look at it", reading=True) from error
        return FileFacts(
            source.identity,
            source.metadata,
            found.st_nlink,
            found.st_blocks * SECTOR_BYTES,
            _first_location(fd),
            found_attributes,
        )


def _first_location(fd: int) -> int | None:
    try:
        first = next(extents(fd, 0, 1), None)
    except OSError:
        return None
    return None if first is None or first.in_metadata else first.physical_offset(0)
