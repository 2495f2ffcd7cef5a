"""FICLONERANGE: makes a range of one file share the blocks of a range of another.

The kernel shares the range as it is at one moment, under the locks of both files. Nothing is read or written.
ioctl_ficlonerange(2) is the source of the structure and rules.
"""

from __future__ import annotations

import errno
import struct
from fcntl import ioctl

__all__ = ["LASTING_REFUSALS", "clone_range"]

_FICLONERANGE = 0x4020940D
_RANGE = struct.Struct("=qQQQ")

LASTING_REFUSALS = frozenset((errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EXDEV, errno.EPERM))
"""Errors that concern two file systems, or this process, rather than one pair of files."""


def clone_range(source: int, offset: int, length: int, destination: int, at: int) -> None:
    """Share `length` bytes at `offset` of one open file at `at` of another, in place of what was there.

    Offsets are multiples of the file system's block size. So is `length`, unless the source ends there and
    the destination ends there or before. Raises OSError; parts of the range may be shared then.
    """
    ioctl(destination, _FICLONERANGE, _RANGE.pack(source, offset, length, at))
