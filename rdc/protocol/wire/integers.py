"""Integers as bytes: one as a varint, many as a column.

A varint is an unsigned LEB128 integer, as in the heads of blocks and frames.

A column has many integers as packed little-endian bytes, without Python work or a msgpack node per integer.
Its first byte is the width of its items (1, 2, 4 or 8); the items follow. An empty column has no bytes.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from itertools import count as numbers
from operator import add, lt, sub

from rdc.errors import ProtocolError

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
    """The integer at `start` and the offset after it; None while its bytes are incomplete.

    ProtocolError for a value above `limit` and for needless trailing zero groups, as soon as the bytes show
    it. A sender cannot make the receiver wait for an endless integer.
    """
    value = shift = 0
    for position in range(start, len(buffer)):
        byte = buffer[position]
        value |= (byte & 0x7F) << shift
        if value > limit or shift > limit.bit_length():
            raise ProtocolError(f"the far side sent {what} past the limit of {limit}")
        if byte < 0x80:
            if byte == 0 and shift:
                raise ProtocolError(f"the far side sent {what} with needless bytes")
            return value, position + 1
        shift += 7
    return None


WIDTHS = {1: "B", 2: "H", 4: "I", 8: "Q"}


def encode_fixed(column: array[int]) -> bytes:
    """The items of `column` as little-endian bytes."""
    if sys.byteorder == "big":
        column = array(column.typecode, column)
        column.byteswap()
    return column.tobytes()


def decode_fixed(typecode: str, data: bytes) -> array[int]:
    """The inverse of encode_fixed. ValueError unless `data` consists of whole items."""
    column = array(typecode)
    if len(data) % column.itemsize:
        raise ValueError(f"{len(data)} bytes are not whole items of {column.itemsize}")
    column.frombytes(data)
    if sys.byteorder == "big":
        column.byteswap()
    return column


def pack_column(values: Sequence[int]) -> bytes:
    """Pack `values` (>= 0, < 2^64) in the narrowest width that holds their maximum."""
    if not values:
        return b""
    largest = max(values)
    if largest < 1 << 8:
        return b"\1" + bytes(values)
    width = 2 if largest < 1 << 16 else 4 if largest < 1 << 32 else 8
    return bytes((width,)) + encode_fixed(array(WIDTHS[width], values))


def unpack_column(data: bytes, count: int) -> array[int]:
    """Unpack at most `count` integers. ValueError for an unknown width, a partial item or too many."""
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


def pack_gaps(values: Sequence[int]) -> bytes:
    """Pack strictly increasing integers >= 0: the first, then each difference less one."""
    if not values:
        return b""
    # Subtracting the row number from each value leaves each difference less one.
    packed = list(map(sub, values, numbers()))
    gaps = [values[0], *map(sub, packed[1:], packed)]
    if min(gaps) < 0:
        raise ValueError("not strictly increasing")
    return pack_column(gaps)


def unpack_gaps(data: bytes, count: int, limit: int) -> tuple[int, ...]:
    """Unpack 1 to `count` strictly increasing integers of at most `limit`. ValueError otherwise."""
    gaps = unpack_column(data, count)
    if not gaps:
        raise ValueError("empty")
    # Python integers do not wrap, so the last sum is the largest, and the only one to check.
    values = tuple(map(add, accumulate(gaps), numbers()))
    if values[-1] > limit:
        raise ValueError(f"ordinal {values[-1]} past {limit}")
    return values


def increasing(values: Sequence[bytes]) -> bool:
    """Whether every value is larger than the one before."""
    rest = iter(values)
    next(rest, None)
    return all(map(lt, values, rest))
