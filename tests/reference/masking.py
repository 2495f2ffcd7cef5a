"""Masking of x86 displacements, and their extraction, in plain Python: the definition for masking.c.

A moved function differs only in the displacements of what it calls, jumps to and reads elsewhere: four bytes
each. With these bytes masked both versions are equal, so their blocks match. Whether bytes are a field
depends only on a few bytes around them, wherever the scan began. The reversible rewriting in
branches.py has no such limit.
"""

from __future__ import annotations

import re
from array import array
from itertools import accumulate

from tests.reference.branches import NAMES_DATA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = [
    "bit_counts",
    "displacement_bits",
    "mask_displacements",
    "overwrite_marked",
    "put_displacements",
    "take_displacements",
]

FIELD = 4

_NEAR = rb"...[\x00-\x03\xfc-\xff]"
"""Four bytes of a displacement of less than 64 MiB, lowest first."""

_FOURS = bytes(range(0, 256, 4))

_ENTRY = (
    rb"(?:[%s][\x01-\x0f]|[%s]\x00)\x00\x00(?!\x00\x00\x00)[%s]..\x00%s(?!\x00\x00\x00)..[\x00-\x0f]\x00"
    % (re.escape(_FOURS), re.escape(_FOURS[4:]), re.escape(_FOURS), _NEAR)
)
"""The head of an entry of a frame table (.eh_frame), which describes stack unwinding. It has the entry's
length (16 to 4,095 bytes), the distance back to the shared part (up to 16 MiB), the distance of the function,
and the function's length (up to 1 MiB). A tail follows: one byte 0, or one byte 4 and another
displacement."""

_SEEMING = re.compile(
    rb"(?=(?P<entry>%s(?:\x00|\x04(?P<tail>%s)))|(?P<before>[\xe8\xe9]|[%s][\x05\x0d\x15\x1d\x25\x2d\x35\x3d])%s)"
    % (_ENTRY, _NEAR, re.escape(NAMES_DATA), _NEAR),
    re.DOTALL,
)
"""A frame table entry; or a call, a jump, or one of NAMES_DATA with a ModRM byte for an instruction-relative
operand, before four bytes of a near displacement.

Conditional jumps stay: most lead to their own function. Measured: with 0F 80 to 0F 8F 4 to 12 % larger;
without E9 1 % smaller to 11 % larger; without frame table entries 5 to 17 % larger.
"""


def _fields(content: bytes) -> list[int]:
    """Returns the offsets of fields; a frame table entry has two adjacent ones.

    A candidate counts unless its first byte lies within an earlier candidate, whether that one counts or not.
    So fields never overlap, and bytes more than 40 before or 19 behind a field do not matter.
    """
    fields = []
    end = 0
    for seeming in _SEEMING.finditer(content):
        start = seeming.start()
        if seeming["entry"] is not None:
            found = [start + 4, start + 8]
            stop = seeming.end("entry")
            if seeming["tail"] is not None:
                found.append(seeming.start("tail"))
        else:
            found = [seeming.end("before")]
            stop = found[0] + FIELD
        if start >= end:
            fields += found
        end = max(end, stop)
    return fields


def _fields_of_parts(content: bytes, lengths: ReadableBuffer | None) -> list[int]:
    if lengths is None:
        return _fields(content)
    packed = bytes(lengths)
    sizes = array("Q", packed) if len(packed) % 8 == 0 else array("Q", [1])
    if sum(sizes) != len(content) or len(packed) % 8:
        raise ValueError(f"masking: lengths, 8 bytes each, that add up to {len(content)} bytes")
    starts = accumulate(sizes, initial=0)
    return [
        start + field
        for start, size in zip(starts, sizes, strict=False)
        for field in _fields(content[start : start + size])
    ]


def displacement_bits(content: ReadableBuffer, lengths: ReadableBuffer | None = None, /) -> bytes:
    """Returns one bit per byte of `content`, lowest bit of a byte first: set for bytes of a field.

    `lengths` (native 64 bits) divides `content` into parts that are scanned separately. ValueError if they do
    not add up.
    """
    plain = bytes(content)
    set_bits = sum(0xF << field for field in _fields_of_parts(plain, lengths))
    return set_bits.to_bytes(-(-len(plain) // 8), "little")


def mask_displacements(
    content: WriteableBuffer, filler: int, lengths: ReadableBuffer | None = None, /
) -> int:
    """Overwrites every byte of a field with `filler` and returns the number of fields. `lengths` as for
    `displacement_bits`. ValueError also if `filler` is no byte."""
    if not 0 <= filler <= 255:
        raise ValueError(f"masking: {filler} is no byte")
    with memoryview(content).cast("B") as view:
        fields = _fields_of_parts(bytes(view), lengths)
        for field in fields:
            view[field : field + FIELD] = bytes([filler]) * FIELD
    return len(fields)


def bit_counts(bits: ReadableBuffer, size: int, /) -> bytes:
    """Returns the number of set bits in each `size` bytes of `bits`, as native 64-bit numbers. The last part
    may be shorter. ValueError for a size below 1."""
    packed = bytes(bits)
    if size < 1:
        raise ValueError(f"masking: parts of {size} bytes")
    parts = (packed[at : at + size] for at in range(0, len(packed), size))
    return array("Q", (int.from_bytes(part, "little").bit_count() for part in parts)).tobytes()


def take_displacements(
    content: WriteableBuffer, bits: ReadableBuffer, size: int, offsets: ReadableBuffer, filler: int, /
) -> tuple[bytes, bytes]:
    """Extracts the masked bytes: returns the bytes of `content` whose bit is set, one after another, and
    their number per part (native 64 bits). Then overwrites them with `filler`.

    `content` has parts of `size` bytes, a multiple of 8; the last may be shorter. `offsets` has the file
    offset of each part (native 64 bits). Exactly four adjacent bytes in a part are a displacement, lowest
    byte first. They are returned as an absolute offset: the file offset of their end is added modulo 2^32.
    Eight adjacent bytes are two numbers; the first points back and is subtracted from the file offset of its
    start. ValueError as for overwrite_marked(), or if there are more or fewer offsets than parts.
    """
    with memoryview(content).cast("B") as view:
        plain = bytes(view)
    if size % 8:
        raise ValueError(f"masking: parts of {size} bytes, not of eights")
    mask = _mask(bits, len(plain))
    taken, counts = bytearray(), array("Q")
    for at, offset in _equal_parts(len(plain), size, offsets):
        part = _converted(plain[at : at + size], mask[at : at + size], offset, 1)
        taken += part
        counts.append(len(part))
    overwrite_marked(content, bits, filler)
    return bytes(taken), counts.tobytes()


def put_displacements(
    content: WriteableBuffer,
    start: int,
    bits: ReadableBuffer,
    displacements: ReadableBuffer,
    size: int,
    offsets: ReadableBuffer,
    /,
) -> int:
    """Puts the bytes extracted by take_displacements() back into `content`, which is a file's bytes
    from `start` on. Returns the number of bytes written.

    `displacements` are the extracted bytes, and `bits` mark their positions in parts of `size` bytes, a
    multiple of 8, at `offsets`. Bytes outside of `content` are skipped. ValueError if the numbers of these
    bytes and of set bits differ, as for take_displacements(), and for positions past
    2^63 - 1. Some bytes may be written by then.
    """
    packed, taken = bytes(bits), bytes(displacements)
    if size % 8:
        raise ValueError(f"masking: parts of {size} bytes, not of eights")
    mask = _mask(packed, 8 * len(packed))
    parts = list(_equal_parts(len(mask), size, offsets))
    if len(taken) != sum(mask):
        raise ValueError(f"masking: {len(taken)} bytes of displacements for {sum(mask)} set bits")
    count = at = 0
    with memoryview(content).cast("B") as view:
        ends = [start + len(view), *(offset + len(mask[first : first + size]) for first, offset in parts)]
        if start < 0 or max(ends) >= 1 << 63:
            raise ValueError(f"masking: content at {start}, or parts, that do not end at 0 to 2^63 - 1")
        for first, offset in parts:
            shown = mask[first : first + size]
            placed = _put(shown, taken[at : at + sum(shown)])
            at += sum(shown)
            positions = (position for position, selected in enumerate(shown, offset - start) if selected)
            for position, byte in zip(positions, _converted(placed, shown, offset, -1), strict=True):
                if 0 <= position < len(view):
                    view[position] = byte
                    count += 1
    return count


def _put(mask: bytes, taken: bytes) -> bytes:
    """Returns zeros with the bytes of `taken` at the positions that `mask` selects."""
    placed, at = bytearray(len(mask)), 0
    for run in _RUN.finditer(mask):
        length = run.end() - run.start()
        placed[run.start() : run.end()] = taken[at : at + length]
        at += length
    return bytes(placed)


def _equal_parts(total: int, size: int, offsets: ReadableBuffer) -> Iterator[tuple[int, int]]:
    """Yields for each part its start in the content and its offset in the file."""
    packed = bytes(offsets)
    if size <= 0 or len(packed) != 8 * -(-total // size):
        raise ValueError(f"masking: {len(packed) // 8} parts of {size} bytes for {total}")
    return zip(range(0, total, size), array("Q", packed), strict=True)


def overwrite_marked(content: WriteableBuffer, bits: ReadableBuffer, filler: int, /) -> None:
    """Overwrites the bytes whose bit is set with `filler`.

    ValueError if `bits` has not one bit per byte of the content, rounded up to whole bytes, or if `filler` is
    no byte.
    """
    if not 0 <= filler <= 255:
        raise ValueError(f"masking: {filler} is no byte")
    with memoryview(content).cast("B") as view:
        mask = _mask(bits, len(view))
        view[:] = bytes(filler if hidden else byte for hidden, byte in zip(mask, view, strict=True))


def _mask(bits: ReadableBuffer, size: int) -> bytes:
    """Returns 01 for each of `size` bytes whose bit is set, 00 for all others."""
    packed = bytes(bits)
    if len(packed) != -(-size // 8):
        raise ValueError(f"masking: {len(packed)} bytes of bits for {size} bytes")
    return bytes(packed[position // 8] >> position % 8 & 1 for position in range(size))


_RUN = re.compile(rb"[^\x00]+")


def _converted(content: bytes, mask: bytes, offset: int, sign: int) -> bytes:
    taken = bytearray()
    for run in _RUN.finditer(mask):
        field = content[run.start() : run.end()]
        if len(field) == 2 * FIELD:
            # Subtracting twice from the same offset restores the value.
            taken += _number(offset + run.start() - int.from_bytes(field[:FIELD], "little"))
            field = field[FIELD:]
        if len(field) == FIELD:
            field = _number(int.from_bytes(field, "little") + sign * (offset + run.end()))
        taken += field
    return bytes(taken)


def _number(value: int) -> bytes:
    return (value % (1 << 32)).to_bytes(FIELD, "little")
