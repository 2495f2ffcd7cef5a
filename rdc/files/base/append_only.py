"""MadeEntries: the entries that an append-only Root may still change, because they were made through it."""

from __future__ import annotations

import errno
import os
from _thread import allocate_lock  # threading costs each side of a remote sync 1.4 ms

from rdc.files.base.syscalls import rename_no_replace

__all__ = ["CANNOT_LINK", "MadeEntries", "link_to_free_name", "rename_to_free_name"]

_NO_PROMISE = {errno.ENOSYS, errno.EINVAL}
"""Errors of old kernels, and of file systems (some network ones) that cannot promise to replace nothing."""

CANNOT_LINK = frozenset({errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM, errno.EMLINK})
"""Errors of file systems without hard links, and of entries that may have no further name."""


class MadeEntries:
    """The files, directories and links that one Root has made, by device and inode number.

    An entry is noted once it has its name. Nothing below an append-only Root is removed, so its inode number
    stays valid unless another process removes it. Each entry takes about 100 bytes.
    """

    __slots__ = ("_known", "_lock")

    def __init__(self) -> None:
        self._known: set[tuple[int, int]] = set()
        self._lock = allocate_lock()

    def note(self, made: os.stat_result) -> None:
        with self._lock:
            self._known.add((made.st_dev, made.st_ino))

    def has(self, found: os.stat_result) -> bool:
        return (found.st_dev, found.st_ino) in self._known


def rename_to_free_name(old: bytes, new: bytes, directory: int) -> None:
    """Rename the file or link `old` to `new` within `directory`, without ever replacing an entry.

    Where rename(2) cannot promise that, link(2) is used, which fails if the name is taken. Raises OSError;
    EEXIST if `new` is taken.
    """
    try:
        rename_no_replace(old, new, directory)
    except OSError as error:
        if error.errno not in _NO_PROMISE:
            raise
        link_to_free_name(old, new, directory)


def link_to_free_name(old: bytes, new: bytes, directory: int) -> None:
    """Do so in two steps. `old` is our temporary: nobody else puts a file there, so the second loses none.

    After a kill in between, a sweep removes the name that is left. Raises OSError; EEXIST if `new` is taken.
    """
    os.link(old, new, src_dir_fd=directory, dst_dir_fd=directory, follow_symlinks=False)
    os.unlink(old, dir_fd=directory)
