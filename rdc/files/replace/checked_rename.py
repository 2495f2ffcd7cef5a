"""CheckedRename: renames a finished temporary over its target in one step, if the target is the expected
entry."""

from __future__ import annotations

import os
import stat
from enum import Enum

from rdc.files.base.metadata import kind_of
from rdc.files.base.taking_names import replace_name, take_free_name
from rdc.files.root.source_file import identity_of
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final

    from rdc.errors import FileError
    from rdc.files.base.backup_keeper import BackupKeeper
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.replace.own_ctime_changes import OwnCtimeChanges
    from rdc.files.root.root import Root

__all__ = ["ANYTHING", "Anything", "CheckedRename"]


class Anything(Enum):
    """Type of ANYTHING, for annotations."""

    ANYTHING = "anything"


ANYTHING: Final = Anything.ANYTHING
"""As `expected`: replace any file or link, or nothing. A directory still stays."""


class CheckedRename:
    """Renames files of one tree into place. If a file loses one of several names, its ctime changes. The
    file is still recognised under its other names."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._own_changes: OwnCtimeChanges | None = None
        """Created when the first file with several names is replaced."""

    @property
    def own_changes(self) -> OwnCtimeChanges:
        if self._own_changes is None:
            from rdc.files.replace.own_ctime_changes import OwnCtimeChanges

            self._own_changes = OwnCtimeChanges()
        return self._own_changes

    def explains(self, is_meant: Callable[[Identity], bool], found: Identity) -> bool:
        """Return whether this run's own changes made the intended file `found`; see
        OwnCtimeChanges.explains."""
        return self._own_changes is not None and self._own_changes.explains(is_meant, found)

    def check_directory(self, path: bytes, parent: bytes, directory: Directory) -> None:
        """Raise FileError unless `parent` still leads to the directory that holds the temporary.

        Another process may have moved that directory while the temporary was written. `path` is for the
        message.
        """
        if not self._root.directory(parent, fresh=True).same(directory):
            raise self._unexpected(path, "the directory it had", "another one at that path")

    def keep_backup(self, path: bytes, directory: int, backups: BackupKeeper, *, copy: bool) -> None:
        """Give the entry at `path` its backup. A hard link changes its ctime, which `rename` then explains.

        `copy`: as in BackupKeeper.keep. Raises FileError or OSError. If nothing is there, nothing is done:
        `rename` decides about that.
        """
        name = path.rpartition(b"/")[2]
        before = _stat(name, directory)
        if before is not None:
            backups.keep(path, name, directory, copy=copy)
            after = _stat(name, directory)
            if after is not None:
                self.own_changes.note(identity_of(before), identity_of(after))

    def found(self, path: bytes, directory: int) -> os.stat_result | None:
        """Return the stat of the entry at `path`, whose directory is open; None if nothing is there. Raises
        OSError."""
        return _stat(path.rpartition(b"/")[2], directory)

    def rename(
        self,
        path: bytes,
        directory: int,
        old: bytes,
        expected: Identity | Anything | None,
        *,
        displaces: bool = True,
    ) -> None:
        """Rename `old` to `path`, whose directory is open.

        `expected` is as in CommitGroup.add. `displaces`: where no rename replaces anything, the old entry is
        moved away first. Raises FileError if another entry is there, OSError if the rename fails. An
        append-only root accepts only a free name.
        """
        # long because each step is safe only because of the checks before it
        name = path.rpartition(b"/")[2]
        if self._root.append_only:
            from rdc.files.base.append_only import rename_to_free_name

            try:
                rename_to_free_name(old, name, directory)
            except FileExistsError as error:
                raise self._root.append_only_refusal(path, "replace it") from error
            return
        if expected is None:
            try:
                take_free_name(old, name, directory)
                return
            except FileExistsError:
                pass
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
                from rdc.files.base.replace_kind import file_over_directory

                file_over_directory(old, name, directory)
                return
        if found is not None and found.st_nlink > 1:
            self.own_changes.replace(old, name, directory)
            return
        if displaces:
            replace_name(old, name, directory)
        else:
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
