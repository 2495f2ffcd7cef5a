"""Which files can share blocks with each other, and in what units."""

from __future__ import annotations

import os
from fcntl import ioctl

from rdc.records import dataclass

__all__ = ["Volume", "volume_of"]

_BTRFS_IOC_FS_INFO = 0x8400941F
_FS_INFO_BYTES = 1024
_FSID = slice(16, 32)

_BLOCK_MIN, _BLOCK_MAX = 512, 1 << 20
"""Bytes: what a device can write at least, and more than any file system's block."""


@dataclass(frozen=True, slots=True)
class Volume:
    id: bytes
    """Equal for files that can share blocks: subvolumes of a btrfs have a device number each and one id."""
    block_size: int
    """Bytes: offsets of what is shared are multiples of it."""
    whole_extents: bool
    """Space is given back by whole extents only, not by blocks."""

    def rounded(self, length: int) -> int:
        """`length` in whole blocks: what the end of a file takes."""
        return -(-length // self.block_size) * self.block_size


def volume_of(fd: int) -> Volume:
    """The volume of an open file. Raises OSError."""
    block = os.fstatvfs(fd).f_bsize
    if block & (block - 1) or not _BLOCK_MIN <= block <= _BLOCK_MAX:
        block = _BLOCK_MAX
    fsid = _btrfs_id(fd)
    if fsid is not None:
        return Volume(b"btrfs " + fsid, block, True)
    return Volume(b"device %d" % os.fstat(fd).st_dev, block, False)


def _btrfs_id(fd: int) -> bytes | None:
    """The file system's UUID where it is a btrfs (btrfs's own ioctl, for everybody); None elsewhere."""
    answer = bytearray(_FS_INFO_BYTES)
    try:
        ioctl(fd, _BTRFS_IOC_FS_INFO, answer, True)
    except OSError:
        return None
    return bytes(answer[_FSID])
