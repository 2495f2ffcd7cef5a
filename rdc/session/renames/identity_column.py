"""A column of identities of many files, packed to 40 bytes each to bound the memory of a whole tree."""

from __future__ import annotations

import struct

from rdc.files.base.known_devices import stable_fields
from rdc.model.entries import Identity

__all__ = ["IdentityColumn"]

_ROW = struct.Struct("<QQQqq")


class IdentityColumn:
    """A growing column of identities."""

    __slots__ = ("_packed",)

    def __init__(self) -> None:
        self._packed = bytearray()

    def __len__(self) -> int:
        return len(self._packed) // _ROW.size

    def append(self, found: Identity) -> None:
        self._packed += _ROW.pack(found.device, found.inode, found.size, found.mtime_ns, found.ctime_ns)

    def __getitem__(self, row: int) -> Identity:
        device, inode, size, mtime, ctime = _ROW.unpack_from(self._packed, row * _ROW.size)
        return Identity(device, inode, size, mtime, ctime, stable_fields(device))
