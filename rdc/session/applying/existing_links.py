"""Finds the hard links that exist already, a directory at a time. In most runs most of them do."""

from __future__ import annotations

from collections import OrderedDict

from rdc.errors import FileError, ProtocolError
from rdc.lean.records import dataclass
from rdc.model.entries import LINKED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rdc.files.root.root import Root
    from rdc.model.entries import Listing, PackedInodes
    from rdc.model.preserved import Preserved
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Manifest

__all__ = ["ExistingLinks"]

OPENED_DIRECTORIES = 16
"""Directories whose listings stay in memory. Files come in walk order, and the first names of neighbouring
files mostly lie in one directory, too."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A directory as the source has it and as the destination has it."""

    first: int
    """Its first row in the manifest."""
    wanted: Listing
    existing: Listing
    inodes: PackedInodes
    rows: Mapping[bytes, int] | None
    """Rows in `existing` by name. None: both listings have the same names, so rows are equal."""

    def row(self, row: int) -> int | None:
        """The row in `existing` of a manifest row; None if there is no such entry."""
        at = row - self.first
        return at if self.rows is None else self.rows.get(self.wanted.names[at])


class ExistingLinks:
    """Compares a table of hard links with the destination."""

    def __init__(self, root: Root, entries: Manifest, preserved: Preserved) -> None:
        self._root = root
        self._entries = entries
        self._preserved = preserved
        self._opened: OrderedDict[int, _Opened | None] = OrderedDict()

    def missing(self, table: LinkTable) -> Iterator[tuple[int, int]]:
        """Yields the pairs (file, first name) that are not hard links to the wanted file.

        Size and mtime decide whether the file is the wanted one. Raises ProtocolError for entries that are
        neither files nor special files, or of two kinds.
        """
        kinds = self._entries.kinds
        if table.files[-1] >= len(kinds):
            raise ProtocolError(f"a hard link at entry {table.files[-1]}, which was not listed")
        number = 0
        for directory, files in self._entries.runs(table.files):
            here = self._directory(directory)
            for file in files:
                first = table.firsts[number]
                number += 1
                if kinds[file] != kinds[first] or kinds[file] not in LINKED:
                    raise ProtocolError(
                        f"a hard link between entries {first} and {file}, which are no two files of a kind"
                    )
                there = self._directory(self._entries.directory_of(first))
                if here is None or there is None or not self._same(here, file, there, first):
                    yield file, first

    def _same(self, here: _Opened, file: int, there: _Opened, first: int) -> bool:
        """Whether two names are one file at the destination, with the wanted size and mtime."""
        row, other = here.row(file), there.row(first)
        if row is None or other is None or here.inodes.identity(row) != there.inodes.identity(other):
            return False
        at, wanted, existing = first - there.first, there.wanted, there.existing
        alike = wanted.kinds[at] == existing.kinds[other] and wanted.sizes[at] == existing.sizes[other]
        return alike and (
            not self._preserved.is_timed(wanted.kinds[at])
            or self._preserved.same_time(wanted.mtimes[at], existing.mtimes[other])
        )

    def _directory(self, number: int) -> _Opened | None:
        """The directory with this manifest number; None if it cannot be read."""
        if number in self._opened:
            self._opened.move_to_end(number)
            return self._opened[number]
        found = self._opened[number] = self._open(number)
        if len(self._opened) > OPENED_DIRECTORIES:
            self._opened.popitem(last=False)
        return found

    def _open(self, number: int) -> _Opened | None:
        try:
            found = self._root.listed(self._entries.directories[number])
        except FileError:
            return None
        wanted, existing = self._entries.listing(number), found.listing.unpacked()
        alike = wanted.names == existing.names
        rows = None if alike else {name: row for row, name in enumerate(existing.names)}
        return _Opened(self._entries.firsts[number], wanted, existing, found.inodes, rows)
