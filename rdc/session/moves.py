"""Files that only changed their paths: their content is here, verified; what is left to do is to name it anew.

With deletions in force a moved file is renamed, last of all, as its old path would go then too. Otherwise,
and wherever a rename is not possible, it is copied.
"""

from __future__ import annotations

import os
from array import array
from typing import TYPE_CHECKING

from rdc.errors import FileError
from rdc.files.move import Moved, make_durable, move_file
from rdc.session.identities import Identities

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.entries import Identity
    from rdc.session.transfer_context import TransferContext
    from rdc.session.vanished import Vanished

__all__ = ["Moves"]

class Moves:
    """What will be renamed at the end, in columns: a whole tree may have moved."""

    def __init__(self, context: TransferContext, *, fsync: bool) -> None:
        self._context = context
        self._fsync = fsync
        self._files = array("I")
        self._rows = array("I")
        self._identities = Identities()

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: int, row: int, held: Identity) -> None:
        """File `file` of the source has the content of the vanished file in `row`, as it was when it was
        read."""
        self._files.append(file)
        self._rows.append(row)
        self._identities.append(held)

    def run(self, vanished: Vanished, otherwise: Callable[[int, int], None]) -> None:
        """Renames them, each in one step; `otherwise` takes file and row of those that cannot be.

        Metadata follow the rename: a kill between the two leaves a file whose content is right, and whose
        metadata the next run sets.
        """
        files, self._files = self._files, array("I")
        rows, self._rows = self._rows, array("I")
        identities, self._identities = self._identities, Identities()
        landed: dict[int, bytes] = {}
        for at, (file, row) in enumerate(zip(files, rows, strict=True)):
            expected = identities[at]
            entry = self._context.entries.entry(file)
            try:
                outcome = move_file(self._context.root, vanished[row].path, entry.path, expected)
            except FileError as error:
                self._context.problem(entry.path, error)
                continue
            if outcome is not Moved.DONE:
                otherwise(file, row)
                continue
            landed.setdefault(expected.device, os.path.dirname(entry.path))
            self._context.landing.moved(file, vanished[row].path)
            self._context.tally.reused_bytes += entry.size
            self._context.tally.advance(entry.size)
        if self._fsync:
            try:
                make_durable(self._context.root, landed.values())
            except FileError as error:
                self._context.problem(error.path, error)
