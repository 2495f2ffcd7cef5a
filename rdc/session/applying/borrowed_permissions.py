"""Gives the owner of a read-only directory the permissions to work in it, as rsync does."""

from __future__ import annotations

import os

from rdc.errors import FileError
from rdc.lean.records import replace
from rdc.model.entries import Kind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root

__all__ = ["borrow_permissions"]


def borrow_permissions(root: Root, path: bytes) -> bool:
    """Lets the owner read, write and search the directory at `path`.

    Returns True if that changed its mode; the caller restores the mode at the end. Does nothing for root, who
    needs no permissions, or for users who do not own the directory.
    """
    if os.geteuid() == 0:
        return False
    try:
        now = root.metadata(path)
        if now.mode & 0o700 == 0o700:
            return False
        root.set_metadata(path, Kind.DIRECTORY, replace(now, mode=now.mode | 0o700), owner=False)
        root.storage.borrowed.setdefault(path, now.mode)
    except FileError:
        return False  # the step that needs the permissions reports the error
    return True
