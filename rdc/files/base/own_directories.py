"""Finds out whether an open directory is one that only rdc works in, or lies in one (`OWN_DIRECTORIES`).

Its path does not prove that: a symlink, a short name or a bind mount may lead to it. So each directory on the
way up is compared with what the reserved names name in the directory above it.
"""

from __future__ import annotations

import os
from contextlib import suppress

from rdc.files.base.temporary_names import OWN_DIRECTORIES
from rdc.limits.wire import PATH_DEPTH

__all__ = ["lies_in_own_directory"]

_ABOVE = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


def lies_in_own_directory(fd: int) -> bool:
    """Return whether the directory open at `fd` is an own directory of rdc or below one.

    The way up ends where this process may go no further. Raises OSError if `fd` is no open directory.
    """
    current, found = os.dup(fd), os.fstat(fd)
    try:
        for _ in range(PATH_DEPTH):
            try:
                above = os.open(b"..", _ABOVE, dir_fd=current)
            except OSError:
                return False
            os.close(current)
            current = above
            there = os.fstat(above)
            if os.path.samestat(there, found):
                return False
            for name in OWN_DIRECTORIES:
                with suppress(OSError):
                    if os.path.samestat(os.stat(name, dir_fd=above, follow_symlinks=False), found):
                        return True
            found = there
    finally:
        os.close(current)
    return False
