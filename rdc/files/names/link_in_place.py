"""link_file: gives a file another name in its tree, in one step, in place of the file or link there."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from enum import Enum

from rdc.files.base.append_only import rename_to_free_name
from rdc.files.base.entry_check import ANYTHING, found_at, identity_of
from rdc.files.base.known_devices import stable_fields
from rdc.files.base.taking_names import is_refused
from rdc.files.base.temporary_names import make_aside
from rdc.model.entries import ComparedFields, is_same_entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.base.entry_check import Expected
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity

__all__ = ["Linked", "link_file"]

ATTEMPTS = 16
"""How often the link is made. A sweep can remove the temporary name before the rename, and no lock prevents
that, since a lock would belong to the file under all its names. That happening 16 times is a fault."""


_WITHOUT_INODES = ComparedFields(inode=False, ctime=False)


class Linked(Enum):
    """Outcomes of `link_file`."""

    DONE = "done"
    CHANGED = "changed"
    """The old name is no longer the expected file. Nothing was done."""
    IMPOSSIBLE = "impossible"
    """The file system or the rights do not allow it. Nothing was done; the caller may write a separate file.
    """


def link_file(
    root: Root,
    old: bytes,
    new: bytes,
    expected: Identity,
    *,
    replaces: Expected = ANYTHING,
    origin: Root | None = None,
) -> Linked:
    """Make `new` a name of the regular or special file at `old`, if it is the one `expected` identifies.

    At any moment `new` names its former entry or this file. An empty directory there is replaced; another
    directory is a FileError. A kill in between leaves a temporary name, which holds no content of its own.
    What is replaced gets its backup, if `root` has backups. `origin`: the tree that `old` is in; None for
    `root`.

    Raises FileError if what `new` names is not what the link `replaces`, and if `root` is append-only and
    `new` is taken. Raises OutOfSpaceError, and RdcError (exit code 11) if the write quota is used up.
    """
    # long because each step is safe only because of the checks before it
    if not root.storage.facts.hard_links:
        return Linked.IMPOSSIBLE
    root.spend(new, 0, entries=1)
    there, old_name = (root if origin is None else origin).locate(old)
    here, new_name = root.locate(new, fresh=True)

    def link(name: bytes) -> None:
        os.link(old_name, name, src_dir_fd=there.fd, dst_dir_fd=here.fd, follow_symlinks=False)

    try:
        before = os.stat(old_name, dir_fd=there.fd, follow_symlinks=False) if root.undo is not None else None
        if root.append_only and _is_taken(new_name, here.fd):
            # Checked first, because a temporary name would already change the ctime of the old file.
            raise root.append_only_refusal(new, "make it a hard link")
        root.note_entering(new, here.fd)
        for attempt in range(ATTEMPTS):
            temporary = make_aside(new_name, link)
            try:
                found = os.stat(temporary, dir_fd=here.fd, follow_symlinks=False)
                if stat.S_ISLNK(found.st_mode) or not _is_linked(expected, found):
                    return Linked.CHANGED
                ctime_ns = 0 if before is None else before.st_ctime_ns
                if root.append_only:
                    root.note_placing(new, here.fd, found, ctime_ns=ctime_ns)
                    rename_to_free_name(temporary, new_name, here.fd)
                else:
                    root.replace_by_name(new, temporary, here.fd, replaces, ctime_ns=ctime_ns)
                if origin is None:
                    root.check.note_named(expected, found_at(new_name, here.fd))
                if root.undo is not None:
                    root.undo.changed(new, os.stat(new_name, dir_fd=here.fd, follow_symlinks=False))
                return Linked.DONE
            except FileNotFoundError:
                if attempt == ATTEMPTS - 1:
                    raise
            finally:
                # The temporary name is still there after a failure. It is also there if both were names of
                # one file already, because rename(2) then does nothing.
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=here.fd)
    except OSError as error:
        if root.append_only and error.errno == errno.EEXIST:
            raise root.append_only_refusal(new, "make it a hard link") from error
        # Across file systems, at the maximum of links, to a file of another user, or where there are none.
        if error.errno == errno.EXDEV or is_refused(error):
            return Linked.IMPOSSIBLE
        raise root.failure(error, new, "make it a hard link") from error
    return Linked.CHANGED


def _is_linked(expected: Identity, found: os.stat_result) -> bool:
    """Return whether a new name, with this stat, is one of the expected entry. The name changed its ctime;
    where inode numbers are not stable, size and mtime decide."""
    if found.st_dev != expected.device:
        return False
    if stable_fields(found.st_dev).inode:
        return found.st_ino == expected.inode
    return is_same_entry(expected, identity_of(found), _WITHOUT_INODES)


def _is_taken(name: bytes, directory: int) -> bool:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=directory, follow_symlinks=False)
        return True
    return False
