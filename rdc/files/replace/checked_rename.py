"""CheckedRename: renames a finished temporary over its target in one step, if the target is the expected
entry."""

from __future__ import annotations

import os
import stat

from rdc.files.base.entry_check import found_at
from rdc.files.base.taking_names import replace_name, take_free_name
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.errors import FileError
    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.base.entry_check import Expected
    from rdc.files.root.root import BackupKeeper, Root

__all__ = ["CheckedRename"]

_DOING = "replace it"


class CheckedRename:
    """Renames files of one tree into place. If a file loses one of several names, its ctime changes. The
    file is still recognised under its other names."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def check_directory(self, path: bytes, parent: bytes, directory: Directory) -> None:
        """Raise FileError unless `parent` still leads to the directory that holds the temporary.

        Another process may have moved that directory while the temporary was written. `path` is for the
        message.
        """
        if not self._root.directory(parent, fresh=True).same(directory):
            raise self._unexpected(path)

    def _unexpected(self, path: bytes) -> FileError:
        return self._root.refused(
            path,
            _DOING,
            expected="the directory it had",
            found="another one at that path",
            advice="what is there was kept; run again once nothing else changes it",
        )

    def keep_backup(
        self, path: bytes, directory: int, expected: Expected, backups: BackupKeeper, *, copy: bool
    ) -> None:
        """Give the entry at `path` its backup, if it is `expected`.

        `copy`: as in BackupKeeper.keep. Raises FileError or OSError. If nothing is there, nothing is done:
        `rename` decides about that.
        """
        name = path.rpartition(b"/")[2]
        found = found_at(name, directory)
        if found is not None:
            self._root.require(path, found, expected, _DOING)
            backups.keep(path, name, directory, copy=copy)

    def rename(
        self, path: bytes, directory: int, old: bytes, expected: Expected, *, displaces: bool = True
    ) -> None:
        """Rename `old` to `path`, whose directory is open.

        `expected` is as in CommitGroup.add. `displaces`: where no rename replaces anything, the old entry is
        moved away first. Raises FileError if another entry is there, OSError if the rename fails. An
        append-only root accepts only a free name.
        """
        # long because each step is safe only because of the checks before it
        name, root = path.rpartition(b"/")[2], self._root
        if root.append_only:
            from rdc.files.base.append_only import rename_to_free_name

            try:
                rename_to_free_name(old, name, directory)
            except FileExistsError as error:
                raise root.append_only_refusal(path, _DOING) from error
            return
        if expected is None:
            try:
                take_free_name(old, name, directory)
                return
            except FileExistsError:
                pass  # what is there is looked at below, and refused
        is_directory = False

        def require(found: os.stat_result | None) -> None:
            nonlocal is_directory
            is_directory = found is not None and stat.S_ISDIR(found.st_mode)
            if is_directory and not isinstance(expected, Identity):
                raise root.refused(
                    path,
                    _DOING,
                    expected="no directory",
                    found="a directory",
                    advice="what is there was kept; run again once nothing else changes it",
                )
            root.require(path, found, expected, _DOING)

        def rename() -> None:
            if is_directory:
                from rdc.files.base.replace_kind import file_over_directory

                file_over_directory(old, name, directory)
            elif displaces:
                replace_name(old, name, directory)
            else:
                os.rename(old, name, src_dir_fd=directory, dst_dir_fd=directory)

        root.check.take_name(name, directory, require, rename)
