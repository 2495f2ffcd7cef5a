"""Extended attributes of an entry: which of them are kept, and their one form in digests and messages."""

from __future__ import annotations

from enum import IntFlag

from rdc.limits import ATTRIBUTE_NAME_BYTES, ATTRIBUTE_SET_BYTES, ATTRIBUTE_VALUE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = [
    "ACCESS_ACL",
    "DEFAULT_ACL",
    "UNREADABLE",
    "AttributeKinds",
    "Attributes",
    "group_bits",
    "pack_attributes",
    "unpack_attributes",
]

Attributes: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Names and values, in the order of the names."""

ACCESS_ACL = b"system.posix_acl_access"
DEFAULT_ACL = b"system.posix_acl_default"

UNREADABLE = b"\0"
"""In place of a packed set: nobody could read it, so nothing is to be done about it."""


class AttributeKinds(IntFlag):
    """The values are part of the protocol."""

    NONE = 0
    USER = 1
    """user.*: whatever programs keep with a file."""
    ROOT = 2
    """trusted.* and security.capability, which only root can set. Labels of security modules
    (security.selinux and the like) belong to a machine and its policy: they are neither told, nor set, nor
    removed."""
    ACL = 4
    """POSIX ACLs: who besides owner, group and others may use a file, and what is made in a directory."""

    def has(self, name: bytes) -> bool:
        """Whether an attribute of that name is one of these kinds."""
        if name.startswith(b"user."):
            return bool(self & AttributeKinds.USER)
        if name in (ACCESS_ACL, DEFAULT_ACL):
            return bool(self & AttributeKinds.ACL)
        # XFS shows root its ACLs by a second name each.
        trusted = name.startswith(b"trusted.") and not name.startswith(b"trusted.SGI_ACL_")
        return (trusted or name == b"security.capability") and bool(self & AttributeKinds.ROOT)


def pack_attributes(attributes: Attributes) -> bytes:
    """b"" for none; else for each, by name: bytes of its name u8, the name, bytes of its value u32
    little-endian, the value. Equal sets, and no others, have equal forms."""
    return b"".join(
        [
            len(name).to_bytes(1, "little") + name + len(value).to_bytes(4, "little") + value
            for name, value in sorted(attributes)
        ]
    )


def unpack_attributes(packed: bytes) -> Attributes:
    """The other way. Raises ValueError for anything that `pack_attributes` would not have made, or whose
    length passes a limit."""
    if len(packed) > ATTRIBUTE_SET_BYTES:
        raise ValueError(f"a set of {len(packed)} bytes, the limit is {ATTRIBUTE_SET_BYTES}")
    found: list[tuple[bytes, bytes]] = []
    at = 0
    while at < len(packed):
        start = at + 1
        name = packed[start : start + packed[at]]
        at = start + packed[at] + 4
        size = int.from_bytes(packed[at - 4 : at], "little")
        if at > len(packed) or size > ATTRIBUTE_VALUE_BYTES or at + size > len(packed):
            raise ValueError("lengths of a set that do not add up")
        if not name or b"\0" in name or len(name) > ATTRIBUTE_NAME_BYTES:
            raise ValueError(f"a name of {len(name)} bytes, or with a NUL")
        if found and name <= found[-1][0]:
            raise ValueError("names of a set that do not increase")
        found.append((name, packed[at : at + size]))
        at += size
    return tuple(found)


def group_bits(acl: bytes) -> int:
    """What an access ACL lets the file's own group do, as permission bits 0o00 to 0o70: the mode of such a
    file has the mask in that place, which may let named users do more. 0 where that cannot be told.

    The form is that of system.posix_acl_access, acl(5) and linux/posix_acl_xattr.h: u32 version 2, then
    entries of tag u16, permissions u16, id u32, all little-endian; tag 4 is the owning group.
    """
    if acl[:4] != b"\2\0\0\0":
        return 0
    for at in range(4, len(acl) - 7, 8):
        if int.from_bytes(acl[at : at + 2], "little") == 4:
            return (int.from_bytes(acl[at + 2 : at + 4], "little") & 7) << 3
    return 0
