"""Puts a finished temporary in its place, in one step, if what is there is what it was to replace."""

from __future__ import annotations

import errno
import os
import stat
from enum import Enum

from rdc.files.metadata import kind_of
from rdc.files.source import identity_of
from rdc.files.syscalls import rename_no_replace
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from rdc.errors import FileError
    from rdc.files.confined import Root
    from rdc.files.directory import Directory
    from rdc.files.parted import Parted

__all__ = ["ANYTHING", "Anything", "Placing"]


class Anything(Enum):
    """Type of ANYTHING, for annotations."""

    ANYTHING = "anything"


ANYTHING: Final = Anything.ANYTHING
"""As `expected`: replace whatever file or link is there, or nothing. A directory still stays."""


class Placing:
    """Of one tree's files. Where a file loses one of several names that way, its other names stay what they
    were decided to be."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._parted: Parted | None = None
        """Made with the first file that has several names."""

    @property
    def parted(self) -> Parted:
        if self._parted is None:
            from rdc.files.parted import Parted

            self._parted = Parted()
        return self._parted

    def explains(self, is_meant: Callable[[Identity], bool], found: Identity) -> bool:
        """See Parted."""
        return self._parted is not None and self._parted.explains(is_meant, found)

    def check_directory(self, path: bytes, parent: bytes, directory: Directory) -> None:
        """The temporary must be where the path leads now: a directory may have been moved while it was
        written. FileError otherwise."""
        if not self._root.directory(parent, fresh=True).same(directory):
            raise self._unexpected(path, "the directory it had", "another one at that path")

    def place(self, path: bytes, directory: int, old: bytes, expected: Identity | Anything | None) -> None:
        """Renames `old` to `path`, whose directory is open. FileError when something else than `expected` is
        there, as CommitGroup.add has it; OSError when it cannot be done."""
        name = path.rpartition(b"/")[2]
        if expected is None:
            try:
                rename_no_replace(old, name, directory)
                return
            except OSError as error:
                # EINVAL: a file system (some network ones) that cannot promise it.
                if error.errno not in {errno.EEXIST, errno.ENOSYS, errno.EINVAL}:
                    raise
        found = _stat(name, directory)
        if found is not None and stat.S_ISDIR(found.st_mode) and not isinstance(expected, Identity):
            raise self._unexpected(path, "no directory", "a directory")
        if expected is None and found is not None:
            raise self._unexpected(path, "nothing there", f"a {kind_of(found.st_mode).name.lower()}")
        if isinstance(expected, Identity):
            if found is None:
                raise self._unexpected(path, "the file that was there", "nothing")
            now = identity_of(found)
            if now != expected and not self.explains(lambda state: state == expected, now):
                raise self._unexpected(path, "the file that was there", "that it was changed or replaced")
            if stat.S_ISDIR(found.st_mode):
                from rdc.files.exchange import file_over_directory

                file_over_directory(old, name, directory)
                return
        if found is not None and found.st_nlink > 1:
            self.parted.replace(old, name, directory)
            return
        os.rename(old, name, src_dir_fd=directory, dst_dir_fd=directory)

    def _unexpected(self, path: bytes, expected: str, found: str) -> FileError:
        return self._root.refused(
            path,
            "replace it",
            expected=expected,
            found=found,
            advice="what is there was kept; run again once nothing else changes it",
        )


def _stat(name: bytes, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
