"""Lends the owner of a read-only directory the rights to work in it, as rsync does."""

from __future__ import annotations

import os

from rdc.errors import FileError
from rdc.model.entries import Kind
from rdc.records import replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.confined import Root

__all__ = ["lend_rights"]


def lend_rights(root: Root, path: bytes) -> bool:
    """Lets its owner read, write and search the directory; True when that changed its mode, which the caller
    puts right at the end. Root needs no rights, and who is not the owner gets none."""
    if os.geteuid() == 0:
        return False
    try:
        now = root.metadata(path)
        if now.mode & 0o700 == 0o700:
            return False
        root.set_metadata(path, Kind.DIRECTORY, replace(now, mode=now.mode | 0o700), owner=False)
    except FileError:
        return False  # what needs the rights says so by name
    return True
