"""Reads access ACLs, and removes them from entries that must not admit the users they name.

With an access ACL, the group bits of a mode are the mask of that ACL, so setting a mode admits the users that
the ACL names. Without the ACL those users get the rights of group or others, which can be more. The safe
order is: clear the bits of group and others, remove the ACL, then set the wanted mode.
"""

from __future__ import annotations

import errno
import os
import stat
from functools import partial

from rdc.files.base.entry_path import at_entry
from rdc.files.base.metadata import set_mode_on_name
from rdc.model.preserved import ACCESS_ACL, DEFAULT_ACL

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.base.directory_descriptors import Directory

__all__ = ["has_default_acl", "read_acl", "shed_acl", "shed_acls", "take_acl", "take_acl_of"]

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_NONE = {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOSYS}


def read_acl(directory: int, name: bytes) -> bytes:
    """Return the access ACL of an entry of an open directory, or b"" if it has none. Raises OSError."""
    try:
        return at_entry(directory, name, partial(_get, attribute=ACCESS_ACL))
    except OSError as error:
        if error.errno in _NONE:
            return b""
        raise


def shed_acls(name: bytes, directory: int) -> None:
    """Remove both ACLs from a directory that was just made. Raises OSError."""
    take_acl(name, directory, os.stat(name, dir_fd=directory, follow_symlinks=False))
    at_entry(directory, name, partial(_remove, name=DEFAULT_ACL))


def shed_acl(fd: int) -> None:
    """Remove the access ACL from an open file that was just made with a mode for its owner only. Raises
    OSError."""
    _remove(fd, ACCESS_ACL)


def take_acl(name: bytes, directory: int, now: os.stat_result) -> None:
    """Remove the access ACL from an entry that is no symlink; `now` is its stat. Raises OSError.

    If it had an ACL, group and others have no rights afterwards.
    """
    if read_acl(directory, name):
        set_mode_on_name(name, directory, stat.S_IMODE(now.st_mode) & ~_OTHERS)
        at_entry(directory, name, partial(_remove, name=ACCESS_ACL))


def take_acl_of(fd: int, now: os.stat_result) -> None:
    """Remove the access ACL from an open file, as `take_acl` does; `now` is its stat. Raises OSError."""
    try:
        os.getxattr(fd, ACCESS_ACL)
    except OSError as error:
        if error.errno in _NONE:
            return
        raise
    os.chmod(fd, stat.S_IMODE(now.st_mode) & ~_OTHERS)
    _remove(fd, ACCESS_ACL)


def has_default_acl(directory: Directory) -> bool:
    """Return whether new entries of the directory inherit an ACL. True also if that cannot be found out."""
    try:
        at_entry(directory.fd, b".", partial(_get, attribute=DEFAULT_ACL))
    except OSError as error:
        return error.errno not in _NONE
    return True


def _get(path: bytes, attribute: bytes) -> bytes:
    return os.getxattr(path, attribute, follow_symlinks=False)


def _remove(file: bytes | int, name: bytes) -> None:
    try:
        # An open file cannot be a symlink, so removexattr rejects follow_symlinks for it.
        if isinstance(file, int):
            os.removexattr(file, name)
        else:
            os.removexattr(file, name, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NONE:
            raise
