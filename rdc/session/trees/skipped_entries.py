"""Entries that options such as -u and --existing leave alone, and the hard links without them.

Such an entry gets no content, no attributes and no other file under its name. No other name is linked to it.
The names of its file that are not left alone are linked to each other.
"""

from __future__ import annotations

from rdc.tree.hard_links import LinkTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["SkippedEntries"]


class SkippedEntries:
    """A set of manifest rows, one byte each. Rows are added while directories are compared."""

    def __init__(self) -> None:
        self._marks = bytearray()
        self._leaders: dict[int, int] = {}
        """For each first name that is left alone, the first other name that is not."""

    def add(self, rows: Iterable[int]) -> None:
        """Adds rows that the run leaves alone."""
        for row in rows:
            if row >= len(self._marks):
                self._marks += bytes(row + 1 - len(self._marks))
            self._marks[row] = 1

    def __contains__(self, row: int) -> bool:
        return row < len(self._marks) and bool(self._marks[row])

    def is_linked(self, file: int, first: int) -> bool:
        """Whether the further name `file` of `first` becomes a link to another name and needs nothing else.

        The caller has added all rows up to `file` and asks in increasing order. If `first` is left alone, the
        first further name that is not takes its place.
        """
        if file in self:
            return False
        return first not in self or self._leaders.setdefault(first, file) != file

    def remaining(self, table: LinkTable) -> LinkTable:
        """The links of `table` that the run has to make. All directories were compared."""
        if not self._marks:
            return table
        found = LinkTable()
        for file, first in table:
            if self.is_linked(file, first):
                found.extend((file,), (self._leaders.get(first, first),))
        return found
