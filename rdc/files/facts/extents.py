"""Asks the file system where a file has holes, and where its bytes lie on disk (FIEMAP)."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fcntl import ioctl

from rdc.lean.records import dataclass

__all__ = ["Extent", "data_bytes", "data_ranges", "extents", "holes", "shared_bytes"]

_FIEMAP = 0xC020660B
_HEAD = struct.Struct("=QQIIII")
_EXTENT = struct.Struct("=QQQQQI12x")
_SYNC = 0x1

EXTENTS_PER_CALL = 256
"""Extents per call, 14 KiB of answer. Most files have fewer."""

_EVERYTHING = (1 << 64) - 1

_LAST = 0x1
_UNKNOWN = 0x2
_ENCODED = 0x8
_ENCRYPTED = 0x80
_INLINE = 0x200
_TAIL = 0x400
_SHARED = 0x2000


@dataclass(frozen=True, slots=True)
class Extent:
    """A contiguous range of a file on disk, in bytes."""

    start: int
    """Offset in the file."""
    length: int
    physical: int
    """Offset on the volume. For a compressed extent, the start of the whole extent."""
    flags: int
    """FIEMAP_EXTENT_* of linux/fiemap.h."""

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def in_metadata(self) -> bool:
        """Whether its bytes lie among metadata, where nothing can share them."""
        return bool(self.flags & (_INLINE | _TAIL))

    @property
    def is_shared(self) -> bool:
        """Whether something else refers to it: another file or snapshot, or another part of this file. How
        many there are is not known."""
        return bool(self.flags & _SHARED)

    @property
    def is_encoded(self) -> bool:
        """Whether it is compressed, so that it takes less than its length on disk."""
        return self.flags & (_ENCODED | _ENCRYPTED) == _ENCODED

    @property
    def is_elsewhere(self) -> bool:
        """Whether the file system does not say where it lies."""
        return bool(self.flags & _UNKNOWN)

    @property
    def alone(self) -> bool:
        """Whether nothing else refers to it and it takes its length on disk."""
        return not (self.is_encoded or self.flags & (_SHARED | _UNKNOWN | _INLINE | _TAIL))

    def physical_offset(self, offset: int) -> int:
        """Return where on the volume the byte at `offset` of the file lies."""
        return self.physical + (0 if self.is_encoded else offset - self.start)


def extents(fd: int, start: int, end: int, *, written: bool = True) -> Iterator[Extent]:
    """Yield the extents of the file open at `fd` that overlap [start, end), in order, without holes.

    With `written`, dirty data is written to disk first (FIEMAP_FLAG_SYNC), because it has no location before.
    Raises OSError; EOPNOTSUPP if the file system cannot tell.
    """
    while start < end:
        request = bytearray(_HEAD.pack(start, end - start, _SYNC if written else 0, 0, EXTENTS_PER_CALL, 0))
        request += bytes(_EXTENT.size * EXTENTS_PER_CALL)
        ioctl(fd, _FIEMAP, request, True)
        count = _HEAD.unpack_from(request)[3]
        reached = start
        if count > EXTENTS_PER_CALL:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        for at in range(count):
            logical, physical, length, _, _, flags = _EXTENT.unpack_from(
                request, _HEAD.size + at * _EXTENT.size
            )
            if logical >= end:
                return
            if logical + length > start:
                yield Extent(logical, length, physical, flags)
                start = logical + length
            if flags & _LAST:
                return
        if count < EXTENTS_PER_CALL:
            return
        if start <= reached:  # a full answer without progress; no known kernel gives one
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def shared_bytes(fd: int) -> int:
    """Return the bytes in extents that other files or snapshots also refer to, 0 if the file system cannot
    tell."""
    total = 0
    with suppress(OSError):
        for extent in extents(fd, 0, _EVERYTHING, written=False):
            total += extent.length if extent.flags & _SHARED else 0
    return total


def holes(fd: int, size: int, start: int = 0) -> Iterator[tuple[int, int]]:
    """Yield (start, end) in bytes for the holes in the first `size` bytes, in order; none before `start`.

    A file system without support for holes reports none. The file's position is moved. A file that changes
    meanwhile gives some answer, and the iteration always ends, because each step is behind the one before.
    """
    at = start
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_HOLE)
            if start >= size:
                return
            end = min(os.lseek(fd, start, os.SEEK_DATA), size)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return  # not supported: everything counts as data
            # There is no data after `start`, or the file has become shorter than `at`.
            try:
                start = os.lseek(fd, at, os.SEEK_HOLE)
            except OSError:
                return
            end = size
        if end <= at or start < at:
            return
        if end > start:
            yield start, end
        at = end


HOLES_SUMMED = 65_536
"""Holes of a file that are summed up. Each costs two system calls."""


def data_bytes(fd: int, size: int, allocated: int) -> int:
    """Return the bytes outside of holes in the first `size` bytes. Of a file with very many holes, return
    `allocated`, what it takes on disk, if that is less than what is left without the first ones."""
    hollow = 0
    for number, (start, end) in enumerate(holes(fd, size)):
        hollow += end - start
        if number == HOLES_SUMMED:
            return min(size - hollow, allocated)
    return size - hollow


def data_ranges(fds: Sequence[int], size: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) in bytes for the parts of the first `size` bytes that are data in any of these open
    files, in order.

    Holes are found as by `holes`, and only in files that have fewer bytes on disk than `size`.
    """
    pending = []
    for fd in fds:
        found = os.fstat(fd)
        if found.st_blocks * 512 >= size:
            if size:
                yield 0, size
            return
        pending.append(holes(fd, size))
    at = 0
    for start, end in _common(pending):
        if at < start:
            yield at, start
        at = end
    if at < size:
        yield at, size


def _common(ranges: Sequence[Iterator[tuple[int, int]]]) -> Iterator[tuple[int, int]]:
    """The parts that are in a range of each of these sequences, which are in order."""
    now = [next(one, None) for one in ranges]
    while True:
        start, end = 0, None
        for one in now:
            if one is None:
                return
            start = max(start, one[0])
            end = one[1] if end is None else min(end, one[1])
        if end is None:
            return
        if start < end:
            yield start, end
        now = [
            next(rest, None) if one is not None and one[1] <= max(start, end) else one
            for one, rest in zip(now, ranges, strict=True)
        ]
