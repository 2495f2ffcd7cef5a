"""The rows of one directory of a snapshot, to bytes and back.

A tree is a stream of such records in walk order. Names, kinds, modes, sizes, times and owners are the columns
of a listing. For each regular file with content there are its root, its traits and where its content is.
"""

from __future__ import annotations

import struct
from array import array
from itertools import accumulate

from rdc.chunking import ChunkParams
from rdc.errors import FileError, printable
from rdc.lean.records import Record, replace
from rdc.limits import PATH_BYTES
from rdc.model.entries import (
    DEVICE_LIMIT,
    DEVICES,
    Kind,
    PackedListing,
    little_endian,
    little_endian_integers,
    strings,
)
from rdc.model.preserved import nearest_time, packed_times, unpack_attributes
from rdc.protocol.wire.fields import column_with_times, column_without_times
from rdc.signature.tree import DIGEST_BYTES, TRAITS_BYTES
from rdc.store.directory import KEY_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

STREAM_LEVELS = 4
"""Most levels of a stream. Level 0 names the chunks of the content. Each further one names the chunks of the
list of keys below."""

STREAM_BYTES = 4 << 40
"""Most bytes of a stream."""

LIST_PARAMS = ChunkParams.for_mean(4 << 10)
"""The chunking of trees and lists of keys, which change in few places. No chunk but the last of one is
shorter than these say, so a list has no more chunks than its bytes account for."""

RECORD_BYTES = 128 << 20
"""Most bytes of a directory's record: a million files with their keys. It is in memory as a whole."""

_HEAD = struct.Struct("<IIIIIIII")
"""Bytes of the path, rows, bytes of names, of targets, 1 if there are groups, attribute sets, bytes of these,
files with content."""

_LISTED_WIDTHS = (1, 2, 8, 8, 4, 4)
"""Bytes of kind, mode, size, mtime, uid and gid of a row."""

_FILE_BYTES = TRAITS_BYTES + 1 + 4 + DIGEST_BYTES + KEY_BYTES
"""The least that a file with content takes: traits, level, number of keys, root and one key."""

_NO_TRAITS = bytes(TRAITS_BYTES)

LENGTH = struct.Struct("<I")
"""The length of a record, before it."""

_KINDS = frozenset(int(kind) for kind in Kind) - {int(Kind.SPECIAL)}


class StreamRef(Record):
    """The place of a stream of bytes in the store."""

    size: int
    level: int
    """0: `keys` are those of its chunks. Else they are those of the chunks of the list of keys of the level
    below."""
    keys: bytes


class FileRef(Record):
    """The content of a regular file."""

    root: bytes
    """The root of its signature for SYNC_PARAMS."""
    traits: bytes
    """TRAITS_BYTES; zeros: unknown or without features."""
    content: StreamRef


class StoredFiles:
    """The FileRefs of a directory as columns. Each is made when it is asked for: most readers need few."""

    __slots__ = ("_offsets", "counts", "levels", "roots_and_keys", "sizes", "traits")

    def __init__(
        self, sizes: Sequence[int], traits: bytes, levels: bytes, counts: array[int], roots_and_keys: bytes
    ) -> None:
        """Take the columns of a record; `counts` are those of keys. Raises ValueError if no stream has such
        a reference."""
        if max(sizes, default=0) > STREAM_BYTES:
            raise ValueError(f"expected a stream of at most {STREAM_BYTES} bytes, found {max(sizes)}")
        if max(levels, default=0) >= STREAM_LEVELS or not all(counts):
            raise ValueError("expected the levels and the numbers of keys of streams, found others")
        self.sizes = sizes
        self.levels = levels
        self.traits = traits
        self.counts = counts
        self.roots_and_keys = roots_and_keys
        widths = [DIGEST_BYTES + KEY_BYTES * count for count in counts]
        self._offsets = array("Q", accumulate(widths, initial=0))

    @classmethod
    def of(cls, files: Sequence[FileRef]) -> StoredFiles:
        """Return the columns of some FileRefs."""
        contents = [file.content for file in files]
        return cls(
            [one.size for one in contents],
            b"".join([file.traits for file in files]),
            bytes([one.level for one in contents]),
            array("I", [len(one.keys) // KEY_BYTES for one in contents]),
            b"".join([file.root + file.content.keys for file in files]),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    def __getitem__(self, number: int) -> FileRef:
        at = self._offsets[number]
        return FileRef(
            self.roots_and_keys[at : at + DIGEST_BYTES],
            self.traits[TRAITS_BYTES * number : TRAITS_BYTES * (number + 1)],
            StreamRef(self.sizes[number], self.levels[number], self.keys(number)),
        )

    def __iter__(self) -> Iterator[FileRef]:
        return map(self.__getitem__, range(len(self)))

    def keys(self, number: int) -> bytes:
        """Return the keys of one file's content, or of its list of keys if its level is not 0."""
        return self.roots_and_keys[self._offsets[number] + DIGEST_BYTES : self._offsets[number + 1]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredFiles) and [*self] == [*other]

    def __hash__(self) -> int:
        return hash(self.roots_and_keys)


class FileTraits(Record):
    """The columns that a search for similar files needs of one directory: a value for each file with
    content."""

    sizes: Sequence[int]
    traits: Sequence[bytes]
    """b"" of files that are not looked for."""


class DirectoryRows(Record):
    """One directory of a snapshot."""

    path: bytes
    listing: PackedListing
    """The kinds of special files are those they have; SPECIAL is none."""
    groups: bytes
    """u32 a row: files with equal numbers other than 0 are names of one file. Empty if all are 0."""
    attributes: tuple[bytes, ...]
    """The packed sets of extended attributes that rows of this directory have."""
    attribute_numbers: bytes
    """u32 a row: 0 for none, else one more than the number of its set. Empty without sets."""
    files: StoredFiles
    """The content of each regular file that has any, in row order."""

    def file_numbers(self) -> dict[int, int]:
        """Return the number in `files` of each row that has one."""
        sizes = little_endian_integers("Q", self.listing.sizes)
        rows = [row for row in self.listing.rows_of(Kind.FILE) if sizes[row]]
        return {row: number for number, row in enumerate(rows)}

    def group_of(self, row: int) -> int:
        return int.from_bytes(self.groups[4 * row : 4 * row + 4], "little")

    def attributes_of(self, row: int) -> bytes:
        """Return the packed set of one row; b"" for none."""
        number = int.from_bytes(self.attribute_numbers[4 * row : 4 * row + 4], "little")
        return self.attributes[number - 1] if number else b""


def encode_rows(rows: DirectoryRows) -> bytes:
    """Return the record of a directory, its length before it."""
    listing, files = rows.listing, rows.files
    sets = b"".join([LENGTH.pack(len(one)) + one for one in rows.attributes])
    head = _HEAD.pack(
        len(rows.path),
        listing.count,
        len(listing.names),
        len(listing.targets),
        bool(rows.groups),
        len(rows.attributes),
        len(sets),
        len(files),
    )
    record = b"".join(
        (
            head,
            rows.path,
            listing.names,
            listing.targets,
            listing.kinds,
            listing.modes,
            listing.sizes,
            listing.mtimes,
            listing.uids,
            listing.gids,
            rows.groups,
            sets,
            rows.attribute_numbers,
            files.traits,
            files.levels,
            little_endian(files.counts),
            files.roots_and_keys,
            distant_times(listing.mtimes),
        )
    )
    return LENGTH.pack(len(record)) + record


class Parts:
    """Takes the parts of a record, in order. ValueError for one that it does not have."""

    def __init__(self, record: bytes) -> None:
        self._record = record
        self._at = 0

    def take(self, length: int) -> bytes:
        part = self._record[self._at : self._at + length]
        if len(part) != length:
            raise ValueError(f"expected {length} bytes of a record, found {len(part)}")
        self._at += length
        return part

    @property
    def left(self) -> int:
        return len(self._record) - self._at


def distant_times(mtimes: bytes) -> bytes:
    """Return the times that the stamps of a column of packed times stand for: a stamp means nothing to
    another process."""
    return column_with_times(mtimes)[len(mtimes) :]


def with_known_times(mtimes: bytes, times: bytes) -> bytes:
    """Return the column of `mtimes`, whose stamps have `times`, as this process packs it.

    A store of an older version may lack the times: the nearest ones that are not distant are taken then.
    Raises ValueError for times that are not those of the stamps.
    """
    packed = little_endian_integers("q", mtimes)
    if not times:
        return little_endian(array("q", packed_times([nearest_time(time) for time in packed])))
    return column_without_times(mtimes + times, len(packed))


def check_record(path: bytes, record: bytes) -> None:
    """Raise FileError for a record that no reader takes."""
    if len(record) > RECORD_BYTES:
        raise FileError(
            path,
            f"{printable(path or b'.')}: expected a directory with at most {RECORD_BYTES} bytes of entries,"
            f" some million files, found {len(record)}; leave it out with --exclude, or divide it",
        )


def decode_rows(record: bytes) -> DirectoryRows:
    """Return the directory of a record without the length before it. Raises ValueError."""
    path, count, names, targets, grouped, sets, set_bytes, files = _checked_head(record)
    parts = Parts(record)
    parts.take(_HEAD.size)
    path_text = parts.take(path)
    name_text, target_text = parts.take(names), parts.take(targets)
    kinds, modes, sizes, mtimes, uids, gids = (parts.take(width * count) for width in _LISTED_WIDTHS)
    listing = PackedListing(count, name_text, kinds, modes, sizes, mtimes, uids, gids, target_text)
    _check_listing(listing)
    groups = parts.take(4 * count) if grouped else b""
    attributes = _attribute_sets(parts.take(set_bytes), sets)
    numbers = parts.take(4 * count) if sets else b""
    if numbers and max(little_endian_integers("I", numbers), default=0) > sets:
        raise ValueError("expected the number of a set of attributes, found a higher one")
    found = _files(parts, files, listing)
    listing = replace(listing, mtimes=with_known_times(mtimes, parts.take(parts.left)))
    return DirectoryRows(path_text, listing, groups, attributes, numbers, found)


def _checked_head(record: bytes) -> tuple[int, ...]:
    """Return the numbers of a record, which has room for what they say. Raises ValueError."""
    room = len(record)
    if room < _HEAD.size:
        raise ValueError(f"expected {_HEAD.size} bytes of a record, found {room}")
    head = _HEAD.unpack_from(record)
    path, count, names, targets, grouped, sets, set_bytes, files = head
    columns = sum(_LISTED_WIDTHS) * count + 4 * count * (grouped + bool(sets)) + _FILE_BYTES * files
    least = _HEAD.size + path + names + targets + set_bytes + columns
    if path > PATH_BYTES or grouped > 1 or least > room or files > count:
        raise ValueError("expected the head of a directory, found something else")
    return head


def decode_traits(record: bytes) -> FileTraits:
    """Return the sizes and traits of the files of a record. Raises ValueError."""
    path, count, names, targets, grouped, sets, set_bytes, files = _checked_head(record)
    if not files:
        return FileTraits((), ())
    # The head has shown that all these columns are there. A put reads those of a whole tree.
    at = _HEAD.size + path + names + targets
    kinds = record[at : at + count]
    all_sizes = little_endian_integers("Q", record[at + 3 * count : at + 11 * count])
    at += sum(_LISTED_WIDTHS) * count + 4 * count * (grouped + bool(sets)) + set_bytes
    packed = record[at : at + TRAITS_BYTES * files]
    regular = Kind.FILE
    sizes = [size for kind, size in zip(kinds, all_sizes, strict=True) if size and kind == regular]
    if len(sizes) != files:
        raise ValueError(f"expected the traits of {len(sizes)} files, found {files}")
    traits = [packed[at : at + TRAITS_BYTES] for at in range(0, len(packed), TRAITS_BYTES)]
    return FileTraits(sizes, [b"" if one == _NO_TRAITS else one for one in traits])


def _check_listing(listing: PackedListing) -> None:
    # Counted first, as a list of many empty names takes more memory than their bytes.
    if (found := listing.names.count(0)) != listing.count or listing.names[-1:] not in (b"", b"\0"):
        raise ValueError(f"expected {listing.count} names, found {found}")
    names = strings(listing.names)
    before = b""
    for name in names:
        if name <= before or b"/" in name or name in (b".", b".."):
            raise ValueError(f"expected names of entries in order, found {name[:80]!r}")
        before = name
    if not _KINDS.issuperset(listing.kinds):
        raise ValueError("expected kinds of entries, found another")
    modes, sizes = little_endian_integers("H", listing.modes), little_endian_integers("Q", listing.sizes)
    if max(modes, default=0) > 0o7777:
        raise ValueError(f"expected permission bits, found {max(modes):o}")
    for kind, size in zip(listing.kinds, sizes, strict=True):
        if size >= (1 << 63 if kind == Kind.FILE else DEVICE_LIMIT if kind in DEVICES else 1):
            raise ValueError(f"expected the size of an entry of kind {kind}, found {size}")
    if listing.targets.count(0) != listing.kinds.count(Kind.SYMLINK) or (
        listing.targets and not listing.targets.endswith(b"\0")
    ):
        raise ValueError("expected a target of each symlink, found another number")


def _attribute_sets(data: bytes, count: int) -> tuple[bytes, ...]:
    parts, sets = Parts(data), []
    for _ in range(count):
        (length,) = LENGTH.unpack(parts.take(LENGTH.size))
        one = parts.take(length)
        unpack_attributes(one)
        sets.append(one)
    if parts.left:
        raise ValueError("expected the end of the sets of attributes")
    return tuple(sets)


def _files(parts: Parts, count: int, listing: PackedListing) -> StoredFiles:
    all_sizes = little_endian_integers("Q", listing.sizes)
    sizes = [size for row in listing.rows_of(Kind.FILE) if (size := all_sizes[row])]
    if len(sizes) != count:
        raise ValueError(f"expected the contents of {len(sizes)} files, found {count}")
    traits, levels = parts.take(TRAITS_BYTES * count), parts.take(count)
    counts = little_endian_integers("I", parts.take(4 * count))
    return StoredFiles(
        sizes, traits, levels, counts, parts.take(DIGEST_BYTES * count + KEY_BYTES * sum(counts))
    )


def check_ref(ref: StreamRef) -> None:
    """Raise ValueError if no stream has this reference."""
    if ref.size > STREAM_BYTES:
        raise ValueError(f"expected a stream of at most {STREAM_BYTES} bytes, found {ref.size}")
    if ref.level >= STREAM_LEVELS or bool(ref.size) != bool(ref.keys) or len(ref.keys) % KEY_BYTES:
        raise ValueError(f"expected the place of {ref.size} bytes, found level {ref.level}")


def link_groups(numbers: Sequence[int]) -> bytes:
    """Return the column of groups; empty if no file has several names."""
    return little_endian(array("I", numbers)) if any(numbers) else b""
