"""facts_of: identity, metadata, links and disk usage of one file."""

from __future__ import annotations

import os
import stat

from rdc.files.base.entry_check import identity_of, stat_entry
from rdc.files.base.os_errors import changed
from rdc.files.facts.open_file_xattrs import read_attributes
from rdc.model.duplicates import FileFacts
from rdc.model.entries import Metadata
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile

__all__ = ["facts_at", "facts_of"]

SECTOR_BYTES = 512
"""The unit of st_blocks, whatever the file system's block size is."""


def facts_of(source: SourceFile, *, attributes: bool) -> FileFacts:
    """Return the facts of an open file, with its extended attributes if `attributes`. Raises OSError."""
    fd = source.fileno()
    found = os.fstat(fd)
    return FileFacts(
        source.identity,
        source.metadata,
        found.st_nlink,
        found.st_blocks * SECTOR_BYTES,
        read_attributes(fd) if attributes else (),
    )


def facts_at(root: Root, path: bytes) -> FileFacts:
    """Return the facts of a file that is not opened, without its attributes. Raises FileChangedError if no
    regular file is there, FileError if it cannot be looked at."""
    found = root.perform(path, "look at it", stat_entry, reading=True)
    if not stat.S_ISREG(found.st_mode):
        raise changed(path, root.shown(path), "a regular file", "another entry in its place")
    metadata = Metadata(
        stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid
    )
    return FileFacts(identity_of(found), metadata, found.st_nlink, found.st_blocks * SECTOR_BYTES, ())
