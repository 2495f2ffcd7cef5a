"""Facts of single entries: what a file has besides its content, its digest, a directory's mark."""

from __future__ import annotations

import os
import stat
import struct
import sys
from functools import lru_cache

from blake3 import blake3

from rdc.files.base.metadata import identity_of, stat_entry
from rdc.files.base.paths import WithoutProcError, changed
from rdc.files.facts.extents import data_ranges
from rdc.files.facts.xattrs import read_attributes
from rdc.lean.records import Record
from rdc.model.entries import Identity, Metadata
from rdc.model.preserved import Attributes, packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile


class FileFacts(Record):
    """Facts about one file."""

    identity: Identity
    metadata: Metadata
    links: int
    """Number of the file's names in all places."""
    allocated: int
    """Bytes on disk, with shared ones."""
    attributes: Attributes
    """Extended attributes, if they were requested."""


# facts_of: identity, metadata, links and disk usage of one file.

SECTOR_BYTES = 512
"""The unit of st_blocks, whatever the file system's block size is."""


def facts_of(source: SourceFile, *, attributes: bool) -> FileFacts:
    """Return the facts of an open file, with its extended attributes if `attributes`. Raises OSError."""
    fd = source.fileno()
    found = os.fstat(fd)
    return FileFacts(
        source.identity,
        source.metadata,
        found.st_nlink,
        found.st_blocks * SECTOR_BYTES,
        read_attributes(fd) if attributes else (),
    )


def facts_at(root: Root, path: bytes) -> FileFacts:
    """Return the facts of a file that is not opened, without its attributes. Raises FileChangedError if no
    regular file is there, FileError if it cannot be looked at."""
    found = root.perform(path, "look at it", stat_entry, reading=True)
    if not stat.S_ISREG(found.st_mode):
        raise changed(path, root.shown(path), "a regular file", "another entry in its place")
    metadata = Metadata(
        stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid
    )
    return FileFacts(identity_of(found), metadata, found.st_nlink, found.st_blocks * SECTOR_BYTES, ())


# ContentDigest: names the content of a file that may have holes, without reading or hashing the holes.
#
# A content is divided into pieces of PIECE_BYTES; the last may be shorter. Pieces of zeros are left out:
#
#     plain  = BLAKE3(all other pieces, joined)
#     digest = plain, if no piece was left out
#     digest = keyed BLAKE3(plain, first and count of each run of pieces that were left out, size)
#
# The numbers are little-endian u64. So the digest depends on the content alone, whether its zeros are holes
# of the file or were written.

PIECE_BYTES = 64 << 10
"""A hole saves work if it covers a whole piece. Smaller pieces would make more calls for dense files: a look
at one byte a piece is 0.1 percent of hashing it."""

_ZEROS = bytes(PIECE_BYTES)
_KEY = blake3(b"rdc: content without its pieces of zeros").digest()


class ContentDigest:
    """Hashes one content of `size` bytes. What is not added is zeros."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._hasher = blake3()
        self._at = 0
        self._left_out: list[tuple[int, int]] = []
        """First piece and count of each run of pieces that were left out."""

    def add(self, offset: int, span: bytes) -> None:
        """Add the bytes at `offset`, in increasing order. A span is whole pieces, or ends with the
        content."""
        self._skip_to(offset)
        begun = 0
        for start in range(0, len(span), PIECE_BYTES):
            # One look at a byte tells most pieces of data.
            if span[start] or (piece := span[start : start + PIECE_BYTES]) != _ZEROS[: len(piece)]:
                continue
            self._hasher.update(span[begun:start])
            begun = min(start + PIECE_BYTES, len(span))
            self._leave_out((offset + start) // PIECE_BYTES, 1)
        self._hasher.update(span[begun:] if begun else span)
        self._at = offset + len(span)

    def digest(self) -> bytes:
        """Return the 32 bytes of the digest. Nothing may be added afterwards."""
        self._skip_to(self._size)
        plain = self._hasher.digest()
        if not self._left_out:
            return plain
        hasher = blake3(plain, key=_KEY)
        for first, count in self._left_out:
            hasher.update(first.to_bytes(8, "little") + count.to_bytes(8, "little"))
        return hasher.update(self._size.to_bytes(8, "little")).digest()

    def _skip_to(self, offset: int) -> None:
        if self._at < offset:
            first = self._at // PIECE_BYTES
            self._leave_out(first, -(-offset // PIECE_BYTES) - first)
            self._at = offset

    def _leave_out(self, first: int, count: int) -> None:
        if self._left_out and sum(self._left_out[-1]) == first:
            first, count = self._left_out[-1][0], self._left_out.pop()[1] + count
        self._left_out.append((first, count))


def spans_with_data(fds: Sequence[int], size: int, step: int) -> Iterator[tuple[int, int]]:
    """Yield offset and length of the spans that must be read to know the first `size` bytes of these files.

    Everywhere else all of them have holes. A span is whole pieces, or ends at `size`, and has at most `step`
    bytes, a multiple of PIECE_BYTES. The positions of the files are moved.
    """
    at = 0
    for start, stop in data_ranges(fds, size):
        at = max(at, start - start % PIECE_BYTES)
        end = min(-(-stop // PIECE_BYTES) * PIECE_BYTES, size)
        while at < end:
            length = min(step, end - at)
            yield at, length
            at += length


MARK_BYTES = 16

_BOOT = "/proc/sys/kernel/random/boot_id"
"""It differs for each kernel that runs, and containers of one kernel share it."""


def directory_mark(fd: int) -> bytes:
    """Return 16 bytes that are equal for one directory only. Raises OSError.

    A directory of a file server has another mark on each machine that mounts it.
    """
    stat = os.fstat(fd)
    text = _kernel() + struct.pack("<QQ", stat.st_dev & 0xFFFF_FFFF_FFFF_FFFF, stat.st_ino)
    return blake3(text).digest(MARK_BYTES)


@lru_cache(maxsize=1)
def _kernel() -> bytes:
    try:
        with open(_BOOT, "rb") as file:
            return file.read(64).strip()
    except OSError as error:
        if sys.platform == "linux":
            # By another name for it, one kernel might be taken for two, and a directory for its own copy.
            raise WithoutProcError from error
        import platform  # rare: it costs as much as a whole module

        return platform.node().encode()
