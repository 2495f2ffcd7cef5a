"""ManifestColumns: the columns of a manifest, how they grow, and the rows of one directory in them."""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_right
from collections import OrderedDict
from itertools import accumulate

from rdc.lean.records import dataclass
from rdc.model.entries import (
    Kind,
    Listing,
    PackedListing,
    bytes_of_devices,
    little_endian_integers,
    strings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rdc.model.preserved import Preserved

__all__ = ["ManifestColumns", "TakenRows"]

CACHED_DIRECTORIES = 8
"""Unpacked listings kept: the directories under comparison, and those whose files arrive meanwhile."""

SUMMED_BYTES = 1 << 19
"""Bytes of the size column that are unpacked at a time to be added up."""

COUNTED_ROWS = 64
"""Position lookups up to this row of a directory split its names; later rows use a table of offsets."""


@dataclass(frozen=True, slots=True)
class TakenRows:
    """A range of rows that one manifest copied unchanged from another."""

    first: int
    """First row in the manifest that holds the copy."""
    source: int
    """First row in the manifest that was copied from."""
    count: int


class ManifestColumns:
    """The storage of a Manifest. It grows in walk order, by whole directories (`add`) or parts (`extend`)."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Remove all rows."""
        self.text = bytearray()
        self.kinds = bytearray()
        self.modes = bytearray()
        self.sizes = bytearray()
        self.mtimes = bytearray()
        self.uids = bytearray()
        self.gids = bytearray()
        self.targets = bytearray()
        self.directories: list[bytes] = []
        """Paths of the directories that have entries."""
        self.firsts: array[int] = array("Q")
        """Each directory's first row."""
        self.texts: array[int] = array("Q")
        """Offset in `text` of each directory's first name."""
        self.links: array[int] = array("Q")
        """Offset in `targets` of each directory's first link target."""
        self.taken: list[TakenRows] = []
        """The ranges that `take` copied, in row order. All come from one other manifest."""
        self._unpacked_listings: OrderedDict[int, Listing] = OrderedDict()
        self._offsets: _Offsets | None = None

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def total_size(self) -> int:
        """Sum of all file sizes, in bytes."""
        # In parts: unpacking the whole column at once would double its memory.
        parts = range(0, len(self.sizes), SUMMED_BYTES)
        total = sum([sum(little_endian_integers("Q", self.sizes[at : at + SUMMED_BYTES])) for at in parts])
        return total - bytes_of_devices(self.kinds, self.sizes)

    def add(self, path: bytes, listing: PackedListing) -> None:
        """Append the next directory of a walk, complete."""
        if listing.count:
            self._begin(path)
            self._append(listing)

    def extend(self, path: bytes, listing: PackedListing) -> None:
        """Append the next entries of a walk. They belong to the last directory or start the next one."""
        if not listing.count:
            return
        if not self.directories or self.directories[-1] != path:
            self._begin(path)
        self._unpacked_listings.pop(len(self.directories) - 1, None)
        self._offsets = None
        self._append(listing)

    def take(self, other: ManifestColumns, first: int, stop: int) -> None:
        """Append rows [first, stop) of `other`, which are the next entries of the walk.

        The result equals `extend` for each part that `other.parts` yields, but each column is copied at once.
        """
        if first < stop:
            self.taken.append(TakenRows(len(self), first, stop - first))
            self._copy(other, first, stop)

    def take_amended(
        self, other: ManifestColumns, first: int, stop: int, columns: Mapping[str, bytes]
    ) -> None:
        """Append rows [first, stop) of `other`, with other values in the columns that `columns` names.

        Each value is a packed column for all these rows; an empty one leaves the column as it is in `other`.
        """
        if first < stop:
            self._copy(other, first, stop)
            for name, column in columns.items():
                if column:
                    getattr(self, name)[-len(column) :] = column

    def _copy(self, other: ManifestColumns, first: int, stop: int) -> None:
        begin, last = other.directory_of(first), other.directory_of(stop - 1)
        path = other.directories[begin]
        if not self.directories or self.directories[-1] != path:
            self._begin(path)
        self._unpacked_listings.pop(len(self.directories) - 1, None)
        self._offsets = None
        text, link = other._position(begin, first)
        text_end, link_end = other._position(last, stop)
        rows, texts, links = len(self) - first, len(self.text) - text, len(self.targets) - link
        further = slice(begin + 1, last + 1)
        self.directories += other.directories[further]
        self.firsts.extend([row + rows for row in other.firsts[further]])
        self.texts.extend([at + texts for at in other.texts[further]])
        self.links.extend([at + links for at in other.links[further]])
        # The text column repeats the path of each further directory before its names.
        self.text += other.text[text:text_end]
        self.targets += other.targets[link:link_end]
        self.kinds += other.kinds[first:stop]
        self.modes += other.modes[2 * first : 2 * stop]
        self.sizes += other.sizes[8 * first : 8 * stop]
        self.mtimes += other.mtimes[8 * first : 8 * stop]
        self.uids += other.uids[4 * first : 4 * stop]
        self.gids += other.gids[4 * first : 4 * stop]

    def _position(self, directory: int, row: int) -> tuple[int, int]:
        """Return the offsets in `text` and `targets` at which `row` of a directory begins.

        `row` may be the row after the directory's last.
        """
        first = self.firsts[directory]
        if row == first:
            return self.texts[directory], self.links[directory]
        if row == self.end(directory):
            last = directory + 1 == len(self.firsts)
            links_end = len(self.targets) if last else self.links[directory + 1]
            return self._names_end(directory), links_end
        before = row - first
        if before <= COUNTED_ROWS and Kind.SYMLINK not in self.kinds[first:row]:
            names = self.names(directory)
            rest = names.split(b"\0", before)[before]
            return self.texts[directory] + len(names) - len(rest), self.links[directory]
        offsets = self._offsets_of(directory)
        return self.texts[directory] + offsets.names[before], self.links[directory] + offsets.targets[before]

    def _begin(self, path: bytes) -> None:
        self.directories.append(path)
        self.firsts.append(len(self.kinds))
        self.text += b"\0" + path + b"\0"
        self.texts.append(len(self.text))
        self.links.append(len(self.targets))

    def _append(self, listing: PackedListing) -> None:
        self.text += listing.names
        self.kinds += listing.kinds
        self.modes += listing.modes
        self.sizes += listing.sizes
        self.mtimes += listing.mtimes
        self.uids += listing.uids
        self.gids += listing.gids
        self.targets += listing.targets

    def links_of(self, directory: int) -> bytes:
        """Return the targets of a directory's symlinks, each followed by NUL."""
        last = directory + 1 == len(self.firsts)
        return bytes(
            self.targets[self.links[directory] : len(self.targets) if last else self.links[directory + 1]]
        )

    def end(self, directory: int) -> int:
        """Return the row after a directory's last."""
        return self.firsts[directory + 1] if directory + 1 < len(self.firsts) else len(self.kinds)

    def directory_of(self, row: int) -> int:
        """Return the number of the directory that holds a row."""
        return bisect_right(self.firsts, row) - 1

    def names(self, directory: int) -> bytes:
        """Return the names in a directory, each followed by NUL."""
        return bytes(self.text[self.texts[directory] : self._names_end(directory)])

    def _names_end(self, directory: int) -> int:
        after = directory + 1
        if after == len(self.firsts):
            return len(self.text)
        return self.texts[after] - len(self.directories[after]) - 2

    def packed(self, directory: int) -> PackedListing:
        """Return all entries of a directory."""
        return self._columns(
            self.firsts[directory], self.end(directory), self.names(directory), self.links_of(directory)
        )

    def packed_slice(self, directory: int, first: int, stop: int) -> PackedListing:
        """Return rows [first, stop) of a directory.

        Consecutive calls for one directory cost time in proportion to the rows returned.
        """
        offsets, base = self._offsets_of(directory), self.firsts[directory]
        at, to = first - base, stop - base
        names = bytes(
            self.text[self.texts[directory] + offsets.names[at] : self.texts[directory] + offsets.names[to]]
        )
        links = self.links[directory]
        targets = bytes(self.targets[links + offsets.targets[at] : links + offsets.targets[to]])
        return self._columns(first, stop, names, targets)

    def _offsets_of(self, directory: int) -> _Offsets:
        """Return the offsets of a directory's rows. The last result is cached."""
        if self._offsets is None or self._offsets.directory != directory:
            self._offsets = _Offsets.of(directory, self.packed(directory))
        return self._offsets

    def _columns(self, first: int, end: int, names: bytes, targets: bytes) -> PackedListing:
        return PackedListing(
            end - first,
            names,
            bytes(self.kinds[first:end]),
            bytes(self.modes[2 * first : 2 * end]),
            bytes(self.sizes[8 * first : 8 * end]),
            bytes(self.mtimes[8 * first : 8 * end]),
            bytes(self.uids[4 * first : 4 * end]),
            bytes(self.gids[4 * first : 4 * end]),
            targets,
        )

    def listing(self, directory: int) -> Listing:
        """Return all entries of a directory, unpacked. The last CACHED_DIRECTORIES results are cached."""
        listing = self._unpacked_listings.get(directory)
        if listing is None:
            listing = self._unpacked_listings[directory] = self._unpack(directory)
            if len(self._unpacked_listings) > CACHED_DIRECTORIES:
                self._unpacked_listings.popitem(last=False)
        else:
            self._unpacked_listings.move_to_end(directory)
        return listing

    def _unpack(self, directory: int) -> Listing:
        # Long and without calls because it runs for every directory if all mtimes of a tree changed.
        after = directory + 1
        last = after == len(self.firsts)
        first, end = self.firsts[directory], len(self.kinds) if last else self.firsts[after]
        names_end = len(self.text) if last else self.texts[after] - len(self.directories[after]) - 2
        names = bytes(self.text[self.texts[directory] : names_end]).split(b"\0")
        targets = bytes(self.targets[self.links[directory] : None if last else self.links[after]]).split(
            b"\0"
        )
        columns = (
            array("H", self.modes[2 * first : 2 * end]),
            array("Q", self.sizes[8 * first : 8 * end]),
            array("q", self.mtimes[8 * first : 8 * end]),
            array("I", self.uids[4 * first : 4 * end]),
            array("I", self.gids[4 * first : 4 * end]),
        )
        if sys.byteorder == "big":
            for column in columns:
                column.byteswap()
        # Each string ends with NUL, so what is behind the last one is empty.
        return Listing(tuple(names[:-1]), bytes(self.kinds[first:end]), *columns, tuple(targets[:-1]))

    def keep_modes(self, preserved: Preserved, umask: int) -> None:
        """Reduce all modes to those that new entries get. `umask`: as in Preserved.made_mode."""
        modes = preserved.modes_of(self.modes)
        if not preserved.keeps_all_modes:
            modes = preserved.made_modes(modes, self.kinds, umask)
        self.modes = bytearray(modes)
        self._unpacked_listings.clear()

    def set_owners(self, uids: bytearray, gids: bytearray) -> None:
        """Replace the columns of users and groups."""
        self.uids, self.gids = uids, gids
        self._unpacked_listings.clear()

    def set_modes(self, modes: Mapping[int, int]) -> None:
        """Set the permission bits of rows, given as {row: mode}."""
        for row, mode in modes.items():
            self.modes[2 * row : 2 * row + 2] = mode.to_bytes(2, "little")
        self._unpacked_listings.clear()

    def parts(self, first: int, stop: int) -> Iterator[tuple[bytes, PackedListing]]:
        """Yield rows [first, stop) as (directory path, listing) pairs, as `extend` takes them."""
        while first < stop:
            directory = self.directory_of(first)
            begin, end = self.firsts[directory], self.end(directory)
            until = min(stop, end)
            whole = (first, until) == (begin, end)
            listing = self.packed(directory) if whole else self.packed_slice(directory, first, until)
            yield self.directories[directory], listing
            first = until


@dataclass(frozen=True, slots=True)
class _Offsets:
    """Offsets of each row's name and link target within a directory's, and the end of the last ones."""

    directory: int
    names: array[int]
    targets: array[int]

    @classmethod
    def of(cls, directory: int, listing: PackedListing) -> _Offsets:
        lengths = [len(name) + 1 for name in strings(listing.names)]
        names = array("Q", accumulate(lengths, initial=0))
        if not listing.targets:
            return cls(directory, names, array("Q", bytes(8 * len(names))))
        links = iter(strings(listing.targets))
        spans = (len(next(links)) + 1 if kind == Kind.SYMLINK else 0 for kind in listing.kinds)
        return cls(directory, names, array("Q", accumulate(spans, initial=0)))
