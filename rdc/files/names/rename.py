"""Moves a file or directory within its tree in one step: at any moment it is at one of the two paths.

Nothing can be lost: rename(2) changes only names, an entry at the new path stays (RENAME_NOREPLACE), and the
entry at the old path is checked first. A process that writes to the file meanwhile writes to the same file.
"""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum

from rdc.files.base.durability import CANNOT_SYNC
from rdc.files.base.entry_check import found_at, identity_of
from rdc.files.base.known_devices import honours_no_replace
from rdc.files.base.metadata import narrow_name, narrowed_metadata
from rdc.files.base.syscalls import rename_no_replace_between, syncfs
from rdc.files.base.taking_names import is_refused
from rdc.model.entries import Metadata
from rdc.model.times import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from rdc.files.root.root import Root
    from rdc.model.entries import Identity

__all__ = ["Moved", "make_durable", "move_directory", "move_file"]

_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class Moved(Enum):
    """Outcomes of a move."""

    DONE = "done"
    CHANGED = "changed"
    """The old path no longer holds the expected file. Nothing was done."""
    SHARED = "shared"
    """The file has other names, whose metadata would change with it. Nothing was done."""
    IMPOSSIBLE = "impossible"
    """The file system or the rights do not allow it. Nothing was done; the caller may copy instead."""


def move_file(
    root: Root, old: bytes, new: bytes, expected: Identity, wanted: Metadata, *, owner: bool
) -> Moved:
    """Rename the regular file at `old`, identified by `expected`, to `new`, where no entry may be.

    The directories of `old` may exclude users that those of `new` admit. So before the rename the file loses
    the rights of group and others that `wanted` does not grant. The caller sets the rest of `wanted`
    afterwards. A move that then fails can leave the file narrowed.

    Raises FileError if an entry is at `new`, its directory is missing, or `root` is append-only.
    """
    root.check_change(old, "move it")
    there, old_name = root.locate(old)
    try:
        here, new_name = root.locate(new, fresh=True)
        try:
            found = os.stat(old_name, dir_fd=there.fd, follow_symlinks=False)
        except FileNotFoundError:
            return Moved.CHANGED
        if not stat.S_ISREG(found.st_mode) or not root.check.is_still(expected, identity_of(found)):
            return Moved.CHANGED
        if found.st_nlink > 1:
            return Moved.SHARED
        if found.st_dev != os.fstat(here.fd).st_dev:
            return Moved.IMPOSSIBLE
        if not (honours_no_replace(here.fd) and root.storage.facts.steady):
            return Moved.IMPOSSIBLE  # the rename could replace an entry, or would change the mtime
        before = identity_of(found)
        if root.undo is not None:
            closed = found.st_mode
            if root.sheds_acls:
                from rdc.files.base.access_acl import read_acl

                closed &= ~_OTHERS if read_acl(there.fd, old_name) else ~0
            root.undo.moving(old, new, found, narrowed_metadata(found, wanted, owner=owner, mode=closed))
        if root.sheds_acls:
            from rdc.files.base.access_acl import take_acl

            take_acl(old_name, there.fd, found)
            found = os.stat(old_name, dir_fd=there.fd, follow_symlinks=False)
        narrow_name(old_name, there.fd, found, wanted, owner=owner and not root.fakes)
        rename_no_replace_between(old_name, there.fd, new_name, here.fd)
        root.check.note_named(before, found_at(new_name, here.fd))
        if root.undo is not None:
            root.undo.changed(new, os.stat(new_name, dir_fd=here.fd, follow_symlinks=False))
    except OSError as error:
        # Across file systems, without the rights, or where a rename cannot promise to replace nothing.
        if error.errno == errno.EXDEV or is_refused(error):
            return Moved.IMPOSSIBLE
        raise root.failure(error, new, "move a file there") from error
    return Moved.DONE


def move_directory(root: Root, old: bytes, new: bytes) -> bool:
    """Rename the directory at `old`, with its contents, to `new`, where no entry may be.

    Returns False if that is impossible here; nothing was done then. Raises FileError if an entry is at `new`,
    its directory is missing, or `root` is append-only.
    """
    root.check_change(old, "move the directory")
    there, old_name = root.locate(old)
    try:
        here, new_name = root.locate(new, fresh=True)
        try:
            found = os.stat(old_name, dir_fd=there.fd, follow_symlinks=False)
        except FileNotFoundError:
            return False
        if not (stat.S_ISDIR(found.st_mode) and honours_no_replace(here.fd)):
            return False
        if root.undo is not None:
            now = stat.S_IMODE(found.st_mode), packed_time(found.st_mtime_ns), found.st_uid, found.st_gid
            root.undo.moving(old, new, found, Metadata(*now))
        rename_no_replace_between(old_name, there.fd, new_name, here.fd)
    except OSError as error:
        if error.errno == errno.EXDEV or is_refused(error):
            return False
        raise root.failure(error, new, "move a directory there") from error
    finally:
        # Cached descriptors below `old` are keyed by paths that are wrong now.
        root.forget(old)
    return True


def make_durable(root: Root, directories: Iterable[bytes]) -> None:
    """Make the renames into `directories` durable. The caller passes one directory per file system. Raises
    RdcError."""
    for path in directories:
        directory = root.directory(path)
        try:
            fd = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=directory.fd)
        except OSError as error:
            raise root.failure(error, path, "make the moves into it durable") from error
        try:
            syncfs(fd)
        except OSError as error:
            if error.errno not in CANNOT_SYNC:
                raise root.failure(error, path, "make the moves into it durable") from error
            os.sync()
        finally:
            os.close(fd)
