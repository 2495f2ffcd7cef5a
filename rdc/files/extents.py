"""FIEMAP: where the bytes of a file lie on disk, and what sharing them with another file would free."""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from fcntl import ioctl
from typing import NamedTuple

from rdc.model.instances import Sharing

__all__ = ["Extent", "compare_places", "extents"]

_FIEMAP = 0xC020660B
_HEAD = struct.Struct("=QQIIII")
_EXTENT = struct.Struct("=QQQQQI12x")
_SYNC = 0x1

EXTENTS_PER_CALL = 512
"""28 KB a call: a file of usual fragmentation in one, a million extents without holding them."""

_LAST = 0x1
_UNKNOWN = 0x2
_ENCODED = 0x8
_INLINE = 0x200
_TAIL = 0x400
_SHARED = 0x2000


@dataclass(frozen=True, slots=True)
class Extent:
    """One piece of a file on disk, in bytes."""

    start: int
    """In the file."""
    length: int
    physical: int
    """On the volume; of a compressed extent, where the whole of it begins."""
    flags: int
    """FIEMAP_EXTENT_* of linux/fiemap.h."""

    @property
    def end(self) -> int:
        return self.start + self.length

    @property
    def in_metadata(self) -> bool:
        """Its bytes lie among metadata, where nothing can share them."""
        return bool(self.flags & (_INLINE | _TAIL))

    @property
    def alone(self) -> bool:
        """Nothing else refers to it, and it takes its length on disk.

        SHARED does not say with how many: the last of them frees it, and who that is cannot be known.
        """
        return not self.flags & (_SHARED | _ENCODED | _UNKNOWN | _INLINE | _TAIL)

    def place(self, offset: int) -> int:
        """Where the byte at `offset` of the file lies."""
        return self.physical + (0 if self.flags & _ENCODED else offset - self.start)


def extents(fd: int, start: int, end: int) -> Iterator[Extent]:
    """The extents of the file open at `fd` that overlap [start, end), in order; holes are left out.

    Data not yet on disk is written there first (FIEMAP_FLAG_SYNC): before that it has no place. Raises
    OSError, EOPNOTSUPP where the file system cannot tell.
    """
    while start < end:
        request = bytearray(_HEAD.pack(start, end - start, _SYNC, 0, EXTENTS_PER_CALL, 0))
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
        if start <= reached:  # a full answer that brings nothing new: no kernel known gives it
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


class _Piece(NamedTuple):
    """The part of an extent within a range, relative to the range's start."""

    start: int
    end: int
    extent: Extent
    offset: int
    """Of the range's start in the file."""

    def place(self, at: int) -> int | None:
        return None if self.extent.in_metadata else self.extent.place(self.offset + at)


def compare_places(
    source: int, source_offset: int, destination: int, offset: int, length: int, *, whole_extents: bool
) -> Sharing:
    """What of the destination's range lies where the source's does, and what it holds alone.

    `length` is rounded up to blocks where the range ends with the file. `whole_extents`: the file system
    frees an extent only when all of it is given up (btrfs). Raises OSError as `extents` does.
    """
    others = _pieces(source, source_offset, length)
    other = next(others, None)
    same = own = perhaps = 0
    for piece in _pieces(destination, offset, length):
        extent = piece.extent
        inside = extent.start >= offset and extent.end <= offset + length
        alone = extent.alone and (inside or not whole_extents)
        at = piece.start
        while at < piece.end:
            while other is not None and other.end <= at:
                other = next(others, None)
            if other is None or other.start >= piece.end:
                stop, equal = piece.end, False
            elif other.start > at:
                stop, equal = other.start, False
            else:
                stop = min(piece.end, other.end)
                equal = other.place(at) is not None and other.place(at) == piece.place(at)
            if equal:
                same += stop - at
            elif not extent.in_metadata:
                own += (stop - at) * alone
                perhaps += (stop - at) * (not alone)
            at = stop
    return Sharing(same, own, perhaps)


def _pieces(fd: int, offset: int, length: int) -> Iterator[_Piece]:
    for extent in extents(fd, offset, offset + length):
        start, end = max(extent.start, offset), min(extent.end, offset + length)
        yield _Piece(start - offset, end - offset, extent, offset)
