"""facts_of: identity, metadata, links and disk usage of one file."""

from __future__ import annotations

import os

from rdc.files.facts.open_file_xattrs import read_attributes
from rdc.model.instances import FileFacts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.source_file import SourceFile

__all__ = ["facts_of"]

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
