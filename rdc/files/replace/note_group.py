"""Tells an UndoKeeper of all files of a commit group at once, so that one wait for the disk serves them all."""

from __future__ import annotations

import os

from rdc.errors import FileError
from rdc.files.base.undo_keeper import Placed
from rdc.files.root.source_file import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.base.undo_keeper import UndoKeeper
    from rdc.files.bulk.small_files import StagedFiles
    from rdc.files.replace.checked_rename import CheckedRename
    from rdc.files.replace.replacement import Replacement

__all__ = ["note_group"]


def note_group(
    renamer: CheckedRename,
    replacements: Sequence[Replacement],
    runs: Sequence[StagedFiles],
    undo: UndoKeeper,
) -> dict[bytes, FileError]:
    """Tell `undo` of all staged files; drop those that it refuses, and return their errors by path.

    An old version that gets a second name has another ctime then, which `renamer` explains. Raises RdcError.
    """
    places, before = [], {}
    for item in replacements:
        places.append(Placed(item.path, item.directory.fd, os.fstat(item.fileno())))
        found = renamer.found(item.path, item.directory.fd)
        if found is not None:
            before[item.path] = item.directory.fd, found
    for run in runs:
        for row in run.live:
            directory, new = run.directory_of(row), os.fstat(run.fileno(row))
            places.append(Placed(run.path_of(row), directory.fd, new))
    refused: dict[bytes, FileError] = {}
    for path, error in undo.placing(places).items():
        if not isinstance(error, FileError):
            raise error
        refused[path] = error
    for item in replacements:
        if item.path in refused:
            item.abandon()
    for run in runs:
        for row in run.live if refused else ():
            if run.path_of(row) in refused:
                run.drop(row)
    for path, (directory_fd, old) in before.items():
        now = renamer.found(path, directory_fd)
        if now is not None and now != old:
            renamer.own_changes.note(identity_of(old), identity_of(now))
    return refused
