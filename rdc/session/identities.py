"""Identities of many files, 40 bytes each: what a whole tree of them takes has to be bounded."""

from __future__ import annotations

import struct

from rdc.model.entries import Identity

__all__ = ["Identities"]

_ROW = struct.Struct("<QQQqq")


class Identities:
    """A growing column."""

    __slots__ = ("_packed",)

    def __init__(self) -> None:
        self._packed = bytearray()

    def __len__(self) -> int:
        return len(self._packed) // _ROW.size

    def append(self, found: Identity) -> None:
        self._packed += _ROW.pack(found.device, found.inode, found.size, found.mtime_ns, found.ctime_ns)

    def __getitem__(self, row: int) -> Identity:
        return Identity(*_ROW.unpack_from(self._packed, row * _ROW.size))
