"""The fields of every section of a part: what each is, and its bounds.

A part may come from a stranger, with right digests. So each number is bounded here, before anything is
allocated or computed from it, and each column has at most the rows that a writer puts there. What depends on
other sections, such as the number of a directory, is checked where it is used.
"""

from __future__ import annotations

from array import array

from rdc.errors import ExitCode
from rdc.lean.records import dataclass
from rdc.limits.searches import (
    PART_OPTIONS_BYTES,
    PART_PATHS,
    PART_PROBLEM_BYTES,
    PART_ROWS,
    PART_SECTION_BYTES,
    PART_SUFFIXES,
    SCAN_SLICES,
)
from rdc.limits.wire import KEY_BYTES, PATH_BYTES, SIZE_LIMIT
from rdc.signature.tree import TRAITS_BYTES
from rdc.survey.count.chunk_locations import SUFFIX_BYTES
from rdc.survey.count.compression_estimate import SAMPLE_CHUNKS
from rdc.survey.parts.sections import NUMBER_LIMIT, unpacked

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, ClassVar

    from rdc.lean.typed import Protocol

    class Field(Protocol):
        """What one field of a section may be."""

        @property
        def size(self) -> int:
            """The most bytes that it has."""

        def decode(self, field: bytes) -> Any:
            """Return the value. Raises ValueError for what no scan writes."""


__all__ = ["FIELDS", "SECTION_BYTES", "decode_fields"]

COUNTERS_MOST = 64
"""Counters in a head: more than there are."""

SHIFT_MOST = 63
"""A sample holds at least one chunk in 2^63."""


@dataclass(frozen=True, slots=True)
class Number:
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


@dataclass(frozen=True, slots=True)
class Text:
    """UTF-8."""

    size: int

    def decode(self, field: bytes) -> str:
        if len(field) > self.size:
            raise ValueError(f"a text of {len(field)} bytes")
        return str(field, "utf-8")


@dataclass(frozen=True, slots=True)
class Octets:
    """Bytes of any kind."""

    size: int

    def decode(self, field: bytes) -> bytes:
        if len(field) > self.size:
            raise ValueError(f"a field of {len(field)} bytes")
        return field


@dataclass(frozen=True, slots=True)
class Names:
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
        """One after the other: many equal names take few bytes of a file."""
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


@dataclass(frozen=True, slots=True)
class Column:
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
}
"""By tag, in the order of SURVEY.md, "A part"."""

SECTION_BYTES = {
    tag: min(PART_SECTION_BYTES, sum(4 + kind.size for kind in kinds)) for tag, kinds in FIELDS.items()
}
"""The most bytes of each section."""


def decode_fields(tag: bytes, fields: Sequence[bytes]) -> list[Any]:
    """The values of a section's fields. Raises ValueError for what no scan writes."""
    kinds = FIELDS.get(tag)
    if kinds is None:
        raise ValueError(f"an unknown section {tag!r}")
    if len(fields) != len(kinds):
        raise ValueError(f"a section {tag!r} with {len(fields)} fields")
    return [kind.decode(field) for kind, field in zip(kinds, fields, strict=True)]
