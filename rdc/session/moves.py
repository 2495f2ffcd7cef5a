"""Files that only changed their paths: their content is here, verified; what is left is to name it anew.

With deletions in force a moved file is renamed, last of all, as its old path would go then too. Otherwise,
and wherever a rename is not possible, it is copied.
"""

from __future__ import annotations

import os
from array import array

from rdc.errors import FileError
from rdc.files.move import Moved, make_durable, move_file
from rdc.records import dataclass
from rdc.session.identities import Identities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.entries import Identity
    from rdc.session.transfer_context import TransferContext
    from rdc.session.vanished import Vanished

__all__ = ["Move", "Moves"]


@dataclass(frozen=True, slots=True)
class Move:
    """File `file` of the source has the content of the vanished file in `row`, as it was when it was read."""

    file: int
    row: int
    identity: Identity


class Moves:
    """What will be renamed at the end, in columns: a whole tree may have moved."""

    def __init__(self, context: TransferContext) -> None:
        self._context = context
        self._files = array("I")
        self._rows = array("I")
        self._identities = Identities()

    def __len__(self) -> int:
        return len(self._files)

    def add(self, move: Move) -> None:
        self._files.append(move.file)
        self._rows.append(move.row)
        self._identities.append(move.identity)

    def rehearse(self, vanished: Vanished, spare: Callable[[bytes], None]) -> None:
        """Reports what `run` would do, and tells `spare` the old paths."""
        for at, (file, row) in enumerate(zip(self._files, self._rows, strict=True)):
            spare(vanished[row].path)
            self._context.landing.moved(file, vanished[row].path, self._identities[at])

    def run(self, vanished: Vanished) -> list[Move]:
        """Renames them, each in one step; those that cannot be.

        Metadata follow the rename: a kill between the two leaves a file whose content is right, and whose
        metadata the next run sets.
        """
        files, self._files = self._files, array("I")
        rows, self._rows = self._rows, array("I")
        identities, self._identities = self._identities, Identities()
        landed: dict[int, bytes] = {}
        left = []
        for at, (file, row) in enumerate(zip(files, rows, strict=True)):
            expected = identities[at]
            entry = self._context.entries.entry(file)
            try:
                outcome = move_file(self._context.root, vanished[row].path, entry.path, expected)
            except FileError as error:
                self._context.problem(entry.path, error)
                continue
            if outcome is not Moved.DONE:
                left.append(Move(file, row, expected))
                continue
            landed.setdefault(expected.device, os.path.dirname(entry.path))
            self._context.landing.moved(file, vanished[row].path, expected)
            self._context.tally.reused_bytes += entry.size
            self._context.tally.advance(entry.size)
        if self._context.fsync:
            try:
                make_durable(self._context.root, landed.values())
            except FileError as error:
                self._context.problem(error.path, error)
        return left
