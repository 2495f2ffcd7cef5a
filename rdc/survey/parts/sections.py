"""The sections of a part file: compressed, bounded in size, and checked before use.

A part may come from a stranger, with right digests. So each number of a field is bounded here,
before anything is allocated or computed from it, and each column has at most the rows that a writer
puts there. What depends on other sections, such as the number of a directory, is checked where it
is used.
"""

from __future__ import annotations

import struct
from array import array

import zstandard

from rdc.errors import ExitCode
from rdc.files.own.output_file import OutputKind
from rdc.lean.records import Record
from rdc.limits import (
    KEY_BYTES,
    PART_OPTIONS_BYTES,
    PART_PATHS,
    PART_PROBLEM_BYTES,
    PART_ROWS,
    PART_SECTION_BYTES,
    PART_SUFFIXES,
    PATH_BYTES,
    SCAN_SLICES,
    SIZE_LIMIT,
)
from rdc.model.entries import little_endian, little_endian_integers
from rdc.signature.tree import TRAITS_BYTES
from rdc.survey.container import PartError, SectionReader, section
from rdc.survey.count.chunk_counter import SAMPLE_CHUNKS
from rdc.survey.count.chunk_locations import SUFFIX_BYTES
from rdc.survey.count.identical import YEARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, BinaryIO, ClassVar

    from rdc.lean.typed import Protocol


MAGIC = b"RDCPART\x04"
"""Begins a part; the last byte is the version that is written."""

SCAN_PART = OutputKind("a part of a scan", lambda head: head.startswith(MAGIC[:-1]))
MERGED_SCAN = OutputKind("a part of a scan", None)

VERSIONS = (2, 3, 4)
"""Versions that are read."""

_HEAD = struct.Struct("<4sII32s")
_LENGTH = struct.Struct("<I")
ZSTD_LEVEL = 3

NUMBER_LIMIT = (1 << 64) - 1
"""The largest number of a column."""

Section = tuple[bytes, list[bytes]]
"""A tag of four bytes, and the section's fields."""

STORED_OVERHEAD = 64
"""Bytes that zstd may add to a section."""

FIELDS_MOST = 16
"""Most fields of a section that a reader accepts. No section has more than nine."""


def encode_section(tag: bytes, *fields: bytes | int | str) -> bytes:
    """Encode a section. Numbers from 0 to 2^64 - 1 become 8 bytes, text becomes UTF-8."""
    raw = b"".join([_LENGTH.pack(len(field)) + field for field in map(_bytes, fields)])
    stored = zstandard.ZstdCompressor(level=ZSTD_LEVEL).compress(raw)
    return b"".join(section(_HEAD, tag, (len(raw), len(stored)), [stored]))


def _bytes(field: bytes | int | str) -> bytes:
    if isinstance(field, int):
        return field.to_bytes(8, "little")
    return field.encode() if isinstance(field, str) else field


def read_sections(
    stream: BinaryIO, name: str, limits: Mapping[bytes, int] | None = None
) -> Iterator[Section]:
    """Yield the sections before the one tagged LAST.

    `name`: the file in messages. `limits`: the most bytes of sections by tag; others have PART_SECTION_BYTES.
    No more are read, or unpacked. Raises PartError, with the offset, for damage, an early end, or bytes after
    LAST.
    """
    file = SectionReader(stream, name, _HEAD, "scan")
    magic = file.magic
    if len(magic) < len(MAGIC) or magic[:-1] != MAGIC[:-1]:
        raise PartError(f"{name}: expected a part that rdc scan -o wrote, found another kind of file")
    if magic[-1] not in VERSIONS:
        known = " and ".join(map(str, VERSIONS))
        raise PartError(
            f"{name}: a part of version {magic[-1]}; this rdc reads {known}; merge with the newer rdc"
        )
    while True:
        tag, (size, length) = file.begin()
        most = PART_SECTION_BYTES if limits is None else limits.get(tag, PART_SECTION_BYTES)
        # Incompressible data takes a little more.
        if size > most or length > most + (most >> 8) + STORED_OVERHEAD:
            raise file.damaged(f"at most {most} bytes", f"a section of {max(size, length)}")
        stored = file.stored(tag, length)
        try:
            # `decompress` allocates the size that the frame states, so that size is checked first.
            if zstandard.frame_content_size(stored) != size:
                raise zstandard.ZstdError("another size")
            fields = _split(zstandard.ZstdDecompressor().decompress(stored))
        except (zstandard.ZstdError, struct.error) as error:
            raise file.damaged("a section that can be unpacked", type(error).__name__) from error
        if fields is None:
            raise file.damaged(f"a section of {size} bytes in fields", "other bytes")
        if tag == b"LAST":
            file.check_end()
            return
        yield tag, fields
        file.at += _HEAD.size + length


def _split(raw: bytes) -> list[bytes] | None:
    fields: list[bytes] = []
    at = 0
    while at < len(raw):
        (length,) = _LENGTH.unpack_from(raw, at)
        at += _LENGTH.size
        if length > len(raw) - at or len(fields) == FIELDS_MOST:
            return None
        fields.append(raw[at : at + length])
        at += length
    return fields


def packed(numbers: bytes | array[int]) -> bytes:
    """Return a column of native 64-bit numbers as little-endian ones."""
    return little_endian(array("Q", numbers))


def unpacked(column: bytes) -> array[int]:
    """Decode what `packed` wrote. Raises ValueError for anything else."""
    if len(column) % 8:
        raise ValueError("a column of 64-bit numbers is expected")
    return little_endian_integers("Q", column)


def packed_names(names: list[bytes]) -> bytes:
    """Join the names, each followed by NUL."""
    return b"\0".join([*names, b""])


def unpacked_names(column: bytes) -> list[bytes]:
    """Decode what `packed_names` wrote. Raises ValueError for anything else."""
    names = column.split(b"\0")
    if names.pop():
        raise ValueError("names without an end")
    return names


if TYPE_CHECKING:

    class Field(Protocol):
        """The type of one field of a section."""

        @property
        def size(self) -> int:
            """The most bytes that it has."""

        def decode(self, field: bytes) -> Any:
            """Return the value. Raises ValueError for what no scan writes."""


COUNTERS_MOST = 64
"""Counters in a head: more than there are."""

SHIFT_MOST = 63
"""A sample holds at least one chunk in 2^63."""


class Number(Record):
    """A number of 8 bytes."""

    highest: int = SIZE_LIMIT
    size: ClassVar[int] = 8

    def decode(self, field: bytes) -> int:
        value = int.from_bytes(field, "little")
        if len(field) != 8 or value > self.highest:
            raise ValueError("a number out of range")
        return value


class Code:
    """An exit code."""

    size = 8

    def decode(self, field: bytes) -> ExitCode:
        return ExitCode(Number().decode(field))


class Text(Record):
    """UTF-8."""

    size: int

    def decode(self, field: bytes) -> str:
        if len(field) > self.size:
            raise ValueError(f"a text of {len(field)} bytes")
        return str(field, "utf-8")


class Octets(Record):
    """Bytes of any kind."""

    size: int

    def decode(self, field: bytes) -> bytes:
        if len(field) > self.size:
            raise ValueError(f"a field of {len(field)} bytes")
        return field


class Names(Record):
    """Byte strings, each followed by NUL."""

    count: int
    longest: int
    distinct: bool = False

    @property
    def size(self) -> int:
        return self.count * (self.longest + 1)

    def decode(self, field: bytes) -> list[bytes]:
        column = field
        # Counted first: a list of empty names takes eight times their bytes.
        if column.count(b"\0") > self.count:
            raise ValueError(f"more than {self.count} names")
        if column and column[-1]:
            raise ValueError("names without an end")
        if self.distinct:
            return self._distinct(column)
        names = column.split(b"\0")
        names.pop()
        if max(map(len, names), default=0) > self.longest:
            raise ValueError(f"a name of more than {self.longest} bytes")
        return names

    def _distinct(self, column: bytes) -> list[bytes]:
        """Return one after the other: many equal names take few bytes of a file."""
        names: dict[bytes, None] = {}
        start = 0
        while start < len(column):
            end = column.index(b"\0", start)
            name = column[start:end]
            if end - start > self.longest or name in names:
                raise ValueError("a name that is too long, or twice")
            names[name] = None
            start = end + 1
        return list(names)


class Column(Record):
    """Numbers of 64 bits."""

    rows: int = PART_ROWS
    highest: int = SIZE_LIMIT

    @property
    def size(self) -> int:
        return 8 * self.rows

    def decode(self, field: bytes) -> array[int]:
        if len(field) > 8 * self.rows:
            raise ValueError(f"a column of more than {self.rows} rows")
        column = unpacked(field)
        if column and max(column) > self.highest:
            raise ValueError("a number out of range")
        return column


_KEYS = Column(highest=NUMBER_LIMIT)
_SHIFT = Number(SHIFT_MOST)
_LEVEL = Text(64)

FIELDS: dict[bytes, tuple[Field, ...]] = {
    b"HEAD": (
        Text(4096),
        Text(256),
        Number(1),
        Names(PART_PATHS, 4 * PATH_BYTES),
        Text(16),
        Column(2 * COUNTERS_MOST, NUMBER_LIMIT),
        Code(),
        Text(PART_OPTIONS_BYTES),
        Column(10 + PART_PATHS + SCAN_SLICES, NUMBER_LIMIT),
    ),
    b"DIRS": (Names(PART_ROWS, 4 * PATH_BYTES), Column(), Column(), Column()),
    b"FAIL": (Octets(4 * PATH_BYTES), Text(PART_PROBLEM_BYTES), Code()),
    b"TABL": (_LEVEL, Number(8), _SHIFT, Number(), Number()),
    b"ROWS": (_KEYS, Column(), Column()),
    b"ZSTD": (
        _LEVEL,
        _SHIFT,
        *(Column(SAMPLE_CHUNKS, most) for most in (NUMBER_LIMIT, SIZE_LIMIT, SIZE_LIMIT)),
    ),
    b"TYPE": (Names(PART_SUFFIXES, SUFFIX_BYTES + 1, distinct=True),),
    b"PLAC": (Column(), Column(), Column(), Column(highest=NUMBER_LIMIT)),
    b"REFS": (_SHIFT, _KEYS, Column(), Column()),
    b"LIKE": (
        Number(),
        _KEYS,
        Column(),
        Column(),
        Octets(TRAITS_BYTES * PART_ROWS),
        Names(PART_ROWS, KEY_BYTES),
    ),
    b"SAME": (Number(), _KEYS, Column(), Column(), Column(), Names(PART_ROWS, KEY_BYTES)),
    b"AGES": (Column(len(YEARS)), Column(len(YEARS), NUMBER_LIMIT)),
}
"""By tag, in the order of SURVEY.md, "A part"."""

SECTION_BYTES = {
    tag: min(PART_SECTION_BYTES, sum(4 + kind.size for kind in kinds)) for tag, kinds in FIELDS.items()
}
"""The most bytes of each section."""


def decode_fields(tag: bytes, fields: Sequence[bytes]) -> list[Any]:
    """Return the values of a section's fields. Raises ValueError for what no scan writes."""
    kinds = FIELDS.get(tag)
    if kinds is None:
        raise ValueError(f"an unknown section {tag!r}")
    if len(fields) != len(kinds):
        raise ValueError(f"a section {tag!r} with {len(fields)} fields")
    return [kind.decode(field) for kind, field in zip(kinds, fields, strict=True)]
