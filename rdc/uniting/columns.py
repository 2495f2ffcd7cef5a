"""Rows of a two-way sync as columns: what did not change since the last run is never a Python object.

A Table has rows in order of their paths. A run makes objects of the rows in directories that differ, and the
next ancestor is the last one's columns with the rows of these directories in their place.
"""

from __future__ import annotations

import sys
from array import array
from bisect import bisect_left
from itertools import compress

from blake3 import blake3

from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple
from rdc.uniting.path_texts import Paths, terminated
from rdc.uniting.rows import DIGEST_BYTES, DIRECTORY, FILE, MODE_BITS, SYMLINK, Ancestor, Stamp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from rdc.tree.walk import WalkedDirectory

    Part: TypeAlias = "tuple[Table, int, int]"
    """Rows of a table: the first one, and the one after the last."""

    Pieces: TypeAlias = "Sequence[bytes | memoryview]"
    """One column, in pieces: those of a large table are not copied."""

STAMP_CODES = "qHqQq"
"""Sizes, modes, times, inode numbers, change times: what a side's own file system says."""

_STAMP_BYTES = (8, 2, 8, 8, 8)
_SIZE_BYTES = 8
_IS_DIRECTORY = bytes(kind == DIRECTORY for kind in range(256))

UNKNOWN_DIGEST = bytes(DIGEST_BYTES)
"""The digest of a directory that no walk finds: the next run looks at each of its entries."""


class SharedRow(Record):
    """The columns of an entry that both sides share."""

    kind: int
    digest: bytes | None
    """A file's content, if it is known; else None."""
    target: bytes
    """A symlink's; b"" of others."""
    mode: int
    mtime_ns: int


def little(column: array[int]) -> bytes:
    """Return the bytes of a column, little-endian."""
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def integers(code: str, packed: bytes) -> array[int]:
    """Return the inverse of `little`."""
    column = array(code)
    column.frombytes(packed)
    if sys.byteorder == "big":
        column.byteswap()
    return column


class Table(NamedTuple):
    """Rows in order of their paths, as columns of little-endian bytes."""

    paths: Paths
    kinds: bytes
    known: bytes
    """1 if the content of the row is known, else 0."""
    digests: bytes
    """The known contents, DIGEST_BYTES each."""
    targets: Sequence[bytes]
    """The targets of the symlinks."""
    modes: bytes
    mtimes: bytes
    own: Sequence[bytes]
    """The columns of STAMP_CODES."""

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.kinds)

    @property
    def directories(self) -> Iterator[bytes]:
        """The paths of the directories, in order, without the top."""
        return compress(self.paths, self.kinds.translate(_IS_DIRECTORY))

    def number(self, path: bytes) -> int | None:
        """Return the number of the row of a path; None if there is none."""
        at = bisect_left(self.paths, path)
        return at if at < self.size and self.paths[at] == path else None

    def children(self, directory: bytes) -> list[int]:
        """Return the numbers of the rows in a directory, in order. Skips what lies deeper."""
        prefix = directory + b"/" if directory else b""
        paths, skip = self.paths, len(prefix)
        at = bisect_left(paths, prefix) if prefix else 0
        end = bisect_left(paths, directory + b"0") if prefix else self.size  # "0" comes after "/"
        found: list[int] = []
        while at < end:
            slash = paths[at].find(b"/", skip)
            if slash < 0:
                found.append(at)
                at += 1
            else:
                at = bisect_left(paths, paths[at][:slash] + b"0", at, end)
        return found

    def rows(self, numbers: Iterable[int]) -> list[tuple[SharedRow, Stamp]]:
        """Return rows as objects. `numbers` rises."""
        known = links = before = 0
        found: list[tuple[SharedRow, Stamp]] = []
        for at in numbers:
            known += self.known.count(1, before, at)
            links += self.kinds.count(SYMLINK, before, at)
            before = at
            kind = self.kinds[at]
            digest = None
            if self.known[at]:
                digest = self.digests[known * DIGEST_BYTES : (known + 1) * DIGEST_BYTES]
            target = self.targets[links] if kind == SYMLINK else b""
            mode = int.from_bytes(self.modes[2 * at : 2 * at + 2], "little")
            mtime = int.from_bytes(self.mtimes[8 * at : 8 * at + 8], "little", signed=True)
            stamp = Stamp(
                *(
                    int.from_bytes(column[width * at : width * (at + 1)], "little", signed=code == "q")
                    for column, width, code in zip(self.own, _STAMP_BYTES, STAMP_CODES, strict=True)
                )
            )
            found.append((SharedRow(kind, digest, target, mode, mtime), stamp))
        return found


def table_of(paths: Sequence[bytes], rows: Sequence[SharedRow], stamps: Sequence[Stamp]) -> Table:
    """Return rows as a table. `paths` is sorted."""
    return Table(
        Paths.of(paths),
        bytes([row.kind for row in rows]),
        bytes([row.digest is not None for row in rows]),
        b"".join([row.digest for row in rows if row.digest is not None]),
        [row.target for row in rows if row.kind == SYMLINK],
        little(array("H", [row.mode for row in rows])),
        little(array("q", [row.mtime_ns for row in rows])),
        own_columns(stamps),
    )


def own_columns(stamps: Sequence[Stamp]) -> list[bytes]:
    """Return the columns of stamps."""
    return [little(array(code, [stamp[field] for stamp in stamps])) for field, code in enumerate(STAMP_CODES)]


class _Place(NamedTuple):
    """Rows of a table, and where their contents and targets are."""

    table: Table
    start: int
    end: int
    known: int
    known_end: int
    links: int
    links_end: int

    def column(self, number: int) -> bytes | memoryview:
        """Return these rows of one column, in the order of a file at rest. Most columns are not copied."""
        table, start, end = self.table, self.start, self.end
        match number:
            case 0:
                return table.paths.part(start, end)
            case 1:
                return _cut(table.kinds, 1, start, end)
            case 2:
                return _cut(table.known, 1, start, end)
            case 3:
                return _cut(table.digests, DIGEST_BYTES, self.known, self.known_end)
            case 4:
                return terminated(table.targets[self.links : self.links_end])
            case 5:
                return _cut(table.modes, 2, start, end)
            case 6:
                return _cut(table.mtimes, 8, start, end)
        own = number - SHARED_COLUMNS
        return _cut(table.own[own], _STAMP_BYTES[own], start, end)


def _cut(column: bytes, width: int, start: int, end: int) -> memoryview:
    return memoryview(column)[width * start : width * end]


SHARED_COLUMNS = 7
"""The number of shared columns: paths, kinds, whether contents are known, these, targets, modes, times."""
_COLUMNS = range(SHARED_COLUMNS + len(STAMP_CODES))

_BLOCK_BYTES = 64 << 10
"""Shorter pieces of a column are joined: to pass each on would take longer than to copy it."""


def _placed(parts: Iterable[Part]) -> Iterator[_Place]:
    """Yield parts with their places. A table whose last row came is not held."""
    seen: dict[int, _Place] = {}
    for table, start, end in parts:
        before = seen.pop(id(table), None)
        at, known, links = (before.end, before.known_end, before.links_end) if before else (0, 0, 0)
        known += table.known.count(1, at, start)
        links += table.kinds.count(SYMLINK, at, start)
        known_end = known + table.known.count(1, start, end)
        links_end = links + table.kinds.count(SYMLINK, start, end)
        place = _Place(table, start, end, known, known_end, links, links_end)
        if end < table.size:
            seen[id(table)] = place  # it holds the table, so no other one gets its id
        yield place


def _blocks(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes | memoryview]:
    """Yield pieces with the short ones joined."""
    short: list[bytes | memoryview] = []
    size = 0
    for piece in pieces:
        is_long = len(piece) >= _BLOCK_BYTES
        if not is_long:
            short.append(piece)
            size += len(piece)
        if short and (is_long or size >= _BLOCK_BYTES):
            yield b"".join(short)
            short, size = [], 0
        if is_long:
            yield piece
    if short:
        yield b"".join(short)


class Spliced:
    """Rows of several tables in a row, of which one column at a time is made."""

    def __init__(self, parts: Iterable[Part]) -> None:
        """`parts`: those of one table rise."""
        self._places = list(_placed(parts))

    @property
    def size(self) -> int:
        """The number of rows."""
        return sum(place.end - place.start for place in self._places)

    @property
    def directories(self) -> Iterator[bytes]:
        """The paths of the directories, in order, without the top."""
        for table, start, end, *_ in self._places:
            at = start
            for chunk in table.paths.chunks(start, end):
                yield from compress(chunk, table.kinds[at : at + len(chunk)].translate(_IS_DIRECTORY))
                at += len(chunk)

    def columns(self) -> Iterator[Pieces]:
        """Yield the columns of a file at rest. The first SHARED_COLUMNS are what both sides have alike."""
        for number in _COLUMNS:
            yield list(_blocks(place.column(number) for place in self._places))


def joined(parts: Iterable[Part]) -> Table:
    """Return rows of several tables as one. The parts of one table rise."""
    growing = [bytearray() for _ in _COLUMNS]
    for place in _placed(parts):
        for number, column in enumerate(growing):
            column.extend(place.column(number))
    found: list[bytes] = []
    while growing:
        found.append(bytes(growing.pop(0)))  # both forms of one column at a time
    return table_of_columns(found)


def table_of_columns(columns: Iterable[bytes]) -> Table:
    """Return a table of the columns that Spliced.columns yields, each in one piece."""
    paths, kinds, known, digests, targets, modes, mtimes, *own = columns
    texts = targets.split(b"\0")
    texts.pop()
    return Table(Paths(paths, len(kinds)), kinds, known, digests, texts, modes, mtimes, own)


def replaced(table: Table, removed: Iterable[int], added: Table) -> Spliced:
    """Return `table` without the rows `removed`, and with those of `added`, whose paths the rest lacks."""
    places = [(bisect_left(table.paths, path), 0, number) for number, path in enumerate(added.paths)]
    parts: list[Part] = []
    at = 0
    for place, is_removed, number in sorted(places + [(row, 1, 0) for row in removed]):
        if place > at:
            parts.append((table, at, place))
            at = place
        if is_removed:
            at = place + 1
        elif parts and parts[-1][0] is added and parts[-1][2] == number:
            parts[-1] = added, parts[-1][1], number + 1
        else:
            parts.append((added, number, number + 1))
    if at < table.size:
        parts.append((table, at, table.size))
    return Spliced(parts)


# A directory as a walk lists it


def _wide_and(packed: bytes, mask: bytes) -> bytes:
    """Return the bitwise AND of columns of equal length."""
    return (int.from_bytes(packed, "little") & int.from_bytes(mask, "little")).to_bytes(len(packed), "little")


def _blank(column: bytes, width: int, rows: Iterable[int]) -> bytes:
    blanked = bytearray(column)
    for row in rows:
        blanked[width * row : width * (row + 1)] = bytes(width)
    return bytes(blanked)


def rows_of_kind(kinds: bytes, kind: int) -> list[int]:
    """Return the rows of one kind, in order."""
    return [row for row, each in enumerate(kinds) if each == kind] if kind in kinds else []


def listed_columns(directory: WalkedDirectory) -> list[bytes]:
    """Return the columns of STAMP_CODES as a walk lists a directory.

    Times of directories take no part, as every entry that comes or goes changes them, nor modes of symlinks.
    """
    _, listing, inodes = directory
    modes, mtimes, ctimes = listing.modes, listing.mtimes, inodes.ctimes
    below = rows_of_kind(listing.kinds, DIRECTORY)
    if below:
        mtimes, ctimes = _blank(mtimes, 8, below), _blank(ctimes, 8, below)
    if SYMLINK in listing.kinds:
        modes = _blank(modes, 2, rows_of_kind(listing.kinds, SYMLINK))
    return [listing.sizes, modes, mtimes, inodes.inodes, ctimes]


def column_part(column: bytes, number: int, row: int) -> bytes:
    """Return what column `number` of STAMP_CODES says of a row."""
    width = _STAMP_BYTES[number]
    return column[width * row : width * (row + 1)]


def _agreed_columns(directory: WalkedDirectory) -> tuple[bytes, bytes]:
    """Return the permissions of all entries, and the times of files, as two sides agree on them."""
    listing = directory.listing
    modes = _wide_and(listing.modes, MODE_BITS.to_bytes(2, "little") * listing.count)
    mtimes = listing.mtimes
    if listing.kinds != bytes([FILE]) * listing.count:
        others = [row for row, kind in enumerate(listing.kinds) if kind != FILE]
        mtimes = _blank(mtimes, 8, others)
        modes = _blank(modes, 2, rows_of_kind(listing.kinds, SYMLINK))
    return modes, mtimes


def columns_digest(parts: Sequence[bytes]) -> bytes:
    """Return the digest of columns, each behind its length."""
    whole = b"".join([each for part in parts for each in (len(part).to_bytes(_SIZE_BYTES, "little"), part)])
    return blake3(whole).digest(DIGEST_BYTES)


def listed_digest(directory: WalkedDirectory) -> bytes:
    """Return the digest of one directory as its side lists it: of names, kinds, targets and stamps.

    An unknown change time equals none that is listed.
    """
    path, listing, _ = directory
    return columns_digest([path, listing.names, listing.kinds, listing.targets, *listed_columns(directory)])


def agreed_digest(directory: WalkedDirectory) -> bytes:
    """Return the digest of what two sides without an ancestor compare in a directory. Size and time stand for
    the content of a file."""
    path, listing, _ = directory
    return columns_digest(
        [path, listing.names, listing.kinds, listing.targets, listing.sizes, *_agreed_columns(directory)]
    )


def table_of_directories(directories: Mapping[bytes, WalkedDirectory], tops: Iterable[bytes]) -> Table:
    """Return the entries at and below directories as a table, in order of paths, with unknown contents.

    `tops`: the directories, sorted, none below another. `directories`: these and all below them.
    """
    return joined(_parts_below(directories, tops))


def _parts_below(directories: Mapping[bytes, WalkedDirectory], tops: Iterable[bytes]) -> Iterator[Part]:
    todo: list[Part | bytes] = []
    todo += reversed(list(tops))
    while todo:
        each = todo.pop()
        if not isinstance(each, bytes):
            yield each
            continue
        directory = directories[each]
        table = _table_of_directory(directory)
        below = rows_of_kind(table.kinds, DIRECTORY)
        # A directory's entries come where its name with a slash does, which may be some names later.
        cuts = sorted((bisect_left(table.paths, table.paths[row] + b"/"), row) for row in below)
        at = 0
        found: list[Part | bytes] = []
        for place, row in sorted(cuts, key=lambda cut: (cut[0], table.paths[cut[1]] + b"/")):
            if place > at:
                found.append((table, at, place))
                at = place
            found.append(table.paths[row])
        if at < table.size:
            found.append((table, at, table.size))
        todo += found[::-1]


def _table_of_directory(directory: WalkedDirectory) -> Table:
    path, listing, _ = directory
    names = listing.names.split(b"\0")
    names.pop()
    if path:
        prefix = path + b"/"
        names = [prefix + name for name in names]
    targets = listing.targets.split(b"\0")
    targets.pop()
    modes, mtimes = _agreed_columns(directory)
    return Table(
        Paths.of(names),
        listing.kinds,
        bytes(listing.count),
        b"",
        targets,
        modes,
        mtimes,
        listed_columns(directory),
    )


# What both sides had in common


def with_parents(directories: Iterable[bytes]) -> set[bytes]:
    """Return directories, and all above them up to the top."""
    found = {b""}
    for path in directories:
        above = path
        while above not in found:
            found.add(above)
            above = above.rpartition(b"/")[0]
    return found


def parents(paths: Iterable[bytes]) -> set[bytes]:
    """Return the directories that paths are in."""
    return {path.rpartition(b"/")[0] for path in paths}


def unknown(number: int) -> bytes:
    """Return what stands for the content of the row `number`, which was not read. It is longer than a digest,
    and no other row has it: files that were made in one tick may have one size and one time, and any
    contents."""
    return b"not read, as in row %d of the ancestor" % number


class Common:
    """The common ancestor, whose rows are made where a run needs them."""

    def __init__(self, tables: tuple[Table, Table], attributes: Mapping[bytes, bytes] | None = None) -> None:
        """`tables`: with the left side's stamps, and with those of the right one. `attributes`: the digest of
        the extended attributes of each entry, by path; None: they take no part, or nothing was agreed."""
        self._tables = tables
        self._attributes = attributes or {}
        self._loaded: set[bytes] = set()
        self.rows: dict[bytes, Ancestor] = {}
        """The rows in the directories that were loaded, by path."""
        self.numbers: dict[bytes, int] = {}
        """The number of each of these rows in the table."""

    @property
    def count(self) -> int:
        """The number of all rows."""
        return self._tables[0].size

    @property
    def unloaded(self) -> int:
        """The number of rows that are as before at both sides."""
        return self.count - len(self.rows)

    def directories(self) -> set[bytes]:
        """All directories, with the top."""
        return {b"", *self._tables[0].directories}

    def number(self, path: bytes) -> int | None:
        """Return the number of the row of a path; None if there is none."""
        return self._tables[0].number(path)

    def path(self, number: int) -> bytes:
        """Return the path of a row."""
        return self._tables[0].paths[number]

    def load(self, directories: Iterable[bytes]) -> dict[bytes, Ancestor]:
        """Make the rows in these directories. Return those that were not made before."""
        left, right = self._tables
        found: dict[bytes, Ancestor] = {}
        new = set(directories) - self._loaded
        self._loaded |= new
        numbers = sorted(number for directory in new for number in left.children(directory))
        others = left.rows(numbers) if right is left else right.rows(numbers)
        for number, (row, one), (_, other) in zip(numbers, left.rows(numbers), others, strict=True):
            path, content = left.paths[number], row.target
            if row.kind == FILE:
                content = row.digest if row.digest is not None else unknown(number)
            attributes = self._attributes.get(path)
            found[path] = Ancestor(row.kind, content, row.mode, row.mtime_ns, (one, other), attributes)
            self.numbers[path] = number
        self.rows.update(found)
        return found


EMPTY = table_of((), (), ())


def digests_of(table: Table) -> dict[bytes, bytes]:
    """Return the digest of each directory with rows in a table, as `listed_digest` does."""
    inside: dict[bytes, list[tuple[bytes, int]]] = {}
    for number, path in enumerate(table.paths):
        parent, _, name = path.rpartition(b"/")
        inside.setdefault(parent, []).append((name, number))
    links = {row: at for at, row in enumerate(rows_of_kind(table.kinds, SYMLINK))}
    found: dict[bytes, bytes] = {}
    for path, entries in inside.items():
        entries.sort()
        here = [number for _, number in entries]
        columns = [
            b"".join([column[width * number : width * (number + 1)] for number in here])
            for column, width in zip(table.own, _STAMP_BYTES, strict=True)
        ]
        found[path] = columns_digest(
            [
                path,
                terminated([name for name, _ in entries]),
                bytes([table.kinds[number] for number in here]),
                terminated([table.targets[links[number]] for number in here if number in links]),
                *columns,
            ]
        )
    return found


def next_digests(
    table: Table | Spliced, added: Mapping[bytes, bytes], before: Mapping[bytes, bytes]
) -> list[bytes]:
    """Return the digest of the top and of each directory of a table, in order.

    `added`: those of directories of which rows were made. `before`: those of all others, which are as they
    were.
    """
    found: list[bytes] = []
    for path in (b"", *table.directories):
        if path not in before:
            found.append(added.get(path) or columns_digest([path, *[b""] * (3 + len(STAMP_CODES))]))
        else:
            # A row that came into a directory that nobody looked into is looked at by the next run.
            found.append(before[path] if path not in added else UNKNOWN_DIGEST)
    return found
