"""Columns: many integers as packed little-endian bytes, without Python work or a msgpack node per integer.

The first byte of a column is the width of its items (1, 2, 4 or 8); the items follow. An empty column has no
bytes.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from itertools import accumulate
from itertools import count as numbers
from operator import add, lt, sub

__all__ = [
    "decode_fixed",
    "encode_fixed",
    "increasing",
    "pack_column",
    "pack_gaps",
    "unpack_column",
    "unpack_gaps",
]

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
