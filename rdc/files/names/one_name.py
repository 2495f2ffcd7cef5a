"""Asks a directory whether it takes two names for one, as where case is folded or names are normalised."""

from __future__ import annotations

import os
from contextlib import suppress

from rdc.errors import RdcError
from rdc.files.base.relative_path import join
from rdc.files.base.temporary_names import make_aside

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.root import Root

__all__ = ["are_one_name", "leads_to_another"]

_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def leads_to_another(root: Root, directory: bytes, name: bytes) -> bool:
    """Return whether something is found by a name that the directory's listing does not have.

    Inode numbers say no more: some file systems give each spelling a number of its own.
    """
    try:
        root.perform(join(directory, name), "look at it", _stat)
    except RdcError:
        return False
    return True


def are_one_name(root: Root, directory: bytes, one: bytes, other: bytes) -> bool:
    """Return whether a file under either name would be found by the other.

    That is tried in a directory of its own beside them, which inherits what the file system does. False if it
    cannot be tried: whoever makes the second file then finds the first.
    """
    with suppress(RdcError):
        return root.perform(
            join(directory, one), "try its name", lambda name, parent: _try(name, other, parent)
        )
    return False


def _stat(name: bytes, parent: int) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def _try(one: bytes, other: bytes, parent: int) -> bool:
    before = _stat(b".", parent)
    aside = make_aside(one, lambda name: os.mkdir(name, 0o700, dir_fd=parent))
    try:
        return _try_in(one, other, aside, parent)
    finally:
        os.rmdir(aside, dir_fd=parent)
        os.utime(b".", ns=(before.st_atime_ns, before.st_mtime_ns), dir_fd=parent)


def _try_in(one: bytes, other: bytes, aside: bytes, parent: int) -> bool:
    inside = os.open(aside, _PASS, dir_fd=parent)
    try:
        os.mkdir(one, 0o700, dir_fd=inside)
        try:
            _stat(other, inside)
        except FileNotFoundError:
            return False
        finally:
            os.rmdir(one, dir_fd=inside)
    finally:
        os.close(inside)
    return True
