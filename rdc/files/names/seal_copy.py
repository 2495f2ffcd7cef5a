"""Copies of whole files: their content with its holes, then owner, mode, mtime and attributes."""

from __future__ import annotations

import os
import stat

from rdc.files.base.access_acl import shed_acl
from rdc.files.facts.open_file_xattrs import write_attributes
from rdc.files.replace.replacement import Replacement
from rdc.model.attributes import ACCESS_ACL, bits_before_acl
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root
    from rdc.model.attributes import Attributes
    from rdc.model.entries import Metadata

__all__ = ["copy_of", "seal_like"]

SECTOR_BYTES = 512
"""The unit of st_blocks, whatever the file system's block size is."""


def copy_of(root: Root, path: bytes, source: int, size: int) -> Replacement:
    """Return a temporary beside `path` with the first `size` bytes of the file open at `source`. Holes stay
    holes, and blocks are shared where the file system can.

    The temporary is shorter if the source is. Nothing is durable yet. Raises RdcError.
    """
    try:
        taken = os.fstat(source).st_blocks * SECTOR_BYTES
    except OSError as error:
        raise root.failure(error, path, "copy into it") from error
    copy = Replacement(root, path, expected_size=size, allocated=taken if taken < size else None)
    try:
        copy.copy_from(source, 0, size)
    except BaseException:
        copy.abandon()
        raise
    return copy


def seal_like(copy: Replacement, metadata: Metadata, attributes: Attributes, *, owner: bool = True) -> None:
    """Give a copy its metadata and attributes. Nothing may be written to it afterwards, and the caller makes
    it durable. `owner`: it gets the owner. Raises OSError and FileError."""
    acl = dict(attributes).get(ACCESS_ACL)
    if acl is not None:
        # The ACL is written below with the other attributes. Until then its mask must not act as group bits.
        others = stat.S_IRWXG | stat.S_IRWXO
        metadata = replace(metadata, mode=metadata.mode & (~others | bits_before_acl(acl)))
    shed_acl(copy.fileno())
    copy.seal(metadata, owner=owner)
    write_attributes(copy.fileno(), attributes)
