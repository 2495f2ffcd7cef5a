"""Access control lists as the kernel keeps them, for tests."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from rdc.model.preserved import mode_with_acl

_NOBODY = 0xFFFF_FFFF
OWNER, NAMED_USER, GROUP, MASK, OTHERS = 1, 2, 4, 16, 32
"""Tags of entries."""


def acl(owner: int, group: int, others: int, mask: int, users: list[tuple[int, int]]) -> bytes:
    """Return the kernel's form: rights of each, and numbers and rights of named users."""
    entries = [(OWNER, owner, _NOBODY), *((NAMED_USER, rights, number) for number, rights in users)]
    entries += [(GROUP, group, _NOBODY), (MASK, mask, _NOBODY), (OTHERS, others, _NOBODY)]
    return struct.pack("<I", 2) + b"".join([struct.pack("<HHI", *entry) for entry in entries])


def with_mode(given: bytes, mode: int) -> bytes:
    """Return an ACL after a chmod: the bits of the group are its mask."""
    rights = {OWNER: mode >> 6 & 7, MASK: mode >> 3 & 7, OTHERS: mode & 7}
    changed = given[:4]
    for tag, bits, number in struct.iter_unpack("<HHI", given[4:]):
        changed += struct.pack("<HHI", tag, rights.get(tag, bits), number)
    assert mode_with_acl(mode, changed) == mode
    return changed


def access(path: Path) -> tuple[int, dict[str, bytes]]:
    """Return the mode and the extended attributes of an entry."""
    names = os.listxattr(path)
    return path.stat().st_mode & 0o7777, {name: os.getxattr(path, name) for name in names}
