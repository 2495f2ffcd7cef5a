"""One stored signature: the file state it belongs to, and the stamp that proves they belong together."""

from __future__ import annotations

import struct
from array import array
from functools import cache

from blake3 import blake3

from rdc.catalog.boot import boot, is_unsettled
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.model.entries import Identity

__all__ = ["Entry", "RowKey", "FileState", "params_number", "row_key_of", "signed64", "stamps"]

_CONTEXT = b"rdc catalog 1 stamp"
STAMP_BYTES = 16

_STAMPED = struct.Struct("<19sQqQqQqqqqq32s32s")
"""The message of a stamp. Each number takes 16 bytes."""


RowKey = tuple[int, int, int]
"""The key of a row: see FileState.row_key."""


@dataclass(frozen=True, slots=True)
class FileState:
    """A file at one moment. Equal states have equal content; rdc.catalog.racy says when this holds."""

    file_system: int
    """FileSystem.id."""
    identity: Identity
    """Its `device` is not part of the state: a file system may get another number after a reboot."""
    params: bytes
    """32 bytes: ChunkParams.id."""

    @property
    def row_key(self) -> tuple[int, int, int]:
        """The key of its row: file system, inode and parameters as signed 64-bit numbers. A file's new state
        replaces the row of its old one."""
        return row_key_of(self.file_system, self.identity.inode, self.params)

    def stamp(self, root: bytes, *, unsettled: bool = False) -> bytes:
        """A digest of 16 bytes over the whole state and its root. `unsettled`: the stamp is valid in this
        boot only.

        A row matches a state only by its stamp. This also detects damage: a row with a flipped bit or from a
        mixed-up page matches no file, while plain columns could match a wrong one.
        """
        context = _context(boot()) if unsettled else _CONTEXT
        i = self.identity
        numbers = (self.file_system, i.inode, i.size, i.mtime_ns, i.ctime_ns)
        state = b"".join([n.to_bytes(16, "little", signed=True) for n in numbers])
        return blake3(context + state + self.params + root).digest(STAMP_BYTES)

    def is_stamped(self, stamp: bytes, root: bytes) -> bool:
        """Whether `stamp` was made from this state and this root."""
        return stamp == self.stamp(root) or stamp == self.stamp(root, unsettled=True)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the table of signatures, without its key."""

    size: int
    """Bytes of the file."""
    path: bytes
    """Path of the file when it was signed; may be b"". Used for display and pruning, never to look up a
    signature."""
    root: bytes
    stamp: bytes
    """FileState.stamp of the root."""
    value: bytes
    """The signature, encoded by rdc.signature.codec."""


@cache
def _context(boot: bytes) -> bytes:
    return blake3(_CONTEXT + boot).digest(len(_CONTEXT))


def stamps(
    file_system: int, params: bytes, rows: Iterable[tuple[int, int, int, int, bytes]], began: int
) -> list[bytes]:
    """FileState.stamp of many files of one file system. `rows`: inode, size, mtime, ctime and root of each.
    `began`: when reading began, in nanoseconds."""
    from rdc.kernel.blake3_many import NAME_BYTES, name_parts

    pack, unsettled = _STAMPED.pack, _context(boot())
    messages = [
        pack(
            unsettled if is_unsettled(ctime, began) else _CONTEXT,
            file_system,
            0,
            inode,
            0,
            size,
            0,
            mtime,
            mtime >> 63,
            ctime,
            ctime >> 63,
            params,
            root,
        )
        for inode, size, mtime, ctime, root in rows
    ]
    names = name_parts(b"".join(messages), array("Q", [_STAMPED.size]) * len(messages))
    return [names[at : at + STAMP_BYTES] for at in range(0, len(names), NAME_BYTES)]


def row_key_of(file_system: int, inode: int, params: bytes) -> tuple[int, int, int]:
    """See FileState.row_key."""
    return signed64(file_system), signed64(inode), params_number(params)


def params_number(params: bytes) -> int:
    """A parameter id as the 64-bit number that the table stores."""
    return int.from_bytes(params[:8], "little", signed=True)


def signed64(number: int) -> int:
    """An unsigned 64-bit number as SQLite's signed one."""
    number &= 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number
