"""seal_like: gives the copy of a file its owner, mode, mtime and attributes, and makes it durable."""

from __future__ import annotations

import stat

from rdc.files.base.access_acl import shed_acl
from rdc.files.base.durability import flush
from rdc.files.facts.open_file_xattrs import write_attributes
from rdc.model.attributes import ACCESS_ACL, bits_before_acl
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.replace.replacement import Replacement
    from rdc.model.attributes import Attributes
    from rdc.model.entries import Metadata

__all__ = ["seal_like"]


def seal_like(copy: Replacement, metadata: Metadata, attributes: Attributes, *, owner: bool = True) -> None:
    """Nothing may be written to the copy afterwards. `owner`: it gets the owner. Raises OSError and
    FileError."""
    acl = dict(attributes).get(ACCESS_ACL)
    if acl is not None:
        # The ACL is written below with the other attributes. Until then its mask must not act as group bits.
        others = stat.S_IRWXG | stat.S_IRWXO
        metadata = replace(metadata, mode=metadata.mode & (~others | bits_before_acl(acl)))
    shed_acl(copy.fileno())
    copy.seal(metadata, owner=owner)
    write_attributes(copy.fileno(), attributes)
    flush(copy.fileno())
