"""One remembered signature: which state of which file it belongs to, and the proof that both go together."""

from __future__ import annotations

import struct
from array import array

from blake3 import blake3

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.model.entries import Identity

__all__ = ["Entry", "FileState", "params_number", "place_of", "signed64", "stamps"]

_CONTEXT = b"rdc catalog 1 stamp"
STAMP_BYTES = 16

_STAMPED = struct.Struct("<19sQqQqQqqqqq32s32s")
"""What a stamp is the digest of: the numbers with 16 bytes each."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it was at one moment: equal states have equal content (rdc.catalog.racy says when)."""

    file_system: int
    """FileSystem.id."""
    identity: Identity
    """Its `device` is not part of the state: another number after a reboot is the same file system."""
    params: bytes
    """32 bytes: ChunkParams.id."""

    @property
    def place(self) -> tuple[int, int, int]:
        """Where it is kept: file system, inode, parameters as signed 64-bit numbers. A file's new state takes
        the place of its old one."""
        return place_of(self.file_system, self.identity.inode, self.params)

    def stamp(self, root: bytes) -> bytes:
        """16 bytes over all of the state and the root that belongs to it.

        Rows are compared by it alone. It also finds damage: a flipped bit or a mixed-up page matches no file,
        where damaged plain columns could match the wrong one.
        """
        i = self.identity
        numbers = (self.file_system, i.inode, i.size, i.mtime_ns, i.ctime_ns)
        state = b"".join([n.to_bytes(16, "little", signed=True) for n in numbers])
        return blake3(_CONTEXT + state + self.params + root).digest(STAMP_BYTES)


@dataclass(frozen=True, slots=True)
class Entry:
    """What one row of the table holds besides its place."""

    size: int
    """Bytes of the file."""
    path: bytes
    """Where the file was when it was signed: for people and for pruning, never looked up by. May be b""."""
    root: bytes
    stamp: bytes
    """FileState.stamp of the root."""
    value: bytes
    """rdc.signature.codec's encoding."""


def stamps(file_system: int, params: bytes, rows: Iterable[tuple[int, int, int, int, bytes]]) -> list[bytes]:
    """FileState.stamp of many files of one file system: inode, size, mtime, ctime and root of each."""
    from rdc.kernel.naming import NAME_BYTES, name_parts

    pack = _STAMPED.pack
    messages = [
        pack(
            _CONTEXT, file_system, 0, inode, 0, size, 0, mtime, mtime >> 63, ctime, ctime >> 63, params, root
        )
        for inode, size, mtime, ctime, root in rows
    ]
    names = name_parts(b"".join(messages), array("Q", [_STAMPED.size]) * len(messages))
    return [names[at : at + STAMP_BYTES] for at in range(0, len(names), NAME_BYTES)]


def place_of(file_system: int, inode: int, params: bytes) -> tuple[int, int, int]:
    """See FileState.place."""
    return signed64(file_system), signed64(inode), params_number(params)


def params_number(params: bytes) -> int:
    """A parameter id as the table has it."""
    return int.from_bytes(params[:8], "little", signed=True)


def signed64(number: int) -> int:
    """An unsigned 64-bit number as SQLite's signed one."""
    number &= 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number
