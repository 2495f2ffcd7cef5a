"""The file system of an open file: a lasting identifier, and what its change times prove."""

from __future__ import annotations

import os
from enum import Enum

from rdc.files.base.entry_path import path_of_directory
from rdc.files.base.known_devices import VOLATILE_TYPES
from rdc.files.base.syscalls import file_system_type
from rdc.lean.records import dataclass

__all__ = ["ChangeTimes", "FileSystem", "file_system_of", "path_of", "type_of"]


class ChangeTimes(Enum):
    """What an unchanged ctime proves."""

    LOCAL = "local"
    """Every change sets it, from this kernel's own clock (CLOCK_REALTIME_COARSE)."""
    DISTANT = "distant"
    """Every change sets it, from another clock, such as a file server's."""
    NONE = "none"
    """It proves nothing: the file system keeps no change time, or one that can be set back."""

    @property
    def proves_nothing(self) -> bool:
        return self is ChangeTimes.NONE


@dataclass(frozen=True, slots=True)
class FileSystem:
    id: int
    """64 bits. Stable over a reboot if the file system has an identifier of its own."""
    change_times: ChangeTimes


# f_type of statfs(2), from linux/magic.h and the file systems' own headers. On these, this kernel keeps
# inodes and their ctimes. An unlisted type counts as DISTANT, which only costs time.
_LOCAL = {
    0xEF53: "ext2, ext3, ext4",
    0x58465342: "xfs",
    0x9123683E: "btrfs",
    0x01021994: "tmpfs",
    0x858458F6: "ramfs",
    0xF2F52010: "f2fs",
    0x2FC12FC1: "zfs",
    0xCA451A4E: "bcachefs",
    0x794C7630: "overlayfs",
    0x3153464A: "jfs",
    0x52654973: "reiserfs",
    0x3434: "nilfs2",
}


def file_system_of(fd: int) -> FileSystem:
    """Return the file system that `fd` is on. Raises OSError.

    `id` is f_fsid of statfs(2). ext4, btrfs, f2fs, zfs and others derive it from the volume's UUID, xfs from
    the device number. Where it is 0 (some network file systems), st_dev is used. Both may change over a
    reboot, and then a look-up finds nothing.

    A false match would need a file on another file system with the same inode number, size, mtime and ctime
    to the nanosecond. ctimes can be copied only by copying the whole volume, content included.
    """
    id_ = os.fstatvfs(fd).f_fsid or os.fstat(fd).st_dev
    kind = type_of(fd)
    times = (
        ChangeTimes.LOCAL
        if kind in _LOCAL
        else ChangeTimes.NONE
        if kind in VOLATILE_TYPES
        else ChangeTimes.DISTANT
    )
    return FileSystem(id_ & 0xFFFF_FFFF_FFFF_FFFF, times)


def path_of(fd: int) -> bytes:
    """Return the absolute path of `fd` as this system sees it now, or b"" if it cannot tell: without /proc,
    it cannot of a file."""
    try:
        return path_of_directory(fd)
    except OSError:
        return b""


def type_of(fd: int) -> int:
    """Return f_type of statfs(2), or 0 if it is not available."""
    try:
        return file_system_type(fd)
    except OSError:
        return 0
