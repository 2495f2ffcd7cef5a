"""What makes contents and renames outlast a power cut, and what does where a file system lacks it."""

from __future__ import annotations

import errno
import os

from rdc.files.syscalls import syncfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["sync_directory", "sync_file_systems"]


def sync_file_systems(fds: Iterable[int]) -> bool:
    """One syncfs for each file system that the open files are on; False when that is not possible or
    something failed."""
    try:
        for fd in {os.fstat(fd).st_dev: fd for fd in fds}.values():
            syncfs(fd)
    except OSError:
        return False
    return True


def sync_directory(directory: int, inside: int) -> None:
    """What was renamed in `directory`; both are descriptors, `inside` of a file in it. Raises OSError."""
    try:
        fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory)
    except PermissionError:
        # A drop box: names may be made but not read. The file system as a whole can still be synced.
        syncfs(inside)
        return
    try:
        os.fsync(fd)
    except OSError as error:
        # Some network file systems know no fsync of directories: their renames are done when they return.
        if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:
            raise
    finally:
        os.close(fd)
