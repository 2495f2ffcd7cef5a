"""Targets in x86 machine code, by distance or by place, in plain Python: this file defines the truth.

Code names what it calls and most of what it reads by the distance from the end of the instruction. One
function called from a hundred places is a hundred different fields then; by its place in the file it is a
hundred times the same, and that compresses. Filters of this kind ("BCJ", "E8") are common in packers of
executables.
"""

from __future__ import annotations

import re
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["absolute_targets", "relative_targets"]

REACH = 1 << 26
"""Bytes of the distances that are rewritten, to either side: 64 MiB. A lower bound leaves many alone in large
libraries, a higher one rewrites more of what is no distance; both compress worse (measured: 2^25, 2^27)."""

NAMES_DATA = bytes.fromhex("10 11 16 28 29 2e 2f 3b 54 57 58 59 5c 5e 6f 7e 7f 83 89 8b 8d b6 b7 c7 ff")
"""Opcodes of most instructions that name data by its distance, without prefixes: mov, lea, cmp, call through
a table, movzx, and moves and arithmetic of SSE. Distances of jumps are not rewritten: they are short, and the
same code has the same ones wherever it lies (0.2 to 1.2 % larger with those of E9, measured)."""

NO_CALL_BEHIND = bytes.fromhex("78 83 89 c1")
"""What often stands before an E8 that is an operand: 0.4 % smaller without these (measured). A field that was
rewritten ends in 00 to 03 or FC to FF, before and after, which is none of these: both directions agree."""

_FIELD = re.compile(
    rb"(?<![%s])\xe8|[%s][\x05\x0d\x15\x1d\x25\x2d\x35\x3d]"
    % (re.escape(NO_CALL_BEHIND), re.escape(NAMES_DATA)),
    re.DOTALL,
)
"""A call, or such an opcode and a second byte that says "at a distance": what stands before a field."""


def absolute_targets(content: WriteableBuffer, places: ReadableBuffer, /) -> int:
    """Rewrites machine code in `content`, in place, and returns how many fields it changed.

    `content` is pieces of a file one behind the other; `places` has two 64-bit numbers, in this machine's
    order, for each: its offset in the file and its length in bytes. ValueError where these do not add up.

    In each piece, from its start on: behind a byte E8 that does not follow one of NO_CALL_BEHIND, and behind
    a byte of NAMES_DATA with one that is 05 once the bits 38 are off it, lies a field of four bytes if the
    piece has as many, a signed number, lowest byte first. If it is at least -REACH and less than REACH, the
    file's offset of the field's end is added to it modulo 2 REACH, so that it stays within these bounds. The
    search goes on behind the field: one that overlaps it could change what kept it from being rewritten.
    """
    return _move(content, places, 1)


def relative_targets(content: WriteableBuffer, places: ReadableBuffer, /) -> int:
    """Undoes absolute_targets() with the same places, whatever the bytes are."""
    return _move(content, places, -1)


def _move(content: WriteableBuffer, places: ReadableBuffer, sign: int) -> int:
    numbers = array("Q")
    with memoryview(places) as packed, memoryview(content).cast("B") as view:
        if packed.nbytes % 16 == 0:
            numbers.frombytes(packed.cast("B"))
        if packed.nbytes % 16 or sum(numbers[1::2]) != len(view):
            raise ValueError(
                f"code targets: an offset and a length for each piece, of {len(view)} bytes in all "
                f"({packed.nbytes} bytes)"
            )
        moved = start = 0
        for offset, length in zip(numbers[::2], numbers[1::2], strict=True):
            moved += _move_piece(view[start : start + length], offset, sign)
            start += length
    return moved


def _move_piece(code: memoryview, offset: int, sign: int) -> int:
    moved = at = 0
    while (found := _FIELD.search(code, at)) is not None and found.end() + 4 <= len(code):
        at = found.end() + 4
        value = int.from_bytes(code[at - 4 : at], "little", signed=True)
        if -REACH <= value < REACH:
            value = (value + sign * (offset + at) + REACH) % (2 * REACH) - REACH
            code[at - 4 : at] = value.to_bytes(4, "little", signed=True)
            moved += 1
    return moved
