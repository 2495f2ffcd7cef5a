"""Which files can share blocks with each other, and in what units."""

from __future__ import annotations

import os
import sys
from fcntl import ioctl

from rdc.lean.records import dataclass

__all__ = ["Volume", "inode_flags", "leave_out_checksums", "volume_of"]

_BTRFS_IOC_FS_INFO = 0x8400941F
_FS_INFO_BYTES = 1024
_FSID = slice(16, 32)

_FS_IOC_GETFLAGS = 0x80086601
_FS_IOC_SETFLAGS = 0x40086602
_NOT_COPIED_ON_WRITE = 0x800000  # FS_NOCOW_FL of linux/fs.h

_BLOCK_MIN, _BLOCK_MAX = 512, 1 << 20
"""Bytes. The smallest unit a device writes, and more than the block size of any file system."""


@dataclass(frozen=True, slots=True)
class Volume:
    id: bytes
    """Equal for files that can share blocks. All subvolumes of a btrfs have one id but different device
    numbers. Its files without data checksums (`chattr +C`) have an id of their own: they share only with each
    other."""
    block_size: int
    """Bytes. Offsets of shared ranges are multiples of it."""
    whole_extents: bool
    """Whether space is freed only by whole extents, not by blocks."""

    def rounded(self, length: int) -> int:
        """Return `length` rounded up to whole blocks."""
        return -(-length // self.block_size) * self.block_size


def volume_of(fd: int) -> Volume:
    """Return the volume of an open file. Raises OSError."""
    block = os.fstatvfs(fd).f_bsize
    if block & (block - 1) or not _BLOCK_MIN <= block <= _BLOCK_MAX:
        block = _BLOCK_MAX
    fsid = _btrfs_id(fd)
    if fsid is not None:
        unchecked = b" +C" if inode_flags(fd) & _NOT_COPIED_ON_WRITE else b""
        return Volume(b"btrfs " + fsid + unchecked, block, True)
    return Volume(b"device %d" % os.fstat(fd).st_dev, block, False)


def _btrfs_id(fd: int) -> bytes | None:
    """Return the UUID of a btrfs file system, or None for any other. The ioctl needs no privileges."""
    answer = bytearray(_FS_INFO_BYTES)
    try:
        ioctl(fd, _BTRFS_IOC_FS_INFO, answer, True)
    except OSError:
        return None
    return bytes(answer[_FSID])


def inode_flags(fd: int) -> int:
    """Return the flags that lsattr(1) shows of an open file, 0 if the file system has none."""
    answer = bytearray(8)
    try:
        ioctl(fd, _FS_IOC_GETFLAGS, answer, True)
    except OSError:
        return 0
    # The kernel writes an int, whatever the size in the number of the call says.
    return int.from_bytes(answer[:4], sys.byteorder)


def leave_out_checksums(fd: int, like: int) -> None:
    """Have a new, empty file be without data checksums if the open file `like` is, so that the two can share
    blocks. Raises OSError."""
    if inode_flags(like) & _NOT_COPIED_ON_WRITE:
        wanted = inode_flags(fd) | _NOT_COPIED_ON_WRITE
        ioctl(fd, _FS_IOC_SETFLAGS, bytearray(wanted.to_bytes(4, sys.byteorder) + bytes(4)), True)
