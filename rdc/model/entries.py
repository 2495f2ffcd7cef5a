"""What a tree holds: kinds of entries, their metadata, and one directory's entries as columns."""

from __future__ import annotations

import sys
from array import array
from enum import IntEnum

from rdc.records import dataclass, replace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "EMPTY_LISTING",
    "Identity",
    "Kind",
    "Listing",
    "Metadata",
    "PackedInodes",
    "PackedListing",
    "little_endian",
    "little_endian_integers",
    "strings",
]


class Kind(IntEnum):
    """Kind of a directory entry; the values are part of the protocol."""

    FILE = 0
    DIRECTORY = 1
    SYMLINK = 2
    SPECIAL = 3
    """Devices, sockets and fifos: named, never transferred."""


@dataclass(frozen=True, slots=True)
class Metadata:
    """What is kept of an entry besides name, kind and content."""

    mode: int
    """Permission bits, 0 to 0o7777."""
    mtime_ns: int
    """Modification time in nanoseconds since the epoch; may be negative."""
    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class Identity:
    """Enough of a stat to notice that a file was changed or replaced between two looks."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Listing:
    """One directory's entries as columns, row i of each column being entry i, sorted by name bytes.

    Columns instead of an object a row: a listing of a million names must stay small.
    """

    names: tuple[bytes, ...]
    """Single components: never empty, '.', '..', never with '/' or NUL, strictly increasing."""
    kinds: bytes
    """One `Kind` value an entry."""
    modes: array[int]
    """Typecode 'H': permission bits."""
    sizes: array[int]
    """Typecode 'Q': bytes; 0 for anything but a regular file."""
    mtimes: array[int]
    """Typecode 'q': nanoseconds since the epoch."""
    uids: array[int]
    """Typecode 'I'."""
    gids: array[int]
    """Typecode 'I'."""
    targets: tuple[bytes, ...]
    """Link targets of the entries that are symlinks, in entry order."""

    def __len__(self) -> int:
        return len(self.names)

    def packed(self) -> PackedListing:
        return PackedListing(
            len(self.names),
            _terminated(self.names),
            self.kinds,
            little_endian(self.modes),
            little_endian(self.sizes),
            little_endian(self.mtimes),
            little_endian(self.uids),
            little_endian(self.gids),
            _terminated(self.targets),
        )

    def rows(self, rows: Sequence[int]) -> Listing:
        """The listing of these rows only; `rows` increases."""
        links = self.rows_of(Kind.SYMLINK)
        chosen = set(rows)
        return Listing(
            tuple(self.names[i] for i in rows),
            bytes(self.kinds[i] for i in rows),
            array("H", (self.modes[i] for i in rows)),
            array("Q", (self.sizes[i] for i in rows)),
            array("q", (self.mtimes[i] for i in rows)),
            array("I", (self.uids[i] for i in rows)),
            array("I", (self.gids[i] for i in rows)),
            tuple(target for row, target in zip(links, self.targets, strict=True) if row in chosen),
        )

    def named(self, names: tuple[bytes, ...]) -> Listing:
        """The same entries under other names."""
        return replace(self, names=names)

    def rows_of(self, kind: Kind) -> list[int]:
        """The rows of one kind, in order."""
        return _rows_of(self.kinds, kind)

    def links(self) -> dict[int, bytes]:
        """Where the symlinks point, by row: for whoever looks at many of them."""
        return dict(zip(self.rows_of(Kind.SYMLINK), self.targets, strict=True)) if self.targets else {}

    def target(self, row: int) -> bytes:
        """Where the symlink in `row` points; costs a look at all kinds before it."""
        return self.targets[self.kinds.count(Kind.SYMLINK, 0, row)]

    def metadata(self, row: int) -> Metadata:
        return Metadata(self.modes[row], self.mtimes[row], self.uids[row], self.gids[row])


EMPTY_LISTING = Listing((), b"", array("H"), array("Q"), array("q"), array("I"), array("I"), ())


@dataclass(frozen=True, slots=True)
class PackedListing:
    """A Listing as it is read and travels: its columns as packed little-endian bytes, nothing an entry.

    A hundred bytes and what the columns take, where a Listing has a Python object for each name and target.
    """

    count: int
    """Entries, and rows of each column."""
    names: bytes
    """Each followed by NUL; strictly increasing."""
    kinds: bytes
    """One `Kind` value an entry."""
    modes: bytes
    """u16: permission bits."""
    sizes: bytes
    """u64: bytes; 0 for anything but a regular file."""
    mtimes: bytes
    """i64: nanoseconds since the epoch."""
    uids: bytes
    """u32."""
    gids: bytes
    """u32."""
    targets: bytes
    """Link targets of the entries that are symlinks, in entry order, each followed by NUL."""

    def __len__(self) -> int:
        return self.count

    def unpacked(self) -> Listing:
        return Listing(
            tuple(strings(self.names)),
            self.kinds,
            little_endian_integers("H", self.modes),
            little_endian_integers("Q", self.sizes),
            little_endian_integers("q", self.mtimes),
            little_endian_integers("I", self.uids),
            little_endian_integers("I", self.gids),
            tuple(strings(self.targets)),
        )

    @property
    def total_size(self) -> int:
        """Bytes of all its files."""
        return sum(little_endian_integers("Q", self.sizes))

    def rows_of(self, kind: Kind) -> list[int]:
        """The rows of one kind, in order."""
        return _rows_of(self.kinds, kind)

    def rows(self, rows: Sequence[int]) -> PackedListing:
        """The listing of these rows only; `rows` increases."""
        return self.unpacked().rows(rows).packed()

    def slice(self, first: int, stop: int) -> PackedListing:
        """Rows [first, stop), of a listing without links."""
        if (first, stop) == (0, self.count):
            return self
        return replace(
            self,
            count=stop - first,
            names=b"".join(name + b"\0" for name in strings(self.names)[first:stop]),
            kinds=self.kinds[first:stop],
            modes=self.modes[2 * first : 2 * stop],
            sizes=self.sizes[8 * first : 8 * stop],
            mtimes=self.mtimes[8 * first : 8 * stop],
            uids=self.uids[4 * first : 4 * stop],
            gids=self.gids[4 * first : 4 * stop],
        )


@dataclass(frozen=True, slots=True)
class PackedInodes:
    """Which file lies behind each row of a PackedListing, as packed little-endian columns.

    Apart from the listing, since it means something on this machine only and never travels.
    """

    devices: bytes
    """u64: st_dev. Together with `inodes`, equal for names of one file and for nothing else."""
    inodes: bytes
    """u64: st_ino."""
    links: bytes
    """u32: how many names the file has, here and elsewhere; more than 2^32 - 1 count as that many."""
    allocated: bytes
    """u64: bytes that the file occupies, holes not counted, blocks shared with other files counted whole."""
    ctimes: bytes
    """i64: nanoseconds since the epoch."""

    def identity(self, row: int) -> tuple[int, int]:
        """Device and inode number of one row."""
        here = slice(8 * row, 8 * row + 8)
        return int.from_bytes(self.devices[here], "little"), int.from_bytes(self.inodes[here], "little")

    def rows(self, rows: Sequence[int]) -> PackedInodes:
        """Those of these rows only; `rows` increases."""
        return PackedInodes(
            _chosen(self.devices, 8, rows),
            _chosen(self.inodes, 8, rows),
            _chosen(self.links, 4, rows),
            _chosen(self.allocated, 8, rows),
            _chosen(self.ctimes, 8, rows),
        )


def strings(terminated: bytes) -> list[bytes]:
    """The strings of a column in which each is followed by NUL."""
    split = terminated.split(b"\0")
    split.pop()
    return split


def _rows_of(kinds: bytes, kind: Kind) -> list[int]:
    """Found at the speed of a search for a byte."""
    rows = []
    row = kinds.find(kind)
    while row >= 0:
        rows.append(row)
        row = kinds.find(kind, row + 1)
    return rows


def _chosen(column: bytes, width: int, rows: Sequence[int]) -> bytes:
    return b"".join([column[row * width : row * width + width] for row in rows])


def _terminated(parts: tuple[bytes, ...]) -> bytes:
    return b"\0".join((*parts, b""))


def little_endian(column: array[int]) -> bytes:
    """As columns are packed, whatever the machine's order."""
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def little_endian_integers(typecode: str, packed: bytes | bytearray) -> array[int]:
    """The other way; `typecode` of array.array."""
    column = array(typecode, packed)
    if sys.byteorder == "big":
        column.byteswap()
    return column
