"""The state of a file that a signature belongs to, and when an unchanged state proves unchanged content."""

from __future__ import annotations

import os
import struct
from array import array
from functools import cache

from blake3 import blake3

from rdc.files.facts.file_systems import ChangeTimes
from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.model.entries import Identity


# The racy rule: when an unchanged stat proves unchanged content.
#
# A change of a file sets its ctime to the file system's clock. That clock has a granularity of 1 to 10 ms on
# most file systems, and of 1 s on some. A file read within one clock step of its ctime can change again in
# that step, and its stat does not show it. So a signature is stored only if the clock had passed the ctime by
# more than the granularity when reading BEGAN: every later change then gets a later ctime. The margin is
# wider than one step because write(2) stamps the file before it copies the data, and a large write takes a
# while.
#
# mtimes are not used: programs set them freely, and setting one moves the ctime. One change stays invisible:
# a store into a shared mapping whose page was already dirty when the file was read. The kernel stamps the
# file again when it writes the page back. rsync's comparison by size and mtime has the same limit.

LOCAL_MARGIN_NS = 2_000_000_000
"""Twice the coarsest granularity of a local file system with change times (1 s: ext3, ext4 with small
inodes)."""

DISTANT_MARGIN_NS = 600_000_000_000
"""Margin for network file systems, since a server's clock cannot be read without writing to its tree. Servers
whose clock is minutes behind exist; ten minutes are rare. A change is missed only if the file also changes
twice within one clock step."""


def is_racy(ctime_ns: int, began_ns: int, change_times: ChangeTimes) -> bool:
    """Return whether a file with this ctime, read from `began_ns` on, may have changed since without a trace.

    A ctime in the future is racy: the clock was set back and will pass the ctime again.
    """
    if change_times is ChangeTimes.NONE:
        return True
    margin = LOCAL_MARGIN_NS if change_times is ChangeTimes.LOCAL else DISTANT_MARGIN_NS
    return began_ns - ctime_ns <= margin


# Identifies the running boot, to limit signatures of recently changed files to it.
#
# A change of a file reaches the disk some time after it was made. A power cut can undo the new content and
# keep the new size and times: journals write a file's inode before data that overwrites old data. So the
# signature of a recently changed file is valid in this boot only.

WRITEBACK_NS = 600_000_000_000
"""The time for which a change may wait in memory. Linux starts writing after 35 s, laptop modes after ten
minutes. A longer time costs little: files read that early are read once more after the next boot."""


def is_unsettled(ctime_ns: int, began_ns: int) -> bool:
    """Return whether a file with this ctime, read from `began_ns` on, may have been read before it was on
    disk."""
    return began_ns - ctime_ns <= WRITEBACK_NS


@cache
def boot() -> bytes:
    """Return the identifier of this boot. Where the system has none, random bytes of this process."""
    try:
        with open("/proc/sys/kernel/random/boot_id", "rb") as file:
            return file.read(64)
    except OSError:
        return os.urandom(16)


# One stored signature: the file state it belongs to, and the stamp that proves they belong together.

_CONTEXT = b"rdc catalog 1 stamp"
STAMP_BYTES = 16

_STAMPED = struct.Struct("<19sQqQqQqqqqq32s32s")
"""The message of a stamp. Each number takes 16 bytes."""


RowKey = tuple[int, int, int]
"""The key of a row: see FileState.row_key."""


class FileState(Record):
    """A file at one moment. Equal states have equal content; rdc.catalog.file_state says when this holds."""

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
        """Return a digest of 16 bytes over the whole state and its root. `unsettled`: the stamp is valid in
        this boot only.

        A row matches a state only by its stamp. This also detects damage: a row with a flipped bit or from a
        mixed-up page matches no file, while plain columns could match a wrong one.
        """
        context = _context(boot()) if unsettled else _CONTEXT
        i = self.identity
        numbers = (self.file_system, i.inode, i.size, i.mtime_ns, i.ctime_ns)
        state = b"".join([n.to_bytes(16, "little", signed=True) for n in numbers])
        return blake3(context + state + self.params + root).digest(STAMP_BYTES)

    def is_stamped(self, stamp: bytes, root: bytes) -> bool:
        """Return whether `stamp` was made from this state and this root."""
        return stamp == self.stamp(root) or stamp == self.stamp(root, unsettled=True)


class Entry(Record):
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
    """Return a parameter id as the 64-bit number that the table stores."""
    return int.from_bytes(params[:8], "little", signed=True)


def signed64(number: int) -> int:
    """Return an unsigned 64-bit number as SQLite's signed one."""
    number &= 0xFFFF_FFFF_FFFF_FFFF
    return number - (1 << 64) if number >> 63 else number
