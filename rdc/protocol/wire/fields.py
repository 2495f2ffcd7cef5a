"""Codecs of message fields, each with the checks that a received value must pass.

Most have one value; columns have many integers or byte strings. The codecs of metadata and of options are in
options.py, those of listings in rdc/protocol/messages/field_types.py.
Every `unpack` raises ValueError with the reason; codec.py adds the names of message and field.

Times are packed times (rdc.model.preserved), and after a column of them come the times of its stamps. A time
from 1678 to 2261 takes what an integer takes. A distant time is 12 bytes: seconds (i64) and nanoseconds
(u32), from which the receiver computes the stamp.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from itertools import count as numbers
from operator import add, lt, sub

from rdc.errors import ProtocolError, one_line, printable
from rdc.lean.enums import IntEnum
from rdc.lean.records import Record
from rdc.lean.typed import Generic, Protocol, TypeVar
from rdc.limits import PATH_BYTES, PATH_DEPTH, SIZE_LIMIT, TOTAL_BYTES, TOTAL_LIMIT
from rdc.model.entries import little_endian_integers
from rdc.model.preserved import END_NS, FIRST_NS, STAMPED_BYTES, is_distant, stamped, time_of_stamped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


T = TypeVar("T")
E = TypeVar("E", bound=IntEnum)


class Codec(Protocol):
    """Both directions of one field. A packed value is None, bool, int, str, bytes or a short list of
    these."""

    def pack(self, value: Any, /) -> object: ...

    def unpack(self, raw: object, /) -> Any:
        """Return the checked value. Raises ValueError with the reason."""


def of_type(raw: object, kind: type[T]) -> T:
    # type() and not isinstance(): True is an int to isinstance, but not here.
    if type(raw) is not kind:
        raise ValueError(f"expected {kind.__name__}, found {type(raw).__name__}")
    return raw


class Integer(Record):
    lowest: int = 0
    highest: int = SIZE_LIMIT
    optional: bool = False

    def pack(self, value: int | None) -> object:
        return value

    def unpack(self, raw: object) -> int | None:
        if raw is None and self.optional:
            return None
        value = of_type(raw, int)
        if not self.lowest <= value <= self.highest:
            raise ValueError(f"{value} is not in {self.lowest}..{self.highest}")
        return value


class Total(Record):
    """A sum of sizes: an integer as long as it is at most SIZE_LIMIT, else its bytes, lowest first."""

    optional: bool = False

    def pack(self, value: int | None) -> object:
        if value is None or value <= SIZE_LIMIT:
            return value
        if value > TOTAL_LIMIT:
            raise ValueError(f"{value} is not in 0..{TOTAL_LIMIT}")
        return value.to_bytes(-(-value.bit_length() // 8), "little")

    def unpack(self, raw: object) -> int | None:
        if raw is None and self.optional:
            return None
        if type(raw) is bytes:
            value = int.from_bytes(raw, "little")
            if len(raw) > TOTAL_BYTES or value <= SIZE_LIMIT or not raw[-1]:
                raise ValueError(f"{len(raw)} bytes are not the shortest form of a total up to {TOTAL_LIMIT}")
            return value
        value = of_type(raw, int)
        if not 0 <= value <= SIZE_LIMIT:
            raise ValueError(f"{value} is not in 0..{SIZE_LIMIT}")
        return value


class Flag(Record):
    optional: bool = False

    def pack(self, value: bool | None) -> object:
        return value

    def unpack(self, raw: object) -> bool | None:
        return None if raw is None and self.optional else of_type(raw, bool)


class Member(Generic[E], Record):
    """A member of an IntEnum as its integer."""

    kind: type[E]
    optional: bool = False
    without: tuple[E, ...] = ()

    def pack(self, value: E | None) -> object:
        return None if value is None else int(value)

    def unpack(self, raw: object) -> E | None:
        if raw is None and self.optional:
            return None
        value = self.kind(of_type(raw, int))
        if value in self.without:
            raise ValueError(f"{value!r} makes no sense here")
        return value


class Blob(Record):
    """Bytes that only the user of the message interprets."""

    shortest: int
    longest: int
    optional: bool = False

    def pack(self, value: bytes | None) -> object:
        return None if value is None and self.optional else self._checked(of_type(value, bytes))

    def unpack(self, raw: object) -> bytes | None:
        return None if raw is None and self.optional else self._checked(of_type(raw, bytes))

    def _checked(self, value: bytes) -> bytes:
        if not self.shortest <= len(value) <= self.longest:
            raise ValueError(f"{len(value)} bytes are not in {self.shortest}..{self.longest}")
        return value


class Content(Record):
    """File content: the last field of its message, after the msgpack of the others, so it is not copied. A
    received value is a view."""

    shortest: int
    longest: int

    def pack(self, value: bytes | memoryview) -> object:
        return self.unpack(value)

    def unpack(self, raw: object) -> bytes | memoryview:
        value = raw if isinstance(raw, memoryview) else of_type(raw, bytes)
        if not self.shortest <= len(value) <= self.longest:
            raise ValueError(f"{len(value)} bytes are not in {self.shortest}..{self.longest}")
        return value


class Path(Record):
    """A path as the file system has it. inside: relative, with plain components only, b'' for the root
    itself."""

    inside: bool = False
    optional: bool = False

    def pack(self, value: bytes | None) -> object:
        return value

    def unpack(self, raw: object) -> bytes | None:
        if raw is None and self.optional:
            return None
        value = of_type(raw, bytes)
        if len(value) > PATH_BYTES:
            raise ValueError(f"{len(value)} bytes, the limit is {PATH_BYTES}")
        if b"\0" in value:
            raise ValueError("holds a NUL")
        if self.inside:
            check_inner(value)
        return value


class Text(Record):
    """One printable line for a person. A longer line is cut when sent and refused when received."""

    longest: int
    """Limit in UTF-8 bytes."""
    optional: bool = False

    def pack(self, value: str | None) -> object:
        if value is None and self.optional:
            return None
        return one_line(of_type(value, str)).encode()[: self.longest].decode(errors="ignore")

    def unpack(self, raw: object) -> str | None:
        if raw is None and self.optional:
            return None
        value = of_type(raw, str)
        if len(value.encode()) > self.longest:
            raise ValueError(f"text of more than {self.longest} bytes")
        # Unprintable characters could forge lines on the user's terminal.
        return one_line(value)


class Word(Record):
    """A string out of a fixed set."""

    choices: tuple[str, ...]

    def pack(self, value: str) -> object:
        return value

    def unpack(self, raw: object) -> str:
        value = of_type(raw, str)
        if value not in self.choices:
            raise ValueError(f"expected one of {', '.join(self.choices)}")
        return value


class Codes(Record):
    """One or more strings of a fixed length in printable ASCII, concatenated."""

    length: int
    count: int

    def pack(self, value: str) -> object:
        return value.encode("ascii")

    def unpack(self, raw: object) -> str:
        value = of_type(raw, bytes).decode("ascii", "replace")
        if (
            not 0 < len(value) <= self.length * self.count
            or len(value) % self.length
            or not value.isascii()
            or not value.isprintable()
        ):
            raise ValueError(f"expected {self.length} printable ASCII characters, up to {self.count} times")
        return value


_NO_NAMES = frozenset((b"", b".", b".."))


def check_inner(path: bytes) -> None:
    """ValueError unless `path` is b"" or plain components between slashes. The caller has checked the
    length."""
    if path.count(b"/") >= PATH_DEPTH:
        raise ValueError(f"{path.count(b'/') + 1} components, the limit is {PATH_DEPTH}")
    if path and not _NO_NAMES.isdisjoint(path.split(b"/")):
        raise ValueError(f"{printable(path[:60])!r} is not a plain relative path")


def of_items(raw: object, *kinds: type) -> tuple[Any, ...]:
    """Return a tuple whose items have exactly these types."""
    items = of_type(raw, tuple)
    if tuple(map(type, items)) != kinds:
        raise ValueError(f"expected ({', '.join(kind.__name__ for kind in kinds)})")
    return items


# Many values


class Gaps(Record):
    """Strictly increasing integers as a column of gaps; at least one, unless may_be_empty."""

    count: int
    limit: int
    may_be_empty: bool = False

    def pack(self, value: Sequence[int]) -> object:
        return pack_gaps(value, self.count)

    def unpack(self, raw: object) -> tuple[int, ...]:
        if raw == b"" and self.may_be_empty:
            return ()
        return unpack_gaps(raw, self.count, self.limit)


class Column(Record):
    """Integers in any order."""

    count: int
    lowest: int = 0
    highest: int = SIZE_LIMIT

    def pack(self, value: Sequence[int]) -> object:
        return pack_column(value, self.count)

    def unpack(self, raw: object) -> tuple[int, ...]:
        values = tuple(unpack_column(raw, self.count))
        if values and not (self.lowest <= min(values) and max(values) <= self.highest):
            raise ValueError(f"an item is not in {self.lowest}..{self.highest}")
        return values


class Parts(Record):
    """Byte strings: a column of their lengths, then the strings without separators."""

    count: int
    longest: int

    def pack(self, value: Sequence[bytes]) -> object:
        return [pack_column([len(part) for part in value], self.count), b"".join(value)]

    def unpack(self, raw: object) -> tuple[bytes, ...]:
        lengths, blob = of_items(raw, bytes, bytes)
        sizes = unpack_column(lengths, self.count)
        if sum(sizes) != len(blob):
            raise ValueError(f"lengths add up to {sum(sizes)}, {len(blob)} bytes are there")
        if sizes and max(sizes) > self.longest:
            raise ValueError(f"an item of {max(sizes)} bytes, the limit is {self.longest}")
        parts = []
        start = 0
        for size in sizes:
            parts.append(blob[start : start + size])
            start += size
        return tuple(parts)


class Strings(Record):
    """Byte strings without NUL, each followed by a NUL. An optional column may be empty."""

    count: int
    total: int
    """Limit in bytes for all strings together. A single string may be longer."""
    longest: int = PATH_BYTES

    def pack(self, value: Sequence[bytes]) -> object:
        if len(value) > self.count:
            raise ValueError(f"{len(value)} items, the limit is {self.count}")
        return b"".join(part + b"\0" for part in value)

    def unpack(self, raw: object) -> tuple[bytes, ...]:
        blob = of_type(raw, bytes)
        if blob.count(0) > self.count:
            raise ValueError(f"more than {self.count} strings")
        if blob and blob[-1]:
            raise ValueError("the last string does not end in NUL")
        parts = tuple(blob.split(b"\0")[:-1])
        if len(blob) > self.total and len(parts) > 1:
            raise ValueError(f"{len(blob)} bytes, the limit is {self.total}")
        if max(map(len, parts), default=0) > self.longest:
            raise ValueError(f"a string of more than {self.longest} bytes")
        return parts


# Times


class Time(Record):
    """A packed time: an integer, or the bytes of a distant time."""

    optional: bool = False

    def pack(self, value: int | None) -> object:
        return value if value is None or not is_distant(value) else stamped(value)

    def unpack(self, raw: object) -> int | None:
        if raw is None and self.optional:
            return None
        if type(raw) is bytes:
            if len(raw) != STAMPED_BYTES:
                raise ValueError(f"a time of {len(raw)} bytes, expected {STAMPED_BYTES}")
            return time_of_stamped(raw)
        value = of_type(raw, int)
        if is_distant(value):
            raise ValueError(f"{value} ns are a distant time, expected its {STAMPED_BYTES} bytes")
        return value


def column_with_times(column: bytes) -> bytes:
    """Return a column of packed times (i64) as it is sent: with the times of its stamps, in order."""
    times = little_endian_integers("q", column)
    if not times or (min(times) >= FIRST_NS and max(times) < END_NS):
        return column
    return column + b"".join([stamped(time) for time in times if is_distant(time)])


def column_without_times(sent: bytes, count: int) -> bytes:
    """Return the column of `count` packed times that was sent, or an empty one.

    Raises ValueError if the bytes are too few or too many for the times of its stamps, or a stamp is not that
    of its time.
    """
    if not sent:
        return sent
    column, rest = sent[: 8 * count], sent[8 * count :]
    if len(column) != 8 * count:
        raise ValueError(f"mtimes of {len(sent)} bytes for {count} rows")
    times = little_endian_integers("q", column)
    if not rest and (not times or (min(times) >= FIRST_NS and max(times) < END_NS)):
        return column
    stamps = [time for time in times if is_distant(time)]
    if len(rest) != STAMPED_BYTES * len(stamps):
        raise ValueError(f"mtimes with {len(rest)} bytes for {len(stamps)} distant times")
    for number, stamp in enumerate(stamps):
        if time_of_stamped(rest[STAMPED_BYTES * number : STAMPED_BYTES * (number + 1)]) != stamp:
            raise ValueError("mtimes: a stamp is not that of its time")
    return column


# Integers as bytes: one as a varint, many as a column.
#
# A varint is an unsigned LEB128 integer, as in the heads of blocks and frames.
#
# A column has many integers as packed little-endian bytes, without Python work or a msgpack node per integer.
# Its first byte is the width of its items (1, 2, 4 or 8); the items follow. An empty column has no bytes.

_SHORT = [bytes((value,)) for value in range(0x80)]
"""Encodings of one byte, as round numbers and most lengths have."""


def encode_varint(value: int) -> bytes:
    """Encode `value` (>= 0) in groups of seven bits, lowest first, with bit 7 set on all bytes but the
    last."""
    if value < len(_SHORT):
        return _SHORT[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_varint(
    buffer: bytes | bytearray | memoryview, start: int, limit: int, what: str
) -> tuple[int, int] | None:
    """Return the integer at `start` and the offset after it; None while its bytes are incomplete.

    ProtocolError for a value above `limit` and for needless trailing zero groups, as soon as the bytes show
    it. A sender cannot make the receiver wait for an endless integer.
    """
    value = shift = 0
    for position in range(start, len(buffer)):
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if value > limit or shift > limit.bit_length():
            raise ProtocolError(f"the remote side sent {what} past the limit of {limit}")
        if byte < 0x80:
            if byte == 0 and shift:
                raise ProtocolError(f"the remote side sent {what} with needless bytes")
            return value, position + 1
        shift += 7
    return None


WIDTHS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def encode_fixed(column: array[int]) -> bytes:
    """Return the items of `column` as little-endian bytes."""
    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


def decode_fixed(typecode: str, data: bytes) -> array[int]:
    """Return the inverse of encode_fixed. Raises ValueError unless `data` consists of whole items."""
    column = array(typecode)
    if len(data) % column.itemsize:
        raise ValueError(f"{len(data)} bytes are not whole items of {column.itemsize}")
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def pack_column(values: Sequence[int], count: int) -> bytes:
    """Pack at most `count` `values` (>= 0, < 2^64) in the narrowest width that holds their maximum.
    ValueError for more: a sender may exceed this limit by mistake, and the receiver checks all others."""
    if len(values) > count:
        raise ValueError(f"{len(values)} items, the limit is {count}")
    if not values:
        return b""
    largest = max(values)
    if largest < 1 << 8:
        return b"\1" + bytes(values)
    width = 2 if largest < 1 << 16 else 4 if largest < 1 << 32 else 8
    return struct.pack(f"<B{len(values)}{WIDTHS[width]}", width, *values)


def unpack_column(raw: object, count: int) -> array[int]:
    """Unpack at most `count` integers. Raises ValueError for another type than bytes, an unknown width, a
    partial item or too many."""
    data = raw if type(raw) is bytes else of_type(raw, bytes)
    if not data:
        return array("B")
    typecode = WIDTHS.get(data[0])
    if typecode is None:
        raise ValueError(f"unknown column width {data[0]}")
    if len(data) == 1:
        raise ValueError("a column of no items must be empty bytes")
    if len(data) - 1 > count * data[0]:
        raise ValueError(f"more than {count} items")
    return decode_fixed(typecode, data[1:])


def pack_gaps(values: Sequence[int], count: int) -> bytes:
    """Pack at most `count` strictly increasing integers >= 0: the first, then each difference less one.
    ValueError otherwise."""
    if not values:
        return b""
    # Subtracting the row number from each value leaves each difference less one.
    packed = list(map(sub, values, numbers()))
    gaps = [values[0], *map(sub, packed[1:], packed)]
    if min(gaps) < 0:
        raise ValueError("not strictly increasing")
    return pack_column(gaps, count)


def unpack_gaps(raw: object, count: int, limit: int) -> tuple[int, ...]:
    """Unpack 1 to `count` strictly increasing integers of at most `limit`. ValueError otherwise."""
    gaps = unpack_column(raw, count)
    if not gaps:
        raise ValueError("empty")
    # Python integers do not wrap, so the last sum is the largest, and the only one to check.
    values = tuple(map(add, accumulate(gaps), numbers()))
    if values[-1] > limit:
        raise ValueError(f"ordinal {values[-1]} past {limit}")
    return values


def increasing(values: Sequence[bytes]) -> bool:
    """Return whether every value is larger than the one before."""
    rest = iter(values)
    next(rest, None)
    return all(map(lt, values, rest))
