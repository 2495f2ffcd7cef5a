"""Makes contents and renames survive a power cut, with fallbacks for file systems that lack a call."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

from rdc.files.base.syscalls import full_fsync, syncfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rdc.files.base.directory_descriptors import Directory

__all__ = [
    "CANNOT_SYNC",
    "flush",
    "make_durable",
    "sync_directory",
    "sync_directory_at",
    "sync_directory_of",
    "sync_file_systems",
]

CANNOT_SYNC = frozenset({errno.EINVAL, errno.EOPNOTSUPP, errno.ENOSYS})
"""Errors of file systems that do not sync: what they hold is as durable as they make it by themselves."""

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_MACOS = sys.platform == "darwin"

SYNCFS_FROM = 16
"""From this many files and directories on, one syncfs replaces their fsyncs. In a batch it is cheaper; for
few files it would mostly wait for unrelated writes."""


def flush(fd: int) -> int:
    """Make an open file or directory durable. Return 0, or the errno where the file system does not do that.
    Raises OSError."""
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise
        return error.errno or 0
    if _MACOS:
        with suppress(OSError):  # a volume that cannot has done what it can
            full_fsync(fd)
    return 0


def sync_file_systems(fds: Iterable[int]) -> bool:
    """Call syncfs once per file system of the open files. Return False if it is missing or failed."""
    try:
        for fd in {os.fstat(fd).st_dev: fd for fd in fds}.values():
            syncfs(fd)
    except OSError:
        return False
    return True


def make_durable(fds: Sequence[int], directories: Iterable[Directory] = ()) -> None:
    """Make open files, and the names in directories, durable together. Raises OSError."""
    distinct: dict[tuple[int, int], Directory] = {}
    for directory in directories:
        found = os.fstat(directory.fd)
        distinct[found.st_dev, found.st_ino] = directory
    if len(fds) + len(distinct) >= SYNCFS_FROM and _sync_volumes(fds, distinct):
        return
    for fd in fds:
        flush(fd)
    for (device, _), directory in distinct.items():
        try:
            opened = os.open(b".", _DIRECTORY, dir_fd=directory.fd)
        except PermissionError:
            # A directory that may be written but not read. Syncing the whole file system still works.
            inside = [fd for fd in fds if os.fstat(fd).st_dev == device]
            _sync_whole(inside[0]) if inside else os.sync()
            continue
        _sync_and_close(opened)


def _sync_volumes(fds: Sequence[int], directories: dict[tuple[int, int], Directory]) -> bool:
    """Call syncfs once per file system. Return False if it is missing or failed."""
    try:
        devices = {os.fstat(fd).st_dev: fd for fd in fds}
        for fd in devices.values():
            syncfs(fd)
        for device, directory in {device: one for (device, _), one in directories.items()}.items():
            if device not in devices:
                opened = os.open(b".", _DIRECTORY, dir_fd=directory.fd)
                try:
                    syncfs(opened)
                finally:
                    os.close(opened)
    except OSError:
        return False
    return True


def sync_directory(directory: int, inside: int) -> None:
    """Make the renames in `directory` durable. `inside` is the descriptor of a file in it. Raises OSError."""
    try:
        fd = os.open(b".", _DIRECTORY, dir_fd=directory)
    except PermissionError:
        # A directory that may be written but not read. Syncing the whole file system still works.
        _sync_whole(inside)
        return
    _sync_and_close(fd)


def _sync_whole(fd: int) -> None:
    try:
        syncfs(fd)
    except OSError as error:
        if error.errno not in CANNOT_SYNC:
            raise
        os.sync()  # every file system, and without a report of what was lost


def sync_directory_at(name: bytes, directory: int) -> None:
    """Make the changes to names in the directory `name` of an open directory durable. Raises OSError."""
    try:
        fd = os.open(name, _DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
    except PermissionError:
        return  # it may not be read: its names become durable with the file system's next commit
    _sync_and_close(fd)


def sync_directory_of(path: bytes) -> None:
    """Make the creation, replacement or removal of `path` durable, for files outside any tree. Raises
    OSError."""
    try:
        fd = os.open(os.path.dirname(path) or b".", _DIRECTORY)
    except PermissionError:
        return  # it may not be read: as in sync_directory_at
    _sync_and_close(fd)


def _sync_and_close(fd: int) -> None:
    try:
        flush(fd)
    except OSError as error:
        # Some network file systems do not sync directories: their renames are durable when they return.
        if error.errno not in {errno.EPERM, errno.EACCES, errno.EBADF}:
            raise
    finally:
        os.close(fd)
