"""Extended attributes of an entry: their kinds, and their only form in digests and messages.

An access time counts as one more attribute: like the others it is set last of all, since reading changes it.
"""

from __future__ import annotations

from enum import IntFlag

from rdc.limits.wire import ATTRIBUTE_NAME_BYTES, ATTRIBUTE_SET_BYTES, ATTRIBUTE_VALUE_BYTES
from rdc.model.entries import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

__all__ = [
    "ACCESS_ACL",
    "ACCESS_TIME",
    "DEFAULT_ACL",
    "FAKED_PREFIX",
    "UNREADABLE",
    "AttributeKinds",
    "Attributes",
    "bits_before_acl",
    "mode_with_acl",
    "pack_attributes",
    "unpack_attributes",
]

Attributes: TypeAlias = tuple[tuple[bytes, bytes], ...]
"""Names and values, in the order of the names."""

ACCESS_ACL = b"system.posix_acl_access"
DEFAULT_ACL = b"system.posix_acl_default"

ACCESS_TIME = b"atime"
"""Names the access time among the attributes: whole seconds since the epoch, i64 little-endian. No extended
attribute of Linux has such a name, since each begins with a namespace and a dot."""

ACCESS_TIME_BYTES = 8

FAKED_PREFIX = b"user.rsync.%"
"""Begins the names of attributes that keep what --fake-super may not set."""

_OWNER, _NAMED_USER, _OWNING_GROUP, _NAMED_GROUP, _MASK, _OTHERS = 1, 2, 4, 8, 16, 32
"""Tags of an ACL's entries."""

UNREADABLE = b"\0"
"""Replaces a packed set that could not be read; the destination leaves the entry's attributes unchanged."""


class AttributeKinds(IntFlag):
    """Kinds of extended attributes. The values are part of the protocol."""

    NONE = 0
    USER = 1
    """user.*: data that programs keep with a file."""
    ROOT = 2
    """trusted.* and security.capability, which only root can set. Labels of security modules (such as
    security.selinux) belong to a machine and its policy: they are neither sent, nor set, nor removed."""
    ACL = 4
    """POSIX ACLs: rights of users and groups beyond the mode, and defaults for new entries of a directory."""
    ACCESS_TIME = 8
    """Access times, of regular files and special files. Those of directories and symlinks change whenever a
    sync looks at them."""

    def of(self, kind: int) -> AttributeKinds:
        """The kinds that are kept of an entry of this Kind."""
        if kind in (Kind.DIRECTORY, Kind.SYMLINK):
            return self & ~AttributeKinds.ACCESS_TIME
        return AttributeKinds.NONE if kind == Kind.SPECIAL else self

    def chosen(self, attributes: Attributes) -> Attributes:
        """Those of these kinds."""
        return tuple(pair for pair in attributes if self.has(pair[0]))

    def has(self, name: bytes) -> bool:
        """Whether an attribute with this name is of one of these kinds. Those in which rsync keeps what
        --fake-super may not set are of none."""
        if name.startswith(FAKED_PREFIX):
            return False
        if name.startswith(b"user."):
            return bool(self & AttributeKinds.USER)
        if name in (ACCESS_ACL, DEFAULT_ACL):
            return bool(self & AttributeKinds.ACL)
        if name == ACCESS_TIME:
            return bool(self & AttributeKinds.ACCESS_TIME)
        # XFS shows each of its ACLs to root under a second name.
        trusted = name.startswith(b"trusted.") and not name.startswith(b"trusted.SGI_ACL_")
        return (trusted or name == b"security.capability") and bool(self & AttributeKinds.ROOT)


def pack_attributes(attributes: Attributes) -> bytes:
    """The packed form: b"" for none; otherwise per attribute, by name: length of the name u8, name, length of
    the value u32 little-endian, value. Only equal sets have equal forms."""
    return b"".join(
        [
            len(name).to_bytes(1, "little") + name + len(value).to_bytes(4, "little") + value
            for name, value in sorted(attributes)
        ]
    )


def unpack_attributes(packed: bytes) -> Attributes:
    """The inverse of pack_attributes. ValueError for anything that it would not produce, or that exceeds a
    limit."""
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
        if name == ACCESS_TIME and size != ACCESS_TIME_BYTES:
            raise ValueError(f"an access time of {size} bytes")
        found.append((name, packed[at : at + size]))
        at += size
    return tuple(found)


def mode_with_acl(mode: int, acl: bytes) -> int:
    """The permission bits that an entry with `mode` has once it has got this access ACL."""
    entries = {
        int.from_bytes(acl[at : at + 2], "little"): int.from_bytes(acl[at + 2 : at + 4], "little") & 7
        for at in range(4, len(acl) - 7, 8)
    }
    user, others = entries.get(_OWNER, mode >> 6 & 7), entries.get(_OTHERS, mode & 7)
    group = entries.get(_MASK, entries.get(_OWNING_GROUP, mode >> 3 & 7))
    return mode & ~0o777 | user << 6 | group << 3 | others


def bits_before_acl(acl: bytes) -> int:
    """The rights of group and others, as permission bits 0o00 to 0o77, that a mode may grant until the entry
    has its access ACL. They include nothing that the ACL denies; 0 if `acl` is not understood.

    The mode of an entry with an ACL has the mask in its group bits, which may grant more than the ACL grants
    the group. An ACL may also grant named users and groups less than the group or others that they belong to.

    The form is that of system.posix_acl_access (acl(5), linux/posix_acl_xattr.h): u32 version 2, then per
    entry tag u16, permissions u16, id u32, all little-endian.
    """
    if acl[:4] != b"\2\0\0\0":
        return 0
    entries = [
        (int.from_bytes(acl[at : at + 2], "little"), int.from_bytes(acl[at + 2 : at + 4], "little") & 7)
        for at in range(4, len(acl) - 7, 8)
    ]
    mask = min([bits for tag, bits in entries if tag == _MASK], default=7)
    group = min([bits & mask for tag, bits in entries if tag == _OWNING_GROUP], default=None)
    if group is None:
        return 0
    others = 7
    for tag, bits in entries:
        if tag == _NAMED_USER:
            group &= bits & mask
        if tag in (_NAMED_USER, _NAMED_GROUP):
            others &= bits & mask
    return group << 3 | others
