"""Entries that options such as -u and --existing leave as they are here, and what that does to hard links.

Such an entry gets nothing, no attributes and no other file under its name, and is no name that others are
linked to: the names of its file that are not left alone are linked among themselves.
"""

from __future__ import annotations

from rdc.tree.hard_links import LinkTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["LeftAlone"]


class LeftAlone:
    """Rows of a manifest, a byte each. They are added directory by directory, as these are compared."""

    def __init__(self) -> None:
        self._marks = bytearray()
        self._leaders: dict[int, int] = {}
        """By the first name of a file, which is left alone: the first one that is not."""

    def add(self, rows: Iterable[int]) -> None:
        for row in rows:
            if row >= len(self._marks):
                self._marks += bytes(row + 1 - len(self._marks))
            self._marks[row] = 1

    def __contains__(self, row: int) -> bool:
        return row < len(self._marks) and bool(self._marks[row])

    def is_linked(self, file: int, first: int) -> bool:
        """Whether the further name `file` of `first` will be linked to another, and so needs nothing else.
        All rows up to it were added, and asked for in order: the first one of those whose `first` is left
        alone comes in its place."""
        if file in self:
            return False
        return first not in self or self._leaders.setdefault(first, file) != file

    def remaining(self, table: LinkTable) -> LinkTable:
        """The links that are to be made, once all was compared."""
        found = LinkTable()
        for file, first in table:
            if self.is_linked(file, first):
                found.extend((file,), (self._leaders.get(first, first),))
        return found
