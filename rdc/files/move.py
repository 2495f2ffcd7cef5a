"""Moves a file or directory to another path of the same tree in one step: at any moment it is at one of both.

Why nothing can be lost: rename(2) changes names only; what is at the new path stays (RENAME_NOREPLACE), and
what is at the old path is looked at first. Whoever writes to the file meanwhile writes to the same file.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum

from rdc.files.source import identity_of
from rdc.files.syscalls import rename_no_replace_between, syncfs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.files.confined import Root
    from rdc.model.entries import Identity

__all__ = ["Moved", "make_durable", "move_directory", "move_file"]

# Other file systems, rights, old kernels, file systems that cannot promise to replace nothing.
_CANNOT = {errno.EXDEV, errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EINVAL}


class Moved(Enum):
    """What came of a move."""

    DONE = "done"
    CHANGED = "changed"
    """What is at the old path is no more the file that was meant; nothing was done."""
    SHARED = "shared"
    """The file has other names, whose metadata would change with it; nothing was done."""
    IMPOSSIBLE = "impossible"
    """Not here; nothing was done, and a copy may do."""


def move_file(root: Root, old: bytes, new: bytes, expected: Identity) -> Moved:
    """Renames the regular file at `old`, as `expected` describes it, to `new`, where nothing may be.

    Raises FileError when something is at `new`, or its directory is missing.
    """
    there, old_name = root.locate(old)
    try:
        here, new_name = root.locate(new, fresh=True)
        try:
            found = os.stat(old_name, dir_fd=there.fd, follow_symlinks=False)
        except FileNotFoundError:
            return Moved.CHANGED
        if not stat.S_ISREG(found.st_mode) or identity_of(found) != expected:
            return Moved.CHANGED
        if found.st_nlink > 1:
            return Moved.SHARED
        rename_no_replace_between(old_name, there.fd, new_name, here.fd)
    except OSError as error:
        if error.errno in _CANNOT:
            return Moved.IMPOSSIBLE
        raise root.failure(error, new, "move a file there") from error
    return Moved.DONE


def move_directory(root: Root, old: bytes, new: bytes) -> bool:
    """Renames the directory at `old`, with all that is in it, to `new`, where nothing may be.

    False when that cannot be done here; nothing was then. Raises FileError when something is at `new`, or its
    directory is missing.
    """
    there, old_name = root.locate(old)
    try:
        here, new_name = root.locate(new, fresh=True)
        try:
            found = os.stat(old_name, dir_fd=there.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not stat.S_ISDIR(found.st_mode):
            return False
        rename_no_replace_between(old_name, there.fd, new_name, here.fd)
    except OSError as error:
        if error.errno in _CANNOT:
            return False
        raise root.failure(error, new, "move a directory there") from error
    finally:
        # Descriptors that are kept of what is below are found by paths that are wrong now.
        root.forget(old)
    return True


def make_durable(root: Root, directories: Iterable[bytes]) -> None:
    """Brings to disk what was renamed into `directories`: one of each file system is enough."""
    for path in directories:
        directory = root.directory(path)
        try:
            fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
        except OSError as error:
            raise root.failure(error, path, "make the moves into it durable") from error
        try:
            syncfs(fd)
        except OSError as error:
            if error.errno != errno.ENOSYS:
                raise root.failure(error, path, "make the moves into it durable") from error
            os.sync()
        finally:
            os.close(fd)
