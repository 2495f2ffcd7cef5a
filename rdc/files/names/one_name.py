"""Asks a directory which names it takes for one, as where case is folded or names are normalised."""

from __future__ import annotations

import os

from rdc.errors import RdcError
from rdc.files.base.relative_path import join
from rdc.files.base.temporary_names import make_aside
from rdc.lean.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.root.root import Root

__all__ = ["inode_at", "names_as_listed", "names_that_are_one"]

T = TypeVar("T")

_PASS = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_FIRST_MARK, _MARK_SECONDS = 10**9, 2
"""FAT keeps every other second, from 1980 on."""


def inode_at(root: Root, directory: bytes, name: bytes) -> int | None:
    """Return the inode number of what is found by a name in a directory; None if nothing is."""
    try:
        return root.perform(join(directory, name), "look at it", _stat).st_ino
    except RdcError:
        return None


def names_that_are_one(root: Root, directory: bytes, names: Sequence[bytes]) -> list[list[int]]:
    """Return the groups of two or more `names` of which a file under one would be found by the others.

    They are tried in a directory of their own beside them, which inherits what the file system does. The cost
    is linear, since a hostile source chooses the names. Empty if it cannot be tried: whoever makes the second
    file then finds the first.
    """
    try:
        groups = root.perform(
            join(directory, names[0]),
            "try its name",
            lambda name, parent: _aside(name, parent, lambda inside: _try_in(names, inside)),
        )
    except RdcError:
        return []
    return [group for group in groups if len(group) > 1]


def names_as_listed(root: Root, directory: bytes, names: Sequence[bytes]) -> frozenset[bytes]:
    """Return what a directory lists that is given entries of these `names`, none of which are one.

    They are tried beside them, as above. Empty if that cannot be tried.
    """
    try:
        return root.perform(
            join(directory, names[0]),
            "try its name",
            lambda name, parent: _aside(name, parent, lambda inside: _list_in(names, inside)),
        )
    except RdcError:
        return frozenset()


def _stat(name: bytes, parent: int) -> os.stat_result:
    return os.stat(name, dir_fd=parent, follow_symlinks=False)


def _aside(name: bytes, parent: int, act: Callable[[int], T]) -> T:
    """Call `act` with the descriptor of a new directory beside `name`, and leave no trace of it."""
    before = _stat(b".", parent)
    aside = make_aside(name, lambda name: os.mkdir(name, 0o700, dir_fd=parent))
    try:
        inside = os.open(aside, _PASS, dir_fd=parent)
        try:
            return act(inside)
        finally:
            os.close(inside)
    finally:
        os.rmdir(aside, dir_fd=parent)
        os.utime(b".", ns=(before.st_atime_ns, before.st_mtime_ns), dir_fd=parent)


def _list_in(names: Sequence[bytes], inside: int) -> frozenset[bytes]:
    made: list[bytes] = []
    try:
        for name in names:
            os.mkdir(name, 0o700, dir_fd=inside)
            made.append(name)
        readable = os.open(b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=inside)
        try:
            return frozenset(map(os.fsencode, os.listdir(readable)))
        finally:
            os.close(readable)
    finally:
        for name in made:
            os.rmdir(name, dir_fd=inside)


def _try_in(names: Sequence[bytes], inside: int) -> list[list[int]]:
    groups: list[list[int]] = []
    try:
        for row, name in enumerate(names):
            try:
                os.mkdir(name, 0o700, dir_fd=inside)
            except FileExistsError:
                groups[_group_at(name, inside, len(groups))].append(row)
            except OSError:
                continue  # whoever makes it says what is wrong with it
            else:
                groups.append([row])
                mark = _FIRST_MARK + _MARK_SECONDS * (len(groups) - 1)
                os.utime(name, (mark, mark), dir_fd=inside)
    finally:
        for group in groups:
            os.rmdir(names[group[0]], dir_fd=inside)
    return groups


def _group_at(name: bytes, inside: int, groups: int) -> int:
    """Return the group of the directory that `name` leads to, which its mtime says.

    Inode numbers say less: some file systems give each spelling a number of its own.
    """
    number = (int(_stat(name, inside).st_mtime) - _FIRST_MARK) // _MARK_SECONDS
    return number if 0 <= number < groups else 0
