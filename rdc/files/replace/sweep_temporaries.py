"""Removes temporaries of rdc whose writers have died."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterable

from rdc.files.base.directory_descriptors import same_entry
from rdc.files.base.paths import PARTS_NAME, is_reserved, is_temporary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root


# Decides which entries with a reserved name rdc itself made. Only those may be removed or built upon.
#
# An entry is our own temporary if all of these hold:
#
# 1. `temporary_name` gives its name: the check digits are right. The form of the name alone does not count.
# 2. It is a regular file, a symbolic link or a directory.
# 3. It belongs to the effective user of this process. A process of root may already have given it to its
#    final owner. Then another owner is accepted if only root and the owner of the directory can make entries
#    in that directory.
#
# An own regular file with one name is a partial copy: it may serve as a base, and it may be removed. One with
# several names is an unfinished hard link: only this name may be removed, and the content stays under the
# others. A directory is removed only when it is empty, or has nothing but what a trial of the file system
# leaves after a kill (rdc.files.facts.file_systems). No other entry with a reserved name is opened for
# writing, changed, renamed or removed.

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


_OPEN = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


def sweep_temporaries(root: Root, path: bytes, names: Iterable[bytes]) -> int:
    """Remove the stale temporaries among `names` in the directory `path`; return how many were removed.

    `names` are the reserved ones of a Listed; other names are ignored. Only rdc's own temporaries
    are removed (rdc.files.replace.sweep_temporaries). A file is stale if nobody holds its lock. Symlinks and
    empty directories have no lock and are always removed: a writer that loses one makes another. What a
    trial of the file system left goes if nobody holds the lock of its directory.

    An entry that cannot be opened, locked or removed stays without an error, for a later run. Below an
    append-only root all stay.
    """
    if root.append_only:
        return 0
    removed = 0
    for name in names:
        if is_reserved(name):
            directory = root.directory(path)
            if root.writes.undo is not None and is_temporary(name):
                root.writes.undo.entering(path, directory.fd)
            try:
                removed += _sweep_one(name, directory.fd)
            except OSError:
                continue
    return removed


def foreign_names(root: Root, path: bytes, names: Iterable[bytes]) -> list[bytes]:
    """Return those of the reserved `names` in the directory `path` that exist and are neither rdc's own
    temporaries nor its own record of parts.

    Raises FileError if the directory cannot be opened.
    """
    directory = root.directory(path)
    found = []
    for name in names:
        try:
            entry = os.stat(name, dir_fd=directory.fd, follow_symlinks=False)
            own = is_own_temporary(name, entry, os.fstat(directory.fd))
            own = own or (name == PARTS_NAME and _is_own_record(entry))
        except OSError:
            continue  # gone
        if not own:
            found.append(name)
    return found


def _is_own_record(found: os.stat_result) -> bool:
    from rdc.files.replace.partial_directory import is_own_record  # few runs find one

    return is_own_record(found)


def _remove_directory(name: bytes, directory: int) -> None:
    """Remove a temporary directory that is empty, or that a trial of the file system left. Raises OSError."""
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        from rdc.files.facts.file_systems import empty_leftover  # few runs find one

        empty_leftover(name, directory)
        os.rmdir(name, dir_fd=directory)


def _sweep_one(name: bytes, directory: int) -> bool:
    """Remove one stale temporary; return whether it was removed. Raises OSError if it stays."""
    found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    if not is_own_temporary(name, found, os.fstat(directory)):
        return False
    if stat.S_ISLNK(found.st_mode):
        os.unlink(name, dir_fd=directory)
        return True
    if stat.S_ISDIR(found.st_mode):
        _remove_directory(name, directory)
        return True
    try:
        fd = os.open(name, os.O_RDWR | _OPEN, dir_fd=directory)
    except PermissionError:
        # It may have its final mode already. Opening for writing comes first because locks over a network
        # need it.
        fd = os.open(name, os.O_RDONLY | _OPEN, dir_fd=directory)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Checked under the lock: the writer may have finished in between, and the name may be another file's.
        now = os.stat(name, dir_fd=directory, follow_symlinks=False)
        opened = os.fstat(fd)
        if not (same_entry(now, opened) and is_own_temporary(name, opened, os.fstat(directory))):
            return False
        os.unlink(name, dir_fd=directory)
        return True
    finally:
        os.close(fd)
