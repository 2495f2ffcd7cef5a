"""What the destination had when it was listed: at the paths of the source's entries, and what is to go."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.lean.typed import NamedTuple
from rdc.model.entries import Identities, Identity, IdentityColumns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.base.entry_check import EntryCheck, Expected
    from rdc.files.bulk.open_many import OpenedFiles

__all__ = ["Extraneous", "ListedEntries"]


class Extraneous(NamedTuple):
    """An entry to be deleted."""

    path: bytes
    kind: int
    listed: Expected
    """What was listed at its path; None: nothing was, so that it stays. Whatever is not that stays."""


class ListedEntries:
    """The identity of each existing entry that a run may change, by the entry's row in the source's manifest.

    An entry that is not noted here is new: nothing was at its path. So whoever changes an entry asks `of` and
    hands what it returns to the call that changes it, which compares it with what is there then.
    """

    def __init__(self) -> None:
        self._files = array("Q")
        self._identities = IdentityColumns()

    def note(self, files: Sequence[int], identities: Identities, rows: Sequence[int]) -> None:
        """Note what was listed for these entries, in `rows` of the destination's listing. Entries increase
        from call to call."""
        if self._files and files and files[0] <= self._files[-1]:
            raise ValueError(f"entry {files[0]} was noted after entry {self._files[-1]}")
        self._files.extend(files)
        self._identities.extend(identities, rows)

    def of(self, file: int) -> Identity | None:
        """Return what was listed at the path of an entry; None: nothing was there."""
        row = self._row(file)
        return None if row is None else self._identities[row]

    def _row(self, file: int) -> int | None:
        row = bisect_left(self._files, file)
        return row if row < len(self._files) and self._files[row] == file else None

    def chosen(self, files: Sequence[int]) -> IdentityColumns | None:
        """Return what was listed for each of these entries; None if nothing was there for one of them. The
        entries increase, or come in any order."""
        first = bisect_left(self._files, files[0]) if files else 0
        if self._files[first : first + len(files)] == array("Q", files):
            return self._identities.chosen(range(first, first + len(files)))
        rows = [self._row(file) for file in files]
        known = [row for row in rows if row is not None]
        return self._identities.chosen(known) if len(known) == len(rows) else None

    def changed(
        self, files: Sequence[int], opened: OpenedFiles, rows: Sequence[int], check: EntryCheck
    ) -> list[int]:
        """Return the numbers of those `files`, which are open in `rows`, that are not as they were listed."""
        found = self.chosen(files)
        if found is None:
            return list(range(len(files)))
        columns = opened.devices, opened.inodes, opened.sizes, opened.mtimes, opened.ctimes
        return [
            number
            for number in found.differing(rows, *columns)
            if not check.is_still(found[number], opened.identity(rows[number]))
        ]
