"""Reads and writes all extended attributes of an open file, including ACLs and security labels."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.preserved import Attributes

__all__ = ["read_attributes", "write_attributes"]


def read_attributes(fd: int | bytes) -> Attributes:
    """Return all attributes of an open file, or at a path, that the caller may see; () if the file system has
    none. Raises OSError."""
    if not hasattr(os, "listxattr"):  # macOS
        return ()
    try:
        names = os.listxattr(fd)
    except OSError as error:
        if error.errno in {errno.EOPNOTSUPP, errno.ENOSYS}:
            return ()
        raise
    return tuple(sorted((os.fsencode(name), os.getxattr(fd, name)) for name in names))


def write_attributes(fd: int, wanted: Attributes) -> None:
    """Give a file that was just made exactly these attributes. Raises OSError."""
    now = read_attributes(fd)
    if now == wanted:
        return
    for name, _ in now:
        if name not in dict(wanted):
            os.removexattr(fd, name)
    for name, value in wanted:
        if dict(now).get(name) != value:
            os.setxattr(fd, name, value)
