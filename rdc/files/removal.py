"""Removes a tree below a Root: depth first, following no link, keeping what cannot go."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import TYPE_CHECKING

from rdc.errors import FileError
from rdc.files.path import join

if TYPE_CHECKING:
    from rdc.files.confined import Root

__all__ = ["remove_tree"]

_READ_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(root: Root, path: bytes, on_remove: Callable[[bytes], None]) -> None:
    """Remove what is at `path` and everything below; for b"" everything but the root itself.

    `on_remove` gets the path of each entry once it is gone. What cannot be removed stays, with the
    directories above it; the rest still goes, and the first FileError is raised at the end. What somebody
    else removes meanwhile is no error. A disk that turned read-only stops at once (OutOfSpaceError).
    """
    _Removal(root, on_remove).run(path)


class _Removal:
    def __init__(self, root: Root, on_remove: Callable[[bytes], None]) -> None:
        self._root = root
        self._on_remove = on_remove
        self._first: FileError | None = None
        self._kept: set[bytes] = set()
        """Directories that something is left in."""

    def run(self, path: bytes) -> None:
        # Paths instead of descriptors: a tree may be deeper than the limit of open files. Each directory
        # stands twice on the stack: to be emptied, and under what it holds to be removed itself.
        stack = [(path, False)]
        while stack:
            current, emptied = stack.pop()
            if emptied:
                self._leave(current)
            elif self._remove_unless_directory(current):
                self._on_remove(current)
            elif current not in self._kept:
                stack.append((current, True))
                stack.extend((child, False) for child in self._empty(current))
        if self._first is not None:
            raise self._first

    def _keep(self, directory: bytes, error: FileError | None = None) -> None:
        self._kept.add(directory)
        self._first = self._first or error

    def _remove_unless_directory(self, path: bytes) -> bool:
        """True when something was removed. A directory, or what is kept, or what is gone, is False."""

        def unlink(name: bytes, parent: int) -> bool | None:
            try:
                if stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                    return False
                os.unlink(name, dir_fd=parent)
            except FileNotFoundError:
                return None
            return True

        try:
            removed = self._root.perform(path, "remove it", unlink)
        except FileError as error:
            self._keep(path.rpartition(b"/")[0], error)
            removed = None
        if removed is None:
            self._kept.add(path)  # not to be entered
        return bool(removed)

    def _empty(self, path: bytes) -> list[bytes]:
        """Remove all but the subdirectories, and return these."""

        def empty(name: bytes, parent: int) -> list[bytes]:
            fd = os.open(name, _READ_DIRECTORY, dir_fd=parent)
            try:
                # Read to the end first: POSIX leaves open what a directory read shows after removals.
                with os.scandir(fd) as entries:
                    found = [(os.fsencode(e.name), e.is_dir(follow_symlinks=False)) for e in entries]
                for child, is_directory in found:
                    if not is_directory:
                        self._unlink(join(path, child), child, fd)
                return [join(path, child) for child, is_directory in found if is_directory]
            finally:
                os.close(fd)

        try:
            return self._root.perform(path, "empty the directory", empty)
        except FileError as error:
            self._keep(path, error)
            return []

    def _unlink(self, path: bytes, name: bytes, directory: int) -> None:
        try:
            os.unlink(name, dir_fd=directory)
        except FileNotFoundError:
            return
        except OSError as error:
            problem = self._root.failure(error, path, "remove it")
            if not isinstance(problem, FileError):
                raise problem from error
            self._keep(path.rpartition(b"/")[0], problem)
            return
        self._on_remove(path)

    def _leave(self, path: bytes) -> None:
        """Remove a directory that has been emptied, unless something was kept in it."""
        if not path:
            return
        parent = path.rpartition(b"/")[0]
        if path in self._kept:
            self._keep(parent)
            return
        try:
            self._root.remove_directory(path)
        except FileError as error:
            self._keep(parent, error)
            return
        self._on_remove(path)
