"""Which hard links of a tree are there already: looked at a directory at a time, as most are in most runs."""

from __future__ import annotations

from collections import OrderedDict

from rdc.errors import FileError, ProtocolError
from rdc.model.entries import Kind
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rdc.files.confined import Root
    from rdc.model.entries import Listing, PackedInodes
    from rdc.model.kept import Kept
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Manifest

__all__ = ["Joined"]

OPENED_DIRECTORIES = 16
"""Directories whose entries are kept. Files come in the order of the walk, and first names of neighbours
mostly lie together as well."""


@dataclass(frozen=True, slots=True)
class _Opened:
    """A directory as it is wanted and as it is."""

    first: int
    """Its first row in the manifest."""
    wanted: Listing
    held: Listing
    inodes: PackedInodes
    rows: Mapping[bytes, int] | None
    """By name, in `held`; None: names are the wanted ones, and so are rows."""

    def row(self, row: int) -> int | None:
        """Where an entry of the manifest is here."""
        at = row - self.first
        return at if self.rows is None else self.rows.get(self.wanted.names[at])


class Joined:
    """Looks through a table of links."""

    def __init__(self, root: Root, entries: Manifest, kept: Kept) -> None:
        self._root = root
        self._entries = entries
        self._kept = kept
        self._opened: OrderedDict[int, _Opened | None] = OrderedDict()

    def missing(self, table: LinkTable) -> Iterator[tuple[int, int]]:
        """Of the pairs of a table those that are not names of one file here, or whose file is not, by size
        and mtime, the one that is wanted. Raises ProtocolError for pairs of what is no file."""
        kinds = self._entries.kinds
        if table.files[-1] >= len(kinds):
            raise ProtocolError(f"a hard link at entry {table.files[-1]}, which was not listed")
        number = 0
        for directory, files in self._entries.runs(table.files):
            here = self._directory(directory)
            for file in files:
                first = table.firsts[number]
                number += 1
                if not kinds[file] == kinds[first] == Kind.FILE:
                    raise ProtocolError(
                        f"a hard link between entries {first} and {file}, which are no two files"
                    )
                there = self._directory(self._entries.directory_of(first))
                if here is None or there is None or not self._same(here, file, there, first):
                    yield file, first

    def _same(self, here: _Opened, file: int, there: _Opened, first: int) -> bool:
        row, other = here.row(file), there.row(first)
        if row is None or other is None or here.inodes.identity(row) != there.inodes.identity(other):
            return False
        at, wanted, held = first - there.first, there.wanted, there.held
        return wanted.sizes[at] == held.sizes[other] and (
            wanted.mtimes[at] == held.mtimes[other]
            or self._kept.mtime(wanted.mtimes[at]) == self._kept.mtime(held.mtimes[other])
        )

    def _directory(self, number: int) -> _Opened | None:
        """None: it cannot be read."""
        if number in self._opened:
            self._opened.move_to_end(number)
            return self._opened[number]
        found = self._opened[number] = self._open(number)
        if len(self._opened) > OPENED_DIRECTORIES:
            self._opened.popitem(last=False)
        return found

    def _open(self, number: int) -> _Opened | None:
        try:
            packed, inodes = self._root.list_inodes(self._entries.directories[number])
        except FileError:
            return None
        wanted, held = self._entries.listing(number), packed.unpacked()
        alike = wanted.names == held.names
        rows = None if alike else {name: row for row, name in enumerate(held.names)}
        return _Opened(self._entries.firsts[number], wanted, held, inodes, rows)
