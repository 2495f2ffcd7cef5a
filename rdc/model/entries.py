"""Entries of a tree: their kinds and metadata, and the entries of a directory as columns."""

from __future__ import annotations

import sys
from array import array
from itertools import compress

from rdc.lean.enums import IntEnum
from rdc.lean.records import Record, replace
from rdc.lean.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any


class Kind(IntEnum):
    """Kind of a directory entry. The values are part of the protocol."""

    FILE = 0
    DIRECTORY = 1
    SYMLINK = 2
    SPECIAL = 3
    """Anything else: listed, never transferred. Where both sides know the kinds below and the user wants
    them, an entry of such a kind has that kind instead."""
    FIFO = 4
    SOCKET = 5
    CHARACTER_DEVICE = 6
    BLOCK_DEVICE = 7


DEVICES = frozenset((Kind.CHARACTER_DEVICE, Kind.BLOCK_DEVICE))
NODES = frozenset((Kind.FIFO, Kind.SOCKET)) | DEVICES
"""The kinds of entries that mknod makes."""

LINKED = NODES | {Kind.FILE}
"""The kinds of entries whose hard links a sync keeps. Symlinks are made one by one."""

_MINOR_BITS = 20
DEVICE_LIMIT = 1 << 32
"""Device numbers are below it: Linux has 12 bits for the major number and 20 for the minor number."""


def device_number(major: int, minor: int) -> int:
    """Return the number of a device as a listing has it. Raises ValueError for a number that Linux does not
    have."""
    if not (0 <= minor < 1 << _MINOR_BITS and 0 <= major < DEVICE_LIMIT >> _MINOR_BITS):
        raise ValueError(f"a device {major}:{minor}")
    return major << _MINOR_BITS | minor


def major_and_minor(number: int) -> tuple[int, int]:
    """Return the inverse of device_number."""
    return number >> _MINOR_BITS, number & (1 << _MINOR_BITS) - 1


def check_sizes(kinds: bytes, sizes: Sequence[int]) -> None:
    """Raise ValueError if an entry that is neither a regular file nor a device has a size, or a device a
    number that no device has."""
    # Kind.FILE is 0, so the kinds themselves select the entries that are not regular files.
    if any(compress(sizes, kinds)):
        for kind, size in zip(kinds, sizes, strict=True):
            if kind and size and (kind not in DEVICES or size >= DEVICE_LIMIT):
                raise ValueError("an entry that is no regular file has a size, or a device no number")


def bytes_of_devices(kinds: bytes | bytearray, sizes: bytes | bytearray) -> int:
    """Return the sum of the device numbers in a packed column of sizes, which are no sizes."""
    total = 0
    for kind in DEVICES:
        row = kinds.find(kind)
        while row >= 0:
            total += int.from_bytes(sizes[8 * row : 8 * row + 8], "little")
            row = kinds.find(kind, row + 1)
    return total


class Metadata(Record):
    """The metadata of an entry besides name, kind and content."""

    mode: int
    """Permission bits, 0 to 0o7777."""
    mtime_ns: int
    """Modification time, packed as rdc.model.preserved has it: nanoseconds since the epoch, 1678 to 2261."""
    uid: int
    gid: int


class Identity(Record):
    """The parts of a stat that show whether an entry was changed or replaced in between."""

    device: int
    inode: int
    size: int
    """Bytes of a regular file; 0 of any other entry."""
    mtime_ns: int
    """Packed, as of rdc.model.preserved, and so is `ctime_ns`."""
    ctime_ns: int
    kind: int = Kind.FILE
    """SPECIAL for all special files."""


class ComparedFields(Record):
    """The parts of identities that stay equal while nobody changes the entry. The others say nothing: the
    file system does not keep them stable, or a listing shows something else."""

    kind: bool = True
    size: bool = True
    inode: bool = True
    """Device and inode number."""
    mtime: bool = True
    ctime: bool = True

    @property
    def bits(self) -> int:
        """The bits that functions in C take, for regular files: 1 inode, 2 mtime, 4 ctime, 8 size."""
        return self.inode | self.mtime << 1 | self.ctime << 2 | self.size << 3

    def both(self, other: ComparedFields) -> ComparedFields:
        """Return those that count in both."""
        return ComparedFields(
            self.kind and other.kind,
            self.size and other.size,
            self.inode and other.inode,
            self.mtime and other.mtime,
            self.ctime and other.ctime,
        )


ALL_FIELDS = ComparedFields()


def is_same_entry(one: Identity, other: Identity, fields: ComparedFields = ALL_FIELDS) -> bool:
    """Return whether two identities are of one entry that nobody changed in between, as far as `fields` tell.

    Of a directory only its inode counts, since whatever happens in it changes its times.
    """
    if fields.kind and one.kind != other.kind:
        return False
    if fields.inode and (one.inode != other.inode or one.device != other.device):
        return False
    if one.kind == Kind.DIRECTORY:
        return True
    return (
        not (fields.size and one.size != other.size)
        and not (fields.ctime and one.ctime_ns != other.ctime_ns)
        and not (fields.mtime and one.mtime_ns != other.mtime_ns)
    )


NUMBERS = {"modes": "H", "sizes": "Q", "mtimes": "q", "uids": "I", "gids": "I"}
"""The columns of numbers of a listing, and their typecodes of array.array."""

_INODE_NUMBERS = {"devices": "Q", "inodes": "Q", "links": "I", "allocated": "Q", "ctimes": "q"}
_WIDTHS = {"H": 2, "I": 4, "Q": 8, "q": 8}


def chosen(record: object, columns: dict[str, str], rows: Sequence[int]) -> dict[str, Any]:
    """Return these rows of the packed columns of a record, by field. `columns`: their typecodes."""
    found = {}
    for name, typecode in columns.items():
        items = array(typecode, getattr(record, name))
        found[name] = array(typecode, [items[row] for row in rows]).tobytes()
    return found


def sliced(record: object, columns: dict[str, str], start: int, stop: int) -> dict[str, Any]:
    """Return rows [start, stop) of the packed columns of a record, by field. `columns`: their typecodes."""
    return {
        name: getattr(record, name)[_WIDTHS[typecode] * start : _WIDTHS[typecode] * stop]
        for name, typecode in columns.items()
    }


class Listing(Record):
    """One directory's entries as columns: row i of each column is entry i, sorted by name bytes.

    Columns take less memory than an object per row: a listing of a million names must stay small.
    """

    names: tuple[bytes, ...]
    """Single components: never empty, '.' or '..', without '/' and NUL, strictly increasing."""
    kinds: bytes
    """One `Kind` value per entry."""
    modes: array[int]
    """Typecode 'H': permission bits."""
    sizes: array[int]
    """Typecode 'Q': bytes of a regular file; device_number of a device; else 0."""
    mtimes: array[int]
    """Typecode 'q': packed times (rdc.model.preserved)."""
    uids: array[int]
    """Typecode 'I'."""
    gids: array[int]
    """Typecode 'I'."""
    targets: tuple[bytes, ...]
    """Targets of the symlinks, in entry order."""
    identities: Identities | None = None
    """The identity of each row's entry when this machine listed it; None for a listing from elsewhere."""

    def __len__(self) -> int:
        return len(self.names)

    @property
    def total_size(self) -> int:
        """Bytes of all its files."""
        total = sum(self.sizes)
        if DEVICES.isdisjoint(self.kinds):
            return total
        return total - sum(size for kind, size in zip(self.kinds, self.sizes, strict=True) if kind in DEVICES)

    def packed(self) -> PackedListing:
        return PackedListing(
            len(self.names),
            _terminated(self.names),
            self.kinds,
            targets=_terminated(self.targets),
            **self._numbers(little_endian),
        )

    def _numbers(self, change: Callable[[array[int]], object]) -> dict[str, Any]:
        """Return what `change` makes of each column of numbers, by field."""
        return {name: change(getattr(self, name)) for name in NUMBERS}

    def rows(self, rows: Sequence[int]) -> Listing:
        """Return the listing of these rows only; `rows` increases."""
        links = self.rows_of(Kind.SYMLINK)
        wanted = set(rows)
        return Listing(
            tuple(self.names[i] for i in rows),
            bytes(self.kinds[i] for i in rows),
            targets=tuple(target for row, target in zip(links, self.targets, strict=True) if row in wanted),
            identities=None if self.identities is None else self.identities.rows(rows),
            **self._numbers(lambda column: array(column.typecode, [column[i] for i in rows])),
        )

    def part(self, start: int, stop: int, links: slice) -> Listing:
        """Return rows [start, stop), without identities. `links`: the places of their targets."""
        return Listing(
            self.names[start:stop],
            self.kinds[start:stop],
            targets=self.targets[links],
            **self._numbers(lambda column: column[start:stop]),
        )

    def named(self, names: tuple[bytes, ...]) -> Listing:
        """Return the same entries with other names."""
        return replace(self, names=names)

    def rows_of(self, kind: Kind) -> list[int]:
        """Return the rows of one kind, in order."""
        return _rows_of(self.kinds, kind)

    def links(self) -> dict[int, bytes]:
        """Targets of the symlinks by row, for callers that need many."""
        return dict(zip(self.rows_of(Kind.SYMLINK), self.targets, strict=True)) if self.targets else {}

    def target(self, row: int) -> bytes:
        """Target of the symlink in `row`. It takes a look at all kinds before it."""
        return self.targets[self.kinds.count(Kind.SYMLINK, 0, row)]

    def metadata(self, row: int) -> Metadata:
        return Metadata(self.modes[row], self.mtimes[row], self.uids[row], self.gids[row])


EMPTY_LISTING = Listing((), b"", array("H"), array("Q"), array("q"), array("I"), array("I"), ())


class PackedListing(Record):
    """A Listing in the form of files and messages: columns of packed little-endian bytes.

    It takes a hundred bytes plus the columns; a Listing has a Python object per name and target.
    """

    count: int
    """Number of entries, and of rows in each column."""
    names: bytes
    """Names, each followed by NUL, strictly increasing."""
    kinds: bytes
    """One `Kind` value per entry."""
    modes: bytes
    """u16: permission bits."""
    sizes: bytes
    """u64: bytes of a regular file; device_number of a device; else 0."""
    mtimes: bytes
    """i64: packed times (rdc.model.preserved)."""
    uids: bytes
    """u32."""
    gids: bytes
    """u32."""
    targets: bytes
    """Targets of the symlinks in entry order, each followed by NUL."""

    def __len__(self) -> int:
        return self.count

    def unpacked(self) -> Listing:
        columns: dict[str, Any] = {
            name: little_endian_integers(code, getattr(self, name)) for name, code in NUMBERS.items()
        }
        names, targets = tuple(strings(self.names)), tuple(strings(self.targets))
        return Listing(names, self.kinds, targets=targets, **columns)

    @property
    def total_size(self) -> int:
        """Bytes of all its files."""
        return sum(little_endian_integers("Q", self.sizes)) - bytes_of_devices(self.kinds, self.sizes)

    def rows_of(self, kind: Kind) -> list[int]:
        """Return the rows of one kind, in order."""
        return _rows_of(self.kinds, kind)

    def rows(self, rows: Sequence[int]) -> PackedListing:
        """Return the listing of these rows only; `rows` increases."""
        targets = self.targets
        if targets:
            links = dict(zip(self.rows_of(Kind.SYMLINK), strings(targets), strict=True))
            targets = b"".join([links[row] + b"\0" for row in rows if row in links])
        names = strings(self.names)
        return PackedListing(
            len(rows),
            b"".join([names[row] + b"\0" for row in rows]),
            bytes([self.kinds[row] for row in rows]),
            targets=targets,
            **chosen(self, NUMBERS, rows),
        )

    def metadata(self, row: int) -> Metadata:
        """Return the metadata of one row, whatever the number of the others."""
        mode, mtime = self.modes[2 * row : 2 * row + 2], self.mtimes[8 * row : 8 * row + 8]
        uid, gid = self.uids[4 * row : 4 * row + 4], self.gids[4 * row : 4 * row + 4]
        return Metadata(
            int.from_bytes(mode, "little"),
            int.from_bytes(mtime, "little", signed=True),
            int.from_bytes(uid, "little"),
            int.from_bytes(gid, "little"),
        )

    def slice(self, first: int, stop: int) -> PackedListing:
        """Return the rows [first, stop) of a listing without links."""
        if (first, stop) == (0, self.count):
            return self
        return replace(
            self,
            count=stop - first,
            names=b"".join(name + b"\0" for name in strings(self.names)[first:stop]),
            kinds=self.kinds[first:stop],
            **sliced(self, NUMBERS, first, stop),
        )


class PackedInodes(Record):
    """The inode behind each row of a PackedListing, as packed little-endian columns.

    It is separate from the listing, since it is meaningful only on this machine and is never sent.
    """

    devices: bytes
    """u64: st_dev. With `inodes` it identifies a file."""
    inodes: bytes
    """u64: st_ino."""
    links: bytes
    """u32: number of the file's names in all places; higher numbers count as 2^32 - 1."""
    allocated: bytes
    """u64: bytes that the file occupies, without holes; blocks shared with other files count in full."""
    ctimes: bytes
    """i64: packed times (rdc.model.preserved)."""

    def identity(self, row: int) -> tuple[int, int]:
        """Device and inode number of a row."""
        here = slice(8 * row, 8 * row + 8)
        return int.from_bytes(self.devices[here], "little"), int.from_bytes(self.inodes[here], "little")

    def rows(self, rows: Sequence[int]) -> PackedInodes:
        """Return the inodes of these rows only; `rows` increases."""
        return PackedInodes(**chosen(self, _INODE_NUMBERS, rows))

    def part(self, start: int, stop: int) -> PackedInodes:
        """Return rows [start, stop)."""
        return PackedInodes(**sliced(self, _INODE_NUMBERS, start, stop))


class Identities(Record):
    """The identity of each row of a listing, as packed columns. What a view shows as something else does not
    count (ComparedFields)."""

    kinds: bytes
    """One `Kind` value per entry."""
    sizes: bytes
    """u64."""
    mtimes: bytes
    """i64: nanoseconds since the epoch, clamped."""
    inodes: PackedInodes

    def __len__(self) -> int:
        return len(self.kinds)

    def of(self, row: int) -> Identity:
        """Return the identity of a row."""
        at = slice(8 * row, 8 * row + 8)
        kind = self.kinds[row]
        device, inode = self.inodes.identity(row)
        return Identity(
            device,
            inode,
            int.from_bytes(self.sizes[at], "little") if kind == Kind.FILE else 0,
            int.from_bytes(self.mtimes[at], "little", signed=True),
            int.from_bytes(self.inodes.ctimes[at], "little", signed=True),
            min(kind, Kind.SPECIAL),
        )

    def rows(self, rows: Sequence[int]) -> Identities:
        """Return these rows only; `rows` increases."""
        return Identities(
            bytes([self.kinds[row] for row in rows]),
            inodes=self.inodes.rows(rows),
            **chosen(self, {"sizes": "Q", "mtimes": "q"}, rows),
        )


NO_INODES = PackedInodes(b"", b"", b"", b"", b"")
"""The inodes of no entries."""


def strings(terminated: bytes) -> list[bytes]:
    """Return the strings of a column of NUL-terminated strings."""
    split = terminated.split(b"\0")
    split.pop()
    return split


def _rows_of(kinds: bytes, kind: Kind) -> list[int]:
    """Return the rows of a kind, found by a search for a byte."""
    rows = []
    row = kinds.find(kind)
    while row >= 0:
        rows.append(row)
        row = kinds.find(kind, row + 1)
    return rows


def _terminated(parts: tuple[bytes, ...]) -> bytes:
    return b"\0".join((*parts, b""))


def little_endian(column: array[int]) -> bytes:
    """Return the packed form of a column, on any machine."""
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column.tobytes()


def little_endian_integers(typecode: str, packed: bytes | bytearray) -> array[int]:
    """Return the inverse of little_endian. typecode: of array.array."""
    column = array(typecode, packed)
    if sys.byteorder == "big":
        column.byteswap()
    return column


# Listed: one directory as its reading found it, and the entries that could not be looked at.


class BadCall(IntEnum):
    """The step at which looking at an entry failed."""

    NAME = 0
    """Its name is longer than NAME_BYTES (ENAMETOOLONG)."""
    STAT = 1
    READ_LINK = 2
    """It is a symlink, and its target cannot be read or holds a NUL."""
    KIND = 3
    """It has a kind that no system knows (EUCLEAN)."""


class BadEntry(Record):
    """An entry that is there, but could not be looked at, so that nothing else is known of it."""

    name: bytes
    errno: int
    call: BadCall
    is_directory: bool
    """True if its directory says, without a look at it, that it is one. Filter rules ask."""


class Listed(Record):
    """One directory: its entries, and what else was read there."""

    listing: PackedListing
    inodes: PackedInodes
    """The inode of each row of `listing` on this machine. A view may show an entry as something else; these
    stay those of the entry itself, or of what a followed link leads to."""
    reserved: tuple[bytes, ...] = ()
    """Reserved names (rdc.files.base.paths), which are not in the listing."""
    bad: tuple[BadEntry, ...] = ()
    """By name; not in the listing."""

    def rows(self, rows: Sequence[int]) -> Listed:
        """Return these rows only; `rows` increases."""
        if len(rows) == self.listing.count:
            return self
        return replace(self, listing=self.listing.rows(rows), inodes=self.inodes.rows(rows))

    def unpacked(self) -> Listing:
        """Return the listing, unpacked, with the identity of each row."""
        listing = self.listing
        identities = Identities(listing.kinds, listing.sizes, listing.mtimes, self.inodes)
        return replace(listing.unpacked(), identities=identities)

    @property
    def is_empty(self) -> bool:
        """Return whether the directory has no entry besides those with reserved names."""
        return not (self.listing.count or self.bad)


class ListedDirectories(Record):
    """Directories of a walk, one after another, in one set of columns, as a manifest appends them.

    No name in them is reserved, and all their entries could be looked at.
    """

    walked: int
    """The number of directories; only those with entries have a path here."""
    paths: list[bytes]
    firsts: array[int]
    """Each one's first row."""
    text: bytes
    """For each: NUL, its path, NUL, then its entries' names, each followed by NUL."""
    texts: array[int]
    """Offset in `text` of each one's first name."""
    links: array[int]
    """Offset in the targets of each one's first link target."""
    listing: PackedListing
    """The rows of all; names increase within each directory."""
    inodes: PackedInodes

    @classmethod
    def of(cls, path: bytes, listing: PackedListing, inodes: PackedInodes) -> ListedDirectories:
        """Return one directory alone."""
        if not listing.count:
            return cls(1, [], array("Q"), b"", array("Q"), array("Q"), listing, inodes)
        head = b"\0" + path + b"\0"
        firsts, texts, links = array("Q", (0,)), array("Q", (len(head),)), array("Q", (0,))
        return cls(1, [path], firsts, head + listing.names, texts, links, listing, inodes)


# IdentityColumns: the identities of many entries, one per row, in 41 bytes each.

_TIME_LEAST, _TIME_MOST = -(1 << 63), (1 << 63) - 1


class IdentityColumns:
    """Columns that grow. Times are clamped to 64 bits of nanoseconds."""

    __slots__ = ("_ctimes", "_devices", "_inodes", "_kinds", "_mtimes", "_sizes")

    def __init__(self, identities: Iterable[Identity] = ()) -> None:
        self._devices, self._inodes, self._sizes = array("Q"), array("Q"), array("Q")
        self._mtimes, self._ctimes = array("q"), array("q")
        self._kinds = bytearray()
        for each in identities:
            self.append(each)

    def __len__(self) -> int:
        return len(self._kinds)

    def append(self, found: Identity) -> None:
        """Add one row."""
        self._devices.append(found.device)
        self._inodes.append(found.inode)
        self._sizes.append(found.size)
        self._mtimes.append(min(max(found.mtime_ns, _TIME_LEAST), _TIME_MOST))
        self._ctimes.append(min(max(found.ctime_ns, _TIME_LEAST), _TIME_MOST))
        self._kinds.append(found.kind)

    def extend(self, found: Identities, rows: Sequence[int]) -> None:
        """Add these rows of a listing."""
        kinds = found.kinds
        if len(rows) < 4:
            for row in rows:
                self.append(found.of(row))
            return
        for column, typecode, packed in (
            (self._devices, "Q", found.inodes.devices),
            (self._inodes, "Q", found.inodes.inodes),
            (self._sizes, "Q", found.sizes),
            (self._mtimes, "q", found.mtimes),
            (self._ctimes, "q", found.inodes.ctimes),
        ):
            column.extend(_rows_chosen(little_endian_integers(typecode, packed), rows))
        chosen = bytes([kinds[row] for row in rows])
        if any(chosen):
            first = len(self._kinds)
            for number, kind in enumerate(chosen):
                if kind:
                    self._sizes[first + number] = 0
            chosen = bytes([min(kind, Kind.SPECIAL) for kind in chosen])
        self._kinds += chosen

    def __getitem__(self, row: int) -> Identity:
        return Identity(
            self._devices[row],
            self._inodes[row],
            self._sizes[row],
            self._mtimes[row],
            self._ctimes[row],
            self._kinds[row],
        )

    def chosen(self, rows: Sequence[int]) -> IdentityColumns:
        """Return these rows, in this order. A range of them is sliced, without work per row."""
        made = IdentityColumns()
        for name in ("_devices", "_inodes", "_sizes", "_mtimes", "_ctimes"):
            column: array[int] = getattr(self, name)
            if isinstance(rows, range):
                chosen = column[rows.start : rows.stop]
            else:
                chosen = array(column.typecode, [column[row] for row in rows])
            setattr(made, name, chosen)
        made._kinds += bytes([self._kinds[row] for row in rows])
        return made

    def differing(self, rows: Sequence[int], *columns: array[int]) -> list[int]:
        """Return the numbers of the rows that differ from `columns` (devices, inodes, sizes, mtimes, ctimes):
        row i is compared with row `rows[i]` there."""
        own = (self._devices, self._inodes, self._sizes, self._mtimes, self._ctimes)
        numbers: set[int] = set()
        for mine, other in zip(own, columns, strict=True):
            theirs = _rows_chosen(other, rows)
            if mine != theirs:
                numbers.update(number for number, one in enumerate(mine) if one != theirs[number])
        return sorted(numbers)

    def packed(self) -> bytes:
        """Return devices, inodes, sizes, mtimes and ctimes, one column after the other, in 8 native bytes a
        row."""
        columns = (self._devices, self._inodes, self._sizes, self._mtimes, self._ctimes)
        return b"".join([column.tobytes() for column in columns])


def _rows_chosen(column: array[int], rows: Sequence[int]) -> array[int]:
    """Return rows of a column. Consecutive rows are sliced, without a Python step per row."""
    if rows and rows[-1] - rows[0] == len(rows) - 1 and list(rows) == list(range(rows[0], rows[-1] + 1)):
        return column[rows[0] : rows[-1] + 1]
    return array(column.typecode, [column[row] for row in rows])


class Clone(NamedTuple):
    """Bytes `start` to `stop` of a new version that begin as those of a base, `shift` bytes further on."""

    start: int
    stop: int
    base: int
    """Number of the base."""
    shift: int
