"""Tells an UndoKeeper of all files of a commit group at once: one wait for the disk serves them all."""

from __future__ import annotations

import os

from rdc.errors import FileError
from rdc.files.root.root import Placed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.bulk.small_files import StagedFiles
    from rdc.files.replace.replacement import Replacement
    from rdc.files.root.root import UndoKeeper

__all__ = ["note_group"]


def note_group(
    replacements: Sequence[Replacement],
    runs: Sequence[StagedFiles],
    undo: UndoKeeper,
) -> dict[bytes, FileError]:
    """Tell `undo` of all staged files; drop those that it refuses, and return their errors by path.

    Raises RdcError, and OSError if a file cannot be looked at.
    """
    arrivals = [Placed(each.path, each.directory.fd, os.fstat(each.fileno()), 0) for each in replacements]
    for run in runs:
        arrivals += [
            Placed(run.path_of(row), run.directory_of(row).fd, os.fstat(run.fileno(row)), 0)
            for row in run.live
        ]
    refused: dict[bytes, FileError] = {}
    for path, error in undo.placing(arrivals).items():
        if not isinstance(error, FileError):
            raise error
        refused[path] = error
    if refused:
        _drop(set(refused), replacements, runs)
    return refused


def _drop(paths: set[bytes], replacements: Sequence[Replacement], runs: Sequence[StagedFiles]) -> None:
    for item in replacements:
        if item.path in paths:
            item.abandon()
    for run in runs:
        for row in run.live:
            if run.path_of(row) in paths:
                run.drop(row)
