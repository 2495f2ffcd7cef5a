"""A manifest: all entries of a tree as columns, in the order of the walk, with one digest over everything.

Rows are entries: a directory's entries lie together, sorted by name; directories follow each other in
pre-order. The text column holds, for each directory with entries, NUL, its path, NUL, and then its entries'
names, each followed by NUL: since no name is empty, an empty string always announces a path.
About 30 bytes an entry besides its name; a million entries stay below 100 MB.
"""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict
from itertools import accumulate

from blake3 import blake3

from rdc.kernel import row_paths, take_rows
from rdc.model.entries import Kind, Listing, Metadata, PackedListing, little_endian_integers, strings
from rdc.records import dataclass
from rdc.tree.walk import join

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from rdc.model.kept import Kept

__all__ = ["Entry", "Manifest", "covering_root", "further_digest"]

OPENED_DIRECTORIES = 8
"""Directories kept unpacked: those that are being compared and those whose files arrive meanwhile."""

SUMMED_BYTES = 1 << 19
"""Of the column of sizes that are added up at a time."""

PLACED_ROWS = 64
"""Rows of a directory up to which names are counted through where a place among them is sought."""

ROOT_KEY = blake3(b"rdc 1 manifest root").digest()


def further_digest(links: bytes | None, attributes: bytes | None) -> bytes:
    """32 bytes over what columns do not have, given digests of hard links and of extended attributes, None
    where they are not kept; b"" where neither is."""
    if links is None and attributes is None:
        return b""
    return blake3((links or bytes(32)) + (attributes or bytes(32))).digest()


def covering_root(root: bytes, further: bytes) -> bytes:
    """A manifest's root, 32 bytes, that covers `further` as well."""
    return blake3(b"rdc 1 further" + root + further).digest() if further else root


@dataclass(frozen=True, slots=True)
class Entry:
    """One row, looked up."""

    path: bytes
    kind: int
    size: int
    """Bytes."""
    metadata: Metadata
    target: bytes
    """Where a symlink points; b'' for anything else."""


@dataclass(frozen=True, slots=True)
class TakenRows:
    """Rows that one manifest took from another as they are."""

    first: int
    """Here."""
    source: int
    """There."""
    count: int


class Manifest:
    """Grows by whole directories (`add`) or by parts of them (`extend`), in walk order."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all rows."""
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
        """Where its names begin in `text`."""
        self.links: array[int] = array("Q")
        """Where its link targets begin in `targets`."""
        self.taken: list[TakenRows] = []
        """What was taken, in order, from the manifest that it was taken from: there is at most one."""
        self._opened: OrderedDict[int, Listing] = OrderedDict()
        self._numbers: dict[bytes, int] = {}
        self._reached = (0, 0)
        """The row after the last one whose path was asked for, and where its name is."""
        self._marks: _Marks | None = None

    def __len__(self) -> int:
        return len(self.kinds)

    @property
    def total_size(self) -> int:
        """Bytes of all files."""
        # A part at a time: a column of integers beside the packed one would be as large again.
        parts = range(0, len(self.sizes), SUMMED_BYTES)
        return sum([sum(little_endian_integers("Q", self.sizes[at : at + SUMMED_BYTES])) for at in parts])

    def add(self, path: bytes, listing: PackedListing) -> None:
        """Takes the next directory of a walk, all of it."""
        if listing.count:
            self._begin(path)
            self._append(listing)

    def extend(self, path: bytes, listing: PackedListing) -> None:
        """Takes the next entries of a walk, of the last directory or of the next one."""
        if not listing.count:
            return
        if not self.directories or self.directories[-1] != path:
            self._begin(path)
        self._opened.pop(len(self.directories) - 1, None)
        self._marks = None
        self._append(listing)

    def take(self, other: Manifest, first: int, stop: int) -> None:
        """Takes the next entries of a walk, which are rows [first, stop) of `other`: as `extend` for what
        `other.parts` gives, but all columns at once."""
        if first < stop:
            self.taken.append(TakenRows(len(self), first, stop - first))
            self._copy(other, first, stop)

    def take_amended(self, other: Manifest, first: int, stop: int, columns: Mapping[str, bytes]) -> None:
        """The same, but for columns named here, packed, of all these rows; an empty one is as it is there."""
        if first < stop:
            self._copy(other, first, stop)
            for name, column in columns.items():
                if column:
                    getattr(self, name)[-len(column) :] = column

    def _copy(self, other: Manifest, first: int, stop: int) -> None:
        begin, last = other.directory_of(first), other.directory_of(stop - 1)
        path = other.directories[begin]
        if not self.directories or self.directories[-1] != path:
            self._begin(path)
        self._opened.pop(len(self.directories) - 1, None)
        self._marks = None
        text, link = other._place(begin, first)
        text_end, link_end = other._place(last, stop)
        rows, texts, links = len(self) - first, len(self.text) - text, len(self.targets) - link
        further = slice(begin + 1, last + 1)
        self.directories += other.directories[further]
        self.firsts.extend([row + rows for row in other.firsts[further]])
        self.texts.extend([at + texts for at in other.texts[further]])
        self.links.extend([at + links for at in other.links[further]])
        # Between two directories' names the text column has the path of the second.
        self.text += other.text[text:text_end]
        self.targets += other.targets[link:link_end]
        self.kinds += other.kinds[first:stop]
        self.modes += other.modes[2 * first : 2 * stop]
        self.sizes += other.sizes[8 * first : 8 * stop]
        self.mtimes += other.mtimes[8 * first : 8 * stop]
        self.uids += other.uids[4 * first : 4 * stop]
        self.gids += other.gids[4 * first : 4 * stop]

    def _place(self, directory: int, row: int) -> tuple[int, int]:
        """Where in `text` and `targets` what lies before `row` of a directory ends; its end is a row too."""
        first = self.firsts[directory]
        if row == first:
            return self.texts[directory], self.links[directory]
        if row == self.end(directory):
            last = directory + 1 == len(self.firsts)
            links_end = len(self.targets) if last else self.links[directory + 1]
            return self._names_end(directory), links_end
        before = row - first
        if before <= PLACED_ROWS and Kind.SYMLINK not in self.kinds[first:row]:
            names = self.names(directory)
            rest = names.split(b"\0", before)[before]
            return self.texts[directory] + len(names) - len(rest), self.links[directory]
        marks = self._marks_of(directory)
        return self.texts[directory] + marks.names[before], self.links[directory] + marks.targets[before]

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

    def row(self, path: bytes) -> int | None:
        """The row of the entry at `path`; None: there is none."""
        parent, _, name = path.rpartition(b"/")
        number = self.number(parent)
        if number is None:
            return None
        names = self.listing(number).names
        at = bisect_left(names, name)
        return self.firsts[number] + at if names[at : at + 1] == (name,) else None

    def is_directory(self, path: bytes) -> bool:
        """Whether an entry says that a directory is at `path`."""
        row = self.row(path)
        return row is not None and self.kinds[row] == Kind.DIRECTORY

    def same(self, directory: int, other: Manifest, theirs: int, kept: Kept) -> bool:
        """Whether a directory has the entries that `theirs` of another has, as far as they are kept."""
        # Most directories of most trees are: no listing is made for either.
        a, b, ends = self.firsts[directory], other.firsts[theirs], (self.end(directory), other.end(theirs))
        count = ends[0] - a
        if count != ends[1] - b or self.kinds[a : a + count] != other.kinds[b : b + count]:
            return False

        def alike(mine: bytearray, its: bytearray, width: int) -> bool:
            return mine[width * a : width * (a + count)] == its[width * b : width * (b + count)]

        if not (alike(self.sizes, other.sizes, 8) and self.names(directory) == other.names(theirs)):
            return False
        if not alike(self.mtimes, other.mtimes, 8):
            mine, its = self.mtimes[8 * a : 8 * (a + count)], other.mtimes[8 * b : 8 * (b + count)]
            if kept.mtimes(mine) != kept.mtimes(its):
                return False
        if kept.modes and not alike(self.modes, other.modes, 2):
            return False
        if kept.owner and not (alike(self.uids, other.uids, 4) and alike(self.gids, other.gids, 4)):
            return False
        return self.links_of(directory) == other.links_of(theirs)

    def taken_directories(self, other: Manifest) -> bytearray:
        """A byte a directory: 1 where all its entries were taken from `other`, and are all that it has there:
        the two need no comparison."""
        whole = bytearray(len(self.directories))
        for run in self.taken:
            stop = run.first + run.count
            begin, last = self.directory_of(run.first), self.directory_of(stop - 1)
            whole[begin : last + 1] = b"\1" * (last + 1 - begin)
            # Those in between begin and end where they do there.
            for directory in {begin, last}:
                first, end = self.firsts[directory], self.end(directory)
                row = first - run.first + run.source
                theirs = other.directory_of(row) if first >= run.first and end <= stop else -1
                if theirs < 0 or (other.firsts[theirs], other.end(theirs) - row) != (row, end - first):
                    whole[directory] = 0
        return whole

    def links_of(self, directory: int) -> bytes:
        """The targets of a directory's symlinks, each followed by NUL."""
        last = directory + 1 == len(self.firsts)
        return bytes(
            self.targets[self.links[directory] : len(self.targets) if last else self.links[directory + 1]]
        )

    def end(self, directory: int) -> int:
        """The row after a directory's last."""
        return self.firsts[directory + 1] if directory + 1 < len(self.firsts) else len(self.kinds)

    def directory_of(self, row: int) -> int:
        """Number of the directory that a row belongs to."""
        return bisect_right(self.firsts, row) - 1

    def number(self, path: bytes) -> int | None:
        """Number of the directory at `path`; None: it has no entries."""
        for number in range(len(self._numbers), len(self.directories)):
            self._numbers[self.directories[number]] = number
        return self._numbers.get(path)

    def names(self, directory: int) -> bytes:
        """The names of a directory, each followed by NUL."""
        return bytes(self.text[self.texts[directory] : self._names_end(directory)])

    def _names_end(self, directory: int) -> int:
        if directory + 1 == len(self.firsts):
            return len(self.text)
        return self.texts[directory + 1] - len(self.directories[directory + 1]) - 2

    def packed(self, directory: int) -> PackedListing:
        """All entries of a directory."""
        return self._columns(
            self.firsts[directory], self.end(directory), self.names(directory), self.links_of(directory)
        )

    def piece(self, directory: int, first: int, stop: int) -> PackedListing:
        """Rows [first, stop) of a directory. Pieces of the same directory in turn cost their own length."""
        marks, base = self._marks_of(directory), self.firsts[directory]
        at, to = first - base, stop - base
        names = bytes(
            self.text[self.texts[directory] + marks.names[at] : self.texts[directory] + marks.names[to]]
        )
        links = self.links[directory]
        targets = bytes(self.targets[links + marks.targets[at] : links + marks.targets[to]])
        return self._columns(first, stop, names, targets)

    def _marks_of(self, directory: int) -> _Marks:
        """The last one asked for is kept."""
        if self._marks is None or self._marks.directory != directory:
            self._marks = _Marks.of(directory, self.packed(directory))
        return self._marks

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

    def runs(self, rows: Sequence[int]) -> Iterator[tuple[int, Sequence[int]]]:
        """Increasing rows, directory by directory: its number and those that are in it. Raises IndexError for
        rows that do not exist."""
        if rows and not 0 <= rows[-1] < len(self.kinds):
            raise IndexError(rows[-1])
        at = 0
        while at < len(rows):
            directory = self.directory_of(rows[at])
            stop = bisect_left(rows, self.end(directory), at)
            yield directory, rows[at:stop]
            at = stop

    def paths(self, rows: Sequence[int]) -> list[bytes]:
        """Of increasing rows. Raises IndexError for rows that do not exist."""
        return strings(self.joined_paths(rows))

    def joined_paths(self, rows: Sequence[int]) -> bytes:
        """The same, each followed by NUL."""
        if rows and not 0 <= rows[-1] < len(self.kinds):
            raise IndexError(rows[-1])
        if not rows:
            return b""
        directory = self.directory_of(rows[0])
        opened = self._opened.get(directory)
        if opened is not None and rows[-1] < self.end(directory):
            # Rows of a large directory, in any order of calls.
            first, above = self.firsts[directory], self.directories[directory]
            start = above + b"/" if above else b""
            return b"".join([start + opened.names[row - first] + b"\0" for row in rows])
        wanted = array("Q", rows)
        paths, self._reached = row_paths(self.text, self.texts, self.firsts, wanted, self._reached)
        return paths

    def sizes_of(self, rows: Sequence[int]) -> list[int]:
        """Bytes of the files in rows that exist, which increase."""
        if rows and rows[-1] - rows[0] == len(rows) - 1:
            return little_endian_integers("Q", self.sizes[8 * rows[0] : 8 * rows[-1] + 8]).tolist()
        return _chosen("Q", self.sizes, rows)

    def mtimes_of(self, rows: Sequence[int]) -> list[int]:
        """Nanoseconds, of rows that exist."""
        return _chosen("q", self.mtimes, rows)

    def chosen(self, directory: int, rows: Sequence[int]) -> PackedListing:
        """These rows of a directory, at least one; rows that follow each other cost nothing for each."""
        if rows[-1] - rows[0] == len(rows) - 1:
            return self.piece(directory, rows[0], rows[-1] + 1)
        first = self.firsts[directory]
        return self.listing(directory).rows([row - first for row in rows]).packed()

    def listing(self, directory: int) -> Listing:
        """All entries of a directory, unpacked; the last few asked for are kept."""
        listing = self._opened.get(directory)
        if listing is None:
            listing = self._opened[directory] = self._unpacked(directory)
            if len(self._opened) > OPENED_DIRECTORIES:
                self._opened.popitem(last=False)
        else:
            self._opened.move_to_end(directory)
        return listing

    def _unpacked(self, directory: int) -> Listing:
        # Without a PackedListing between: of a tree that was touched all directories are unpacked.
        first, end = self.firsts[directory], self.end(directory)
        return Listing(
            tuple(strings(self.names(directory))),
            bytes(self.kinds[first:end]),
            little_endian_integers("H", self.modes[2 * first : 2 * end]),
            little_endian_integers("Q", self.sizes[8 * first : 8 * end]),
            little_endian_integers("q", self.mtimes[8 * first : 8 * end]),
            little_endian_integers("I", self.uids[4 * first : 4 * end]),
            little_endian_integers("I", self.gids[4 * first : 4 * end]),
            tuple(strings(self.links_of(directory))),
        )

    def entry(self, row: int) -> Entry:
        """Raises IndexError for a row that does not exist."""
        if not 0 <= row < len(self.kinds):
            raise IndexError(row)
        directory = self.directory_of(row)
        listing, at = self.listing(directory), row - self.firsts[directory]
        kind = listing.kinds[at]
        target = listing.target(at) if kind == Kind.SYMLINK else b""
        path = join(self.directories[directory], listing.names[at])
        return Entry(path, kind, listing.sizes[at], listing.metadata(at), target)

    def root(self, top: Metadata | None, kept: Kept) -> bytes:
        """32 bytes over every column that is kept; `top`: the root directory's own metadata, where it is.

        What is not kept does not count. MANIFEST.md has the formula.
        """
        head = struct.pack("<BB", kept.owner | (not kept.modes) << 1, top is not None)
        if top is not None:
            head += struct.pack("<Hq", top.mode if kept.modes else 0, kept.mtime(top.mtime_ns))
            head += struct.pack("<II", top.uid, top.gid) if kept.owner else b""
        hasher = blake3(head, key=ROOT_KEY)
        columns: list[bytes | bytearray] = [self.text, self.kinds, self.targets]
        columns += [self.modes] if kept.modes else []
        columns += [self.sizes, kept.mtimes(self.mtimes)]
        if kept.owner:
            columns += [self.uids, self.gids]
        hasher.update(b"".join(len(column).to_bytes(8, "little") for column in columns))
        for column in columns:
            hasher.update(column)
        return hasher.digest()

    def set_modes(self, modes: Mapping[int, int]) -> None:
        """Other permissions for these rows."""
        for row, mode in modes.items():
            self.modes[2 * row : 2 * row + 2] = mode.to_bytes(2, "little")
        self._opened.clear()

    def parts(self, first: int, stop: int) -> Iterator[tuple[bytes, PackedListing]]:
        """Rows [first, stop), directory by directory, as `extend` takes them."""
        while first < stop:
            directory = self.directory_of(first)
            begin, end = self.firsts[directory], self.end(directory)
            until = min(stop, end)
            whole = (first, until) == (begin, end)
            listing = self.packed(directory) if whole else self.piece(directory, first, until)
            yield self.directories[directory], listing
            first = until


@dataclass(frozen=True, slots=True)
class _Marks:
    """Where each row's name and link target begin within a directory's, and where the last ones end."""

    directory: int
    names: array[int]
    targets: array[int]

    @classmethod
    def of(cls, directory: int, listing: PackedListing) -> _Marks:
        lengths = [len(name) + 1 for name in strings(listing.names)]
        names = array("Q", accumulate(lengths, initial=0))
        if not listing.targets:
            return cls(directory, names, array("Q", bytes(8 * len(names))))
        links = iter(strings(listing.targets))
        spans = (len(next(links)) + 1 if kind == Kind.SYMLINK else 0 for kind in listing.kinds)
        return cls(directory, names, array("Q", accumulate(spans, initial=0)))


def _chosen(typecode: str, column: bytearray, rows: Sequence[int]) -> list[int]:
    """The numbers of 8 bytes in these rows of a packed column."""
    return little_endian_integers(typecode, take_rows(column, 8, array("Q", rows))).tolist()
