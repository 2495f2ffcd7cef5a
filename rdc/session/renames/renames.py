"""Renames of removed files to new paths, at the end of a run. Their content is already verified.

If the run deletes extraneous files, a moved file is renamed, because its old path would be deleted anyway.
Otherwise, and if a rename is impossible, it is copied.
"""

from __future__ import annotations

import os
from array import array

from rdc.errors import FileError
from rdc.files.names.entry_names import Moved, make_durable, move_file
from rdc.lean.records import dataclass
from rdc.model.entries import Identity, IdentityColumns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.session.renames.removed_files import RemovedFiles
    from rdc.session.transfer.destination import Destination

__all__ = ["Rename", "Renames"]


@dataclass(frozen=True, slots=True)
class Rename:
    """A new file, the row of the removed file with its content, and that one's identity when it was read."""

    file: int
    row: int
    identity: Identity


class Renames:
    """The renames to perform at the end, as columns, because a whole tree may have moved."""

    def __init__(self, context: Destination) -> None:
        self._context = context
        self._files = array("I")
        self._rows = array("I")
        self._identities = IdentityColumns()

    def __len__(self) -> int:
        return len(self._files)

    def add(self, move: Rename) -> None:
        self._files.append(move.file)
        self._rows.append(move.row)
        self._identities.append(move.identity)

    def rehearse(self, removed_files: RemovedFiles, spare: Callable[[bytes], None]) -> None:
        """Reports what `run` would do, and passes the old paths to `spare`."""
        for at, (file, row) in enumerate(zip(self._files, self._rows, strict=True)):
            path = removed_files[row].path
            if self._is_shared(path):
                self._context.landing.rehearse(file)
                continue
            spare(path)
            self._context.landing.moved(file, path, self._identities[at])

    def _is_shared(self, path: bytes) -> bool:
        """Whether a file has other names, too: a run then copies it."""
        try:
            return self._context.root.link_count(path) > 1
        except FileError:
            return False

    def run(self, removed_files: RemovedFiles) -> list[Rename]:
        """Renames each file atomically. Returns the renames that were not possible.

        Metadata are set after the rename. A kill between the two leaves a file with the right content; the
        next run sets its metadata.
        """
        files, self._files = self._files, array("I")
        rows, self._rows = self._rows, array("I")
        identities, self._identities = self._identities, IdentityColumns()
        renamed_directories: dict[int, bytes] = {}
        left = []
        for at, (file, row) in enumerate(zip(files, rows, strict=True)):
            expected = identities[at]
            entry, old = self._context.manifest.entry(file), removed_files[row].path
            listed = removed_files.listed(old)
            if listed is None or not self._context.root.check.is_still(listed, expected):
                left.append(Rename(file, row, expected))
                continue
            try:
                outcome = move_file(
                    self._context.root,
                    old,
                    entry.path,
                    expected,
                    entry.metadata,
                    owner=self._context.landing.owner,
                )
            except FileError as error:
                self._context.problem(entry.path, error)
                continue
            if outcome is not Moved.DONE:
                left.append(Rename(file, row, expected))
                continue
            renamed_directories.setdefault(expected.device, os.path.dirname(entry.path))
            self._context.landing.moved(file, old, expected)
            self._context.progress.count_reused(entry.size)
            self._context.progress.advance(entry.size)
        if self._context.options.fsync:
            try:
                make_durable(self._context.root, renamed_directories.values())
            except FileError as error:
                self._context.problem(error.path, error)
        return left
