"""Manifest: all entries of a tree as columns, in walk order, with one digest over everything.

Each row is an entry. The rows of a directory lie together, sorted by name; directories follow in pre-order.
The text column holds, for each directory with entries: NUL, its path, NUL, then its entries' names, each
followed by NUL. No name is empty, so an empty string always announces a path.
An entry takes about 30 bytes besides its name. A million entries stay below 100 MB. MANIFEST.md has the
format.
"""

from __future__ import annotations

import struct
import sys
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from itertools import accumulate
from operator import sub

from blake3 import blake3

from rdc.files.base.paths import join
from rdc.kernel import (
    Winnower,
    node_columns,
    node_names,
    row_paths,
    short_references,
    take_rows,
    text_ranks,
)
from rdc.lean.enums import IntFlag
from rdc.lean.records import Record
from rdc.limits import NODE_RECORDS_MAX, NODE_RECORDS_MIN
from rdc.model.entries import (
    Kind,
    ListedDirectories,
    Listing,
    Metadata,
    PackedListing,
    bytes_of_devices,
    little_endian_integers,
    strings,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

    from rdc.model.preserved import Preserved


# ManifestColumns: the columns of a manifest, how they grow, and the rows of one directory in them.

CACHED_DIRECTORIES = 8
"""Unpacked listings kept: the directories under comparison, and those whose files arrive meanwhile."""

SUMMED_BYTES = 1 << 19
"""Bytes of the size column that are unpacked at a time to be added up."""

COUNTED_ROWS = 64
"""Position lookups up to this row of a directory split its names; later rows use a table of offsets."""


class TakenRows(Record):
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

    def moved(self) -> Self:
        """Return a manifest with all rows of this one, which has none afterwards."""
        other = self.__class__()
        for name, column in vars(self).items():
            setattr(other, name, column)
        self.clear()
        return other

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

    def add_many(self, listed: ListedDirectories) -> None:
        """Append the next directories of a walk, complete."""
        row, text, link = len(self.kinds), len(self.text), len(self.targets)
        self.directories += listed.paths
        self.firsts.extend([row + first for first in listed.firsts])
        self.texts.extend([text + at for at in listed.texts])
        self.links.extend([link + at for at in listed.links])
        self.text += listed.text
        self._append_columns(listed.listing)

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
        self._append_columns(listing)

    def _append_columns(self, listing: PackedListing) -> None:
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

    def text_of(self, begin: int, stop: int) -> bytes:
        """Return the text of directories [begin, stop), of which there is one."""
        start = self.texts[begin] - len(self.directories[begin]) - 2
        return bytes(self.text[start : self._names_end(stop - 1)])

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


class _Offsets(Record):
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


# RowMap: where the rows of one manifest are in another, by path.

MAPPED_DIRECTORIES = 64
"""Directories cached. Rows come in walk order, and related rows are mostly near."""


class _CachedDirectory(Record):
    first: int
    """The directory's first row in the new manifest."""
    names: Sequence[bytes] | None
    """Names in the old manifest; None if both have the same names."""
    rows: Mapping[bytes, int]
    """Rows in the new manifest, by name."""


class RowMap:
    """Maps rows of `old` to rows of `new`. Both manifests are complete."""

    def __init__(self, old: Manifest, new: Manifest) -> None:
        self._old = old
        self._new = new
        self._cached: OrderedDict[int, _CachedDirectory] = OrderedDict()

    def row(self, row: int) -> int | None:
        """Return the row in `new` with the path of `row` in `old`, or None."""
        directory = self._old.directory_of(row)
        cached = self._cached.get(directory)
        if cached is None:
            cached = self._cached[directory] = self._open(directory)
            if len(self._cached) > MAPPED_DIRECTORIES:
                self._cached.popitem(last=False)
        at = row - self._old.firsts[directory]
        return cached.first + at if cached.names is None else cached.rows.get(cached.names[at])

    def _open(self, directory: int) -> _CachedDirectory:
        old, new = self._old, self._new
        number, names = new.number(old.directories[directory]), old.names(directory)
        if number is None:
            return _CachedDirectory(0, strings(names), {})
        first, new_names = new.firsts[number], new.names(number)
        if names == new_names:
            return _CachedDirectory(first, None, {})
        return _CachedDirectory(
            first, strings(names), {name: first + at for at, name in enumerate(strings(new_names))}
        )


ROOT_KEY = blake3(b"rdc 1 manifest root").digest()


def further_digest(links: bytes | None, attributes: bytes | None) -> bytes:
    """Return 32 bytes over the facts that no column holds: hard links and extended attributes.

    Each argument is a digest, or None if that fact is not preserved. If both are None the result is b"".
    """
    if links is None and attributes is None:
        return b""
    return blake3((links or bytes(32)) + (attributes or bytes(32))).digest()


def covering_root(root: bytes, further: bytes) -> bytes:
    """Return a manifest's root digest, 32 bytes, extended to cover `further` (see `further_digest`)."""
    return blake3(b"rdc 1 further" + root + further).digest() if further else root


class Entry(Record):
    """One row of a manifest as a value."""

    path: bytes
    kind: int
    size: int
    """Bytes."""
    metadata: Metadata
    target: bytes
    """The target of a symlink; b'' for any other kind."""


class Manifest(ManifestColumns):
    """A tree's entries, looked up by path or row, compared with another manifest's, and digested."""

    def clear(self) -> None:
        super().clear()
        self._numbers: dict[bytes, int] = {}
        """Directory numbers by path, filled when one is looked up."""
        self._last_path = (0, 0)
        """The row after the last one whose path was looked up, and the offset of that row's name in
        `text`."""

    def row(self, path: bytes) -> int | None:
        """Return the row of the entry at `path`, or None if there is none."""
        parent, _, name = path.rpartition(b"/")
        number = self.number(parent)
        if number is None:
            return None
        names = self.listing(number).names
        at = bisect_left(names, name)
        return self.firsts[number] + at if names[at : at + 1] == (name,) else None

    def is_directory(self, path: bytes) -> bool:
        """Return whether the entry at `path` is a directory."""
        row = self.row(path)
        return row is not None and self.kinds[row] == Kind.DIRECTORY

    def same(self, directory: int, other: Manifest, other_directory: int, preserved: Preserved) -> bool:
        """Return whether a directory of the source equals `other_directory` of `other`, the destination's, as
        far as both ends preserve it."""
        # Most directories of most trees are equal, so columns are compared without unpacking them.
        a, b, ends = (
            self.firsts[directory],
            other.firsts[other_directory],
            (self.end(directory), other.end(other_directory)),
        )
        count = ends[0] - a
        if count != ends[1] - b or self.kinds[a : a + count] != other.kinds[b : b + count]:
            return False

        def alike(mine: bytearray, its: bytearray, width: int) -> bool:
            return mine[width * a : width * (a + count)] == its[width * b : width * (b + count)]

        if not (alike(self.sizes, other.sizes, 8) and self.names(directory) == other.names(other_directory)):
            return False
        kinds = self.kinds[a : a + count]
        if not alike(self.mtimes, other.mtimes, 8):
            mine, its = self.mtimes[8 * a : 8 * (a + count)], other.mtimes[8 * b : 8 * (b + count)]
            if preserved.at_source.mtimes(mine, kinds) != preserved.at_destination.mtimes(its, kinds):
                return False
        if not alike(self.modes, other.modes, 2):
            mine, its = self.modes[2 * a : 2 * (a + count)], other.modes[2 * b : 2 * (b + count)]
            if preserved.compared_modes(mine, kinds) != preserved.compared_modes(its, kinds):
                return False
        if preserved.owner and not alike(self.uids, other.uids, 4):
            return False
        if preserved.owner and preserved.group and not alike(self.gids, other.gids, 4):
            return False
        return self.links_of(directory) == other.links_of(other_directory)

    def taken_directories(self, other: Manifest) -> bytearray:
        """Return a byte per directory: 1 if it needs no comparison with `other`.

        That holds if all its entries were taken from one directory of `other` and that one has no more.
        """
        whole = bytearray(len(self.directories))
        for run in self.taken:
            stop = run.first + run.count
            begin, last = self.directory_of(run.first), self.directory_of(stop - 1)
            whole[begin : last + 1] = b"\1" * (last + 1 - begin)
            # Only the first and last directory of a run can be incomplete.
            for directory in {begin, last}:
                first, end = self.firsts[directory], self.end(directory)
                row = first - run.first + run.source
                other_directory = other.directory_of(row) if first >= run.first and end <= stop else -1
                if other_directory < 0 or (
                    other.firsts[other_directory],
                    other.end(other_directory) - row,
                ) != (row, end - first):
                    whole[directory] = 0
        return whole

    def number(self, path: bytes) -> int | None:
        """Return the number of the directory at `path`, or None if it has no entries."""
        for number in range(len(self._numbers), len(self.directories)):
            self._numbers[self.directories[number]] = number
        return self._numbers.get(path)

    def listed(self, path: bytes) -> PackedListing | None:
        """Return all entries of the directory at `path`; None if it has none here."""
        number = self.number(path)
        return None if number is None else self.packed(number)

    def runs(self, rows: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Yield (directory number, its rows) for increasing `rows`. Raises IndexError for unknown rows."""
        if rows and not 0 <= rows[-1] < len(self.kinds):
            raise IndexError(rows[-1])
        at = 0
        while at < len(rows):
            directory = self.directory_of(rows[at])
            stop = bisect_left(rows, self.end(directory), at)
            yield directory, rows[at:stop]
            at = stop

    def paths(self, rows: Sequence[int]) -> list[bytes]:
        """Return the paths of increasing rows. Raises IndexError for unknown rows."""
        return strings(self.joined_paths(rows))

    def joined_paths(self, rows: Sequence[int]) -> bytes:
        """Return the paths of increasing rows, each followed by NUL. Raises IndexError for unknown rows."""
        if rows and not 0 <= rows[-1] < len(self.kinds):
            raise IndexError(rows[-1])
        if not rows:
            return b""
        directory = self.directory_of(rows[0])
        cached = self._unpacked_listings.get(directory)
        if cached is not None and rows[-1] < self.end(directory):
            # The listing is cached, so calls for one large directory may come in any order.
            first, above = self.firsts[directory], self.directories[directory]
            start = above + b"/" if above else b""
            return b"".join([start + cached.names[row - first] + b"\0" for row in rows])
        wanted = array("Q", rows)
        paths, self._last_path = row_paths(self.text, self.texts, self.firsts, wanted, self._last_path)
        return paths

    def sizes_of(self, rows: Sequence[int]) -> list[int]:
        """Return the sizes in bytes of increasing rows, all of which must exist."""
        if rows and rows[-1] - rows[0] == len(rows) - 1:
            return little_endian_integers("Q", self.sizes[8 * rows[0] : 8 * rows[-1] + 8]).tolist()
        return _chosen("Q", self.sizes, rows)

    def mtimes_of(self, rows: Sequence[int]) -> list[int]:
        """Return the mtimes in nanoseconds of increasing rows, all of which must exist."""
        return _chosen("q", self.mtimes, rows)

    def chosen(self, directory: int, rows: Sequence[int]) -> PackedListing:
        """Return one or more increasing rows of a directory. Consecutive rows are sliced, without work per
        row."""
        if rows[-1] - rows[0] == len(rows) - 1:
            return self.packed_slice(directory, rows[0], rows[-1] + 1)
        first = self.firsts[directory]
        return self.listing(directory).rows([row - first for row in rows]).packed()

    def entry(self, row: int) -> Entry:
        """Return one row as a value. Raises IndexError for an unknown row."""
        if not 0 <= row < len(self.kinds):
            raise IndexError(row)
        directory = bisect_right(self.firsts, row) - 1
        listing, at = self.listing(directory), row - self.firsts[directory]
        kind = listing.kinds[at]
        target = listing.target(at) if kind == Kind.SYMLINK else b""
        path = join(self.directories[directory], listing.names[at])
        return Entry(path, kind, listing.sizes[at], listing.metadata(at), target)

    def root(self, top: Metadata | None, preserved: Preserved) -> bytes:
        """Return the root digest, 32 bytes over every column that is `preserved`. MANIFEST.md has the
        formula.

        `top` is the metadata of the root directory itself, or None if that takes no part. `preserved`: as
        in Fold, or of both ends for entries of either.
        """
        owners = preserved.owner | (preserved.owner and not preserved.group) << 1
        head = struct.pack("<BB", owners, top is not None)
        if top is not None:
            mode = top.mode & preserved.directory_modes
            head += struct.pack("<Hq", mode, preserved.top_mtime(top.mtime_ns))
            head += struct.pack("<I", top.uid) if preserved.owner else b""
            head += struct.pack("<I", top.gid) if preserved.owner and preserved.group else b""
        hasher = blake3(head, key=ROOT_KEY)
        columns: list[bytes | bytearray] = [self.text, self.kinds, self.targets]
        columns += [preserved.compared_modes(self.modes, self.kinds)]
        columns += [self.sizes, preserved.mtimes(self.mtimes, self.kinds)]
        columns += [self.uids] if preserved.owner else []
        columns += [self.gids] if preserved.owner and preserved.group else []
        hasher.update(b"".join(len(column).to_bytes(8, "little") for column in columns))
        for column in columns:
            hasher.update(column)
        return hasher.digest()


def _chosen(typecode: str, column: bytearray, rows: Sequence[int]) -> list[int]:
    """Return the 8-byte numbers in these rows of a packed column."""
    return little_endian_integers(typecode, take_rows(column, 8, array("Q", rows))).tolist()


# Fold: a manifest folded into a tree of nodes, so that two manifests are compared only where they differ.
#
# Rows are grouped by winnowing over hashes of their paths, about 16 to a node. Nodes are grouped by the first
# bytes of their names digest. So changed metadata moves no boundary. A node has one digest per column group,
# so a tree in which only mtimes changed sends only mtimes. MANIFEST.md has the format.

DIGEST_BYTES = 32

NODES_AT_ONCE = 4096
"""Nodes whose rows are gathered and hashed together. At about 60 bytes per row they take 4 MB."""

DIRECTORIES_AT_ONCE = 4096
"""Directories whose names are ranked together: 8 bytes a row."""

NODE_KEY = blake3(b"rdc 1 manifest node").digest()


class Group(IntFlag):
    """Columns that are compared and sent together."""

    NAMES = 1
    """Paths, kinds and link targets."""
    ATTRIBUTES = 2
    """Modes, sizes, and owners if they are preserved."""
    MTIMES = 4
    WHOLE = 8
    """All groups as one, to find which nodes differ rather than in what."""

    @property
    def width(self) -> int:
        """Bytes of a short reference to this group of a node.

        Names are looked up among all nodes of a tier; other groups are compared with one candidate. The root
        digests are compared in the end, so a collision only costs a repetition.
        """
        return _WIDTHS[self]


_WIDTHS = {Group.NAMES: 5, Group.ATTRIBUTES: 3, Group.MTIMES: 3, Group.WHOLE: 4}

GROUPS = (Group.NAMES, Group.ATTRIBUTES, Group.MTIMES)

GROUND_KEYS = {
    Group.NAMES: blake3(b"rdc 1 manifest names").digest(),
    Group.ATTRIBUTES: blake3(b"rdc 1 manifest attributes").digest(),
    Group.MTIMES: blake3(b"rdc 1 manifest mtimes").digest(),
}


class Tier(Record):
    """The nodes of one level. Children of tier 0 are rows of the manifest; children of other tiers are nodes
    below."""

    ends: array[int]
    """Typecode 'Q': the number after each node's last child."""
    rows: array[int]
    """Typecode 'Q': the row after each node's last row."""
    digests: dict[Group, bytes]
    """32 bytes per node for each group."""

    def __len__(self) -> int:
        return len(self.ends)

    def children(self, node: int) -> range:
        return range(self.ends[node - 1] if node else 0, self.ends[node])

    def span(self, node: int) -> range:
        """Return the rows of the manifest below a node."""
        return range(self.rows[node - 1] if node else 0, self.rows[node])

    def references(self, group: Group, key: bytes, nodes: range) -> bytes:
        """Return short keyed references to one group of `nodes`, `group.width` bytes each."""
        digests = self._whole(nodes) if group is Group.WHOLE else self._digests(group, nodes)
        return short_references(key, digests, DIGEST_BYTES, group.width)

    def _digests(self, group: Group, nodes: range) -> memoryview:
        return memoryview(self.digests[group])[nodes.start * DIGEST_BYTES : nodes.stop * DIGEST_BYTES]

    def _whole(self, nodes: range) -> bytes:
        return b"".join(
            blake3(b"".join(self._digests(group, range(node, node + 1)) for group in GROUPS)).digest()
            for node in nodes
        )


class Fold:
    """The tiers over a manifest, from rows upwards, until one has at most 26 nodes. A manifest without rows
    has none.

    They are computed on first use: most manifests equal their counterpart and are never folded.
    """

    def __init__(self, manifest: Manifest, preserved: Preserved) -> None:
        """`preserved`: of what both ends preserve, `at_source` or `at_destination`."""
        self.manifest = manifest
        self._preserved = preserved
        self._tiers: list[Tier] | None = None

    @property
    def tiers(self) -> list[Tier]:
        """All tiers, tier 0 first."""
        return self.prepare()

    def prepare(self) -> list[Tier]:
        """Compute the tiers unless that was done, and return them."""
        if self._tiers is None:
            self._tiers = tiers = []
            if len(self.manifest):
                tiers.append(self._ground())
                while len(tiers[-1]) > NODE_RECORDS_MAX:
                    tiers.append(_above(tiers[-1]))
        return self._tiers

    def _ground(self) -> Tier:
        # Imported here: manifests that are equal or sent whole do not need it.
        from rdc.kernel.blake3_many import name_parts

        manifest = self.manifest
        winnower = Winnower(NODE_RECORDS_MIN, NODE_RECORDS_MAX)
        ends: list[int] = []
        for begin in range(0, len(manifest.directories), DIRECTORIES_AT_ONCE):
            paths = manifest.directories[begin : begin + DIRECTORIES_AT_ONCE]
            text = manifest.text_of(begin, begin + len(paths))
            keys = name_parts(b"".join(paths), array("Q", map(len, paths)))
            ends += winnower.feed(text_ranks(text, keys))
        ends += winnower.finish()
        bounds = array("Q", ends)
        digests = {group: bytearray() for group in GROUPS}
        fixed = tuple(self._columns())
        first, position = 0, (0, 0, 0)
        for at in range(0, len(bounds), NODES_AT_ONCE):
            some = bounds[at : at + NODES_AT_ONCE]
            names, sizes, position = node_names(
                manifest.text,
                manifest.texts,
                manifest.firsts,
                manifest.kinds,
                manifest.targets,
                some,
                position,
            )
            digests[Group.NAMES] += name_parts(names, array("Q", sizes), GROUND_KEYS[Group.NAMES])
            for group, columns in fixed:
                width = sum([wide for _, wide in columns])
                lengths = array("Q", [width * rows for rows in map(sub, some, (first, *some))])
                digests[group] += name_parts(node_columns(some, first, columns), lengths, GROUND_KEYS[group])
            first = some[-1]
        return Tier(bounds, bounds, {group: bytes(column) for group, column in digests.items()})

    def _columns(self) -> Iterator[tuple[Group, tuple[tuple[bytes | bytearray, int], ...]]]:
        """Yield the groups besides NAMES, each with its columns and their widths in bytes."""
        manifest, preserved = self.manifest, self._preserved
        modes = preserved.compared_modes(manifest.modes, manifest.kinds)
        uids = ((manifest.uids, 4),) if preserved.owner else ()
        gids = ((manifest.gids, 4),) if preserved.owner and preserved.group else ()
        yield Group.ATTRIBUTES, ((modes, 2), (manifest.sizes, 8), *uids, *gids)
        yield Group.MTIMES, ((preserved.mtimes(manifest.mtimes, manifest.kinds), 8),)


def _above(below: Tier) -> Tier:
    winnower = Winnower(NODE_RECORDS_MIN, NODE_RECORDS_MAX)
    ranks = array("Q", below.digests[Group.NAMES])[:: DIGEST_BYTES // 8]
    ranks.byteswap()
    ends = winnower.feed(ranks) + winnower.finish()
    digests = {}
    for group in GROUPS:
        column = below.digests[group]
        digests[group] = b"".join(
            blake3(column[first * DIGEST_BYTES : end * DIGEST_BYTES], key=NODE_KEY).digest()
            for first, end in zip([0, *ends], ends, strict=False)
        )
    return Tier(array("Q", ends), array("Q", (below.rows[end - 1] for end in ends)), digests)
