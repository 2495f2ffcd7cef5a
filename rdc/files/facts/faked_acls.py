"""ACLs of entries that --fake-super made, in the extended attributes in which rsync keeps them.

`user.rsync.%aacl` holds the access ACL, `user.rsync.%dacl` the default ACL of a directory. The form is u32,
little-endian: the rights of owner, owning group, mask and others, each 0x80 if it is left out; then id and
rights of each named user and group, users first, with 0x8000_0000 more for a user.

The mode of an entry has parts of its access ACL: the rights of owner and others, and the mask as its group
bits. Owner and others are therefore left out, and so is the owning group where it has the rights of the mask.
The number kept as the mask says no more than that there is one: rsync may write that of another entry.
"""

from __future__ import annotations

import errno
import os
import stat
from struct import iter_unpack, pack, unpack_from

from rdc.files.base.faked_stat import read_faked
from rdc.model.preserved import ACCESS_ACL, DEFAULT_ACL, Attributes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["faked_acls_at", "stored_acls_at", "stored_attributes", "packed_acl", "unpacked_acl"]

STORED_NAMES = {ACCESS_ACL: b"user.rsync.%aacl", DEFAULT_ACL: b"user.rsync.%dacl"}

_OWNER, _USER, _GROUP, _NAMED_GROUP, _MASK, _OTHER = 1, 2, 4, 8, 16, 32
_LEFT_OUT = 0x80
_IS_USER = 0x8000_0000
_NOBODY = 0xFFFF_FFFF
_VERSION = b"\2\0\0\0"
_NONE = {errno.ENODATA, errno.EOPNOTSUPP, errno.EPERM}


def packed_acl(name: bytes, acl: bytes) -> bytes:
    """Return what is kept of an ACL in the kernel's form. `name`: ACCESS_ACL or DEFAULT_ACL. Raises
    ValueError for another form."""
    if acl[:4] != _VERSION or len(acl) % 8 != 4:
        raise ValueError("an ACL of an unknown version")
    rights = dict.fromkeys((_OWNER, _GROUP, _MASK, _OTHER), _LEFT_OUT)
    users: list[tuple[int, int]] = []
    groups: list[tuple[int, int]] = []
    for tag, bits, number in iter_unpack("<HHI", acl[4:]):
        if tag in rights:
            rights[tag] = bits
        elif tag == _USER:
            users.append((number, bits | _IS_USER))
        else:
            groups.append((number, bits))
    named = users + groups
    if name == ACCESS_ACL:
        rights[_OWNER] = rights[_OTHER] = _LEFT_OUT
        if rights[_MASK] in (_LEFT_OUT, rights[_GROUP]):
            rights[_GROUP] = _LEFT_OUT
    head = pack("<4I", rights[_OWNER], rights[_GROUP], rights[_MASK], rights[_OTHER])
    return head + b"".join(pack("<2I", *each) for each in named)


def unpacked_acl(name: bytes, stored: bytes, mode: int) -> bytes:
    """Return the ACL, in the kernel's form, that is stored so for an entry with that mode; b"" for one that
    says what the mode says. Raises ValueError for another form."""
    if len(stored) < 16 or len(stored) % 8:
        raise ValueError(f"{len(stored)} bytes")
    owner, group, mask, others = unpack_from("<4I", stored)
    named = tuple(iter_unpack("<2I", stored[16:]))
    if name == ACCESS_ACL:
        bits = mode >> 3 & 7
        group = bits if group == _LEFT_OUT else group
        if not named and mask == _LEFT_OUT and group == bits:
            return b""
        owner, mask, others = mode >> 6 & 7, bits, mode & 7
    users = [(_USER, bits ^ _IS_USER, number) for number, bits in named if bits & _IS_USER]
    groups = [(_NAMED_GROUP, bits, number) for number, bits in named if not bits & _IS_USER]
    entries = [(_OWNER, owner, _NOBODY), *users, (_GROUP, group, _NOBODY), *groups]
    entries += [(_MASK, mask, _NOBODY)] if mask != _LEFT_OUT else []
    return _packed([*entries, (_OTHER, others, _NOBODY)])


def _packed(entries: Sequence[tuple[int, int, int]]) -> bytes:
    """Return the kernel's form of entries: tag, rights and id. Raises ValueError for unknown rights."""
    if any(bits > 7 for _, bits, _ in entries):
        raise ValueError("rights that do not exist")
    return _VERSION + b"".join(pack("<HHI", *entry) for entry in entries)


def stored_attributes(attributes: Attributes) -> Attributes:
    """Return the attributes under the names and in the form in which --fake-super keeps them. Raises
    ValueError."""
    return tuple(
        (STORED_NAMES[name], packed_acl(name, value)) if name in STORED_NAMES else (name, value)
        for name, value in attributes
    )


def stored_acls_at(path: bytes | int, *, follow: bool) -> Attributes:
    """Return what is kept of the ACLs of what a path or a descriptor leads to, as it is. Raises OSError."""
    found = []
    for name in STORED_NAMES.values():
        try:
            found.append((name, os.getxattr(path, name, follow_symlinks=follow)))
        except OSError as error:
            if error.errno not in _NONE:
                raise
    return tuple(found)


def faked_acls_at(path: bytes) -> Attributes:
    """Return the ACLs that are kept at a path such as `at_entry` gives, in the kernel's form.

    Raises OSError, also for an attribute that rsync would not write."""
    found = dict(stored_acls_at(path, follow=False))
    if not found:
        return ()
    entry = os.stat(path, follow_symlinks=False)
    try:
        faked = read_faked(path, entry)
        mode = stat.S_IMODE(entry.st_mode if faked is None else faked.mode)
        pairs = [
            (name, unpacked_acl(name, found[other], mode))
            for name, other in STORED_NAMES.items()
            if other in found
        ]
    except ValueError as error:
        raise OSError(errno.EBADMSG, f"what --fake-super keeps there has another form: {error}") from error
    return tuple(pair for pair in pairs if pair[1])
