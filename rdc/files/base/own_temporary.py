"""Decides which entries with a reserved name rdc itself made. Only those may be removed or built upon.

An entry is our own temporary if all of these hold:

1. `temporary_name` gives its name: the check digits are right. The form of the name alone does not count.
2. It is a regular file, a symbolic link or a directory.
3. It belongs to the effective user of this process. A process of root may already have given it to its
   final owner. Then another owner is accepted if only root and the owner of the directory can make entries
   in that directory.

An own regular file with one name is a partial copy: it may serve as a base, and it may be removed. One with
several names is an unfinished hard link: only this name may be removed, and the content stays under the
others. A directory is removed only when it is empty, or has nothing but what a trial of the file system
leaves after a kill (rdc.files.facts.learned_facts). No other entry with a reserved name is opened for
writing, changed, renamed or removed.
"""

from __future__ import annotations

import os
import stat

from rdc.files.base.temporary_names import is_temporary

__all__ = ["is_own_partial", "is_own_temporary"]

_KINDS = {stat.S_IFREG, stat.S_IFLNK, stat.S_IFDIR}


def is_own_temporary(name: bytes, found: os.stat_result, directory: os.stat_result) -> bool:
    """Return whether the entry `name` is our own temporary, by the rules of this module.

    `found` is its lstat, `directory` the stat of its directory.
    """
    if not is_temporary(name) or stat.S_IFMT(found.st_mode) not in _KINDS:
        return False
    user = os.geteuid()
    if found.st_uid == user:
        return True
    # If the directory has an ACL, its group bits are the mask, so they also cover users the ACL names.
    return user == 0 and not directory.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def is_own_partial(name: bytes, found: os.stat_result, directory: os.stat_result) -> bool:
    """Return whether the entry is our own partial copy: a regular own temporary with no other name."""
    own = is_own_temporary(name, found, directory)
    return own and stat.S_ISREG(found.st_mode) and found.st_nlink == 1
