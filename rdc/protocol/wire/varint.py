"""Unsigned LEB128 integers, used by the heads of blocks and frames."""

from __future__ import annotations

from rdc.errors import ProtocolError

__all__ = ["decode_varint", "encode_varint"]


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
