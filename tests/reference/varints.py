"""Columns of unsigned LEB128 integers in plain Python: the definition for varints.c.

Each integer has groups of seven bits, lowest first, with bit 7 set on all bytes but the last. Numbers are
native with 64 bits, such as array('Q'), and below 2^63.
"""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["pack_varints", "unpack_varints"]

_LIMIT = (1 << 63) - 1


def pack_varints(numbers: ReadableBuffer, /) -> bytes:
    """Returns these numbers as varints one after another. ValueError for a number of 2^63 or more."""
    packed = bytearray()
    data = bytes(numbers)
    if len(data) % 8:
        raise ValueError(f"varints: {len(data)} bytes are no 64-bit numbers")
    for number in array("Q", data):
        if number > _LIMIT:
            raise ValueError("varints: a number past 2^63 - 1")
        left = number
        while left > 0x7F:
            packed.append(left & 0x7F | 0x80)
            left >>= 7
        packed.append(left)
    return bytes(packed)


def unpack_varints(data: ReadableBuffer, start: int, count: int, /) -> tuple[bytes, int]:
    """Returns the `count` numbers at offset `start`, and the offset after them. ValueError if some are
    missing, too large, or have needless zero groups."""
    packed = bytes(data)
    if not 0 <= start <= len(packed) or not 0 <= count <= len(packed) - start:
        raise ValueError(f"varints: {count} are not in {len(packed)} bytes from {start} on")
    numbers, at = array("Q"), start
    for _ in range(count):
        end = at
        while end < len(packed) and packed[end] & 0x80:
            end += 1
        groups = packed[at : end + 1]
        value = sum((byte & 0x7F) << 7 * position for position, byte in enumerate(groups))
        if end == len(packed) or value > _LIMIT or len(groups) > 9 or (not groups[-1] and len(groups) > 1):
            raise ValueError("varints: cut short, past 2^63 - 1, or with needless bytes")
        numbers.append(value)
        at = end + 1
    return numbers.tobytes(), at
