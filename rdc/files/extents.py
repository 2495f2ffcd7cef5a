"""Where a file has holes, and how much of it shares its blocks with others: asked of the file system."""

from __future__ import annotations

import errno
import os
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["holes", "shared_bytes"]

# linux/fs.h, linux/fiemap.h: Python has no names for them.
_FS_IOC_FIEMAP = 0xC020660B
_EXTENT_LAST = 0x1
_EXTENT_SHARED = 0x2000
_HEAD = struct.Struct("=QQLLLL")
_EXTENT = struct.Struct("=QQQQQLLLL")

EXTENTS_AT_A_TIME = 256
"""14 KiB of answer, which is all that a usual file has."""


def holes(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """(start, end) in bytes of the holes among the first `size` bytes, in order.

    A file system that does not know of holes has none. The file's position is moved. A file that changes
    meanwhile gives some answer, never an endless one: each look is behind the one before.
    """
    at = 0
    while at < size:
        try:
            start = os.lseek(fd, at, os.SEEK_HOLE)
            if start >= size:
                return
            end = min(os.lseek(fd, start, os.SEEK_DATA), size)
        except OSError as error:
            if error.errno != errno.ENXIO:
                return  # not supported: it is all data
            # No data behind `start`, or the file has become shorter than `at`.
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


def shared_bytes(fd: int) -> int:
    """Bytes in extents that the file system says other files or snapshots refer to as well (FIEMAP).

    0 where it cannot tell.
    """
    if not sys.platform.startswith("linux"):
        return 0
    import fcntl

    total = start = 0
    request = bytearray(_HEAD.size + EXTENTS_AT_A_TIME * _EXTENT.size)
    while True:
        _HEAD.pack_into(request, 0, start, (1 << 64) - 1 - start, 0, 0, EXTENTS_AT_A_TIME, 0)
        try:
            fcntl.ioctl(fd, _FS_IOC_FIEMAP, request)
        except OSError:
            return total
        mapped = _HEAD.unpack_from(request, 0)[3]
        behind = start
        for number in range(min(mapped, EXTENTS_AT_A_TIME)):
            logical, _, length, _, _, flags, *_ = _EXTENT.unpack_from(
                request, _HEAD.size + number * _EXTENT.size
            )
            total += length if flags & _EXTENT_SHARED else 0
            behind = logical + length
            if flags & _EXTENT_LAST:
                return total
        if behind <= start:
            return total
        start = behind
