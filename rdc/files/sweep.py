"""Removes temporaries whose writers are gone."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterable

from rdc.files.temporary import is_temporary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root

__all__ = ["sweep"]

_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def sweep(root: Root, path: bytes, names: Iterable[bytes]) -> int:
    """Remove the stale temporaries among `names` in the directory `path`; returns how many.

    `names` is what Root.list gave to `on_temporary`; other names are passed over. A temporary is stale when
    nobody holds its lock. A temporary symlink or directory has no lock and goes always: whoever was about to
    rename it makes another. What cannot be opened, locked or removed stays, without an error: litter harms
    nobody, and a later run of the right user takes it.
    """
    removed = 0
    for name in names:
        if is_temporary(name):
            directory = root.directory(path)
            try:
                removed += _sweep_one(name, directory.fd)
            except OSError:
                continue
    return removed


def _sweep_one(name: bytes, directory: int) -> bool:
    """Raises OSError where the temporary stays."""
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        os.unlink(name, dir_fd=directory)
        return True
    if stat.S_ISDIR(found.st_mode):
        os.rmdir(name, dir_fd=directory)
        return True
    if not stat.S_ISREG(found.st_mode):
        return False
    try:
        fd = os.open(name, os.O_RDWR | _OPEN, dir_fd=directory)
    except PermissionError:
        # It may have its final mode already. (Locks over a network want a descriptor open for writing.)
        fd = os.open(name, os.O_RDONLY | _OPEN, dir_fd=directory)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Under the lock: the name must still be this file's, for its writer may have finished in between.
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
        if not os.path.samestat(now, os.fstat(fd)):
            return False
        os.unlink(name, dir_fd=directory)
        return True
    finally:
        os.close(fd)
