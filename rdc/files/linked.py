"""Gives a file of a tree another name in it, in one step, in place of whatever file or link has that name."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from enum import Enum

from rdc.files.exchange import file_over_directory
from rdc.files.temporary import temporary_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root
    from rdc.model.entries import Identity

__all__ = ["Linked", "link_file"]

ATTEMPTS = 16
"""A sweep can take the temporary name before the rename, and no lock keeps it away, since a lock would be the
file's, whatever its name. Once is rare, 16 times is a fault."""

# Other file systems, as many names as there can be, other people's files, file systems without hard links.
_CANNOT = {errno.EXDEV, errno.EMLINK, errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}


class Linked(Enum):
    """What came of it."""

    DONE = "done"
    CHANGED = "changed"
    """What is at the old name is no more the file that was meant; nothing was done."""
    IMPOSSIBLE = "impossible"
    """Not here; nothing was done, and a file of its own may do."""


def link_file(root: Root, old: bytes, new: bytes, expected: Identity) -> Linked:
    """Makes `new` a name of the regular file at `old`, which is the one that `expected` tells of.

    At any moment `new` names what it named before or this file. An empty directory there gives way, another
    is a FileError. A kill in between leaves a temporary, which is a name and no content. Raises FileError,
    OutOfSpaceError, RdcError (11) where no more may be made below `root`.
    """
    root.spend(new, 0, entries=1)
    there, old_name = root.locate(old)
    here, new_name = root.locate(new, fresh=True)
    try:
        for attempt in range(ATTEMPTS):
            temporary = temporary_name(new_name)
            os.link(old_name, temporary, src_dir_fd=there.fd, dst_dir_fd=here.fd, follow_symlinks=False)
            try:
                found = os.stat(temporary, dir_fd=here.fd, follow_symlinks=False)
                same = (found.st_dev, found.st_ino) == (expected.device, expected.inode)
                if not (same and stat.S_ISREG(found.st_mode)):
                    return Linked.CHANGED
                _rename(temporary, new_name, here.fd)
                return Linked.DONE
            except FileNotFoundError:
                if attempt == ATTEMPTS - 1:
                    raise
            finally:
                # It is still there where something failed, and where both were names of one file already, of
                # which rename(2) makes nothing at all.
                with suppress(OSError):
                    os.unlink(temporary, dir_fd=here.fd)
    except OSError as error:
        if error.errno in _CANNOT:
            return Linked.IMPOSSIBLE
        raise root.failure(error, new, "make it a hard link") from error
    return Linked.CHANGED


def _rename(temporary: bytes, name: bytes, directory: int) -> None:
    try:
        os.rename(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except IsADirectoryError:
        file_over_directory(temporary, name, directory)
