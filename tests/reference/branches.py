"""x86 displacements made absolute and back, in plain Python: the definition for branches.c.

x86 code refers to most functions and data by their distance from the end of the instruction. One function
called from a hundred instructions gives a hundred different operands. Absolute operands are equal, and that
compresses well. Executable packers call such filters BCJ or E8.
"""

from __future__ import annotations

import re
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["absolute_displacements", "relative_displacements"]

REACH = 1 << 26
"""Largest displacement in bytes that is rewritten, in both directions: 64 MiB. A lower limit misses many in
large libraries. A higher limit rewrites more bytes that are no displacement. Both compress worse (measured:
2^25, 2^27)."""

NAMES_DATA = bytes.fromhex("10 11 16 28 29 2e 2f 3b 54 57 58 59 5c 5e 6f 7e 7f 83 89 8b 8d b6 b7 c7 ff")
"""Opcodes, without prefixes, of most instructions with an instruction-relative data operand: mov, lea, cmp,
indirect call, movzx, and SSE moves and arithmetic. Displacements of jumps are not rewritten: they are short,
and moved code keeps them. With those of E9, files were 0.2 to 1.2 % larger (measured)."""

NO_CALL_BEHIND = bytes.fromhex("78 83 89 c1")
"""Bytes that often stand before an E8 that is an operand; skipping these saves 0.4 % (measured). A rewritten
field ends in 00 to 03 or FC to FF, before and after the rewriting. None of these bytes is in this list, so
both directions agree."""

_FIELD = re.compile(
    rb"(?<![%s])\xe8|[%s][\x05\x0d\x15\x1d\x25\x2d\x35\x3d]"
    % (re.escape(NO_CALL_BEHIND), re.escape(NAMES_DATA)),
    re.DOTALL,
)
"""The bytes before a field: a call, or one of the opcodes with a ModRM byte for an instruction-relative
operand."""


def absolute_displacements(content: WriteableBuffer, ranges: ReadableBuffer, /) -> int:
    """Rewrites displacements of x86 code in `content` in place and returns the number of changed fields.

    `content` is several parts of a file one after another. `ranges` has two native 64-bit numbers per part:
    its offset in the file and its length in bytes. ValueError if they do not add up.

    A field is four bytes within a part, a signed little-endian number. It follows a byte E8 that does not
    follow one of NO_CALL_BEHIND. Or it follows a byte of NAMES_DATA and a byte that is 05 without the bits
    38. If its value is at least -REACH and less than REACH, the file offset of the field's end is added
    modulo 2 REACH, so the result stays within these bounds. The scan continues behind the field: an
    overlapping field could change the bytes that decide about it.
    """
    return _move(content, ranges, 1)


def relative_displacements(content: WriteableBuffer, ranges: ReadableBuffer, /) -> int:
    """Undoes absolute_displacements() with the same ranges, for any content. Returns the number of changed
    fields."""
    return _move(content, ranges, -1)


def _move(content: WriteableBuffer, ranges: ReadableBuffer, sign: int) -> int:
    numbers = array("Q")
    with memoryview(ranges) as packed, memoryview(content).cast("B") as view:
        if packed.nbytes % 16 == 0:
            numbers.frombytes(packed.cast("B"))
        if packed.nbytes % 16 or sum(numbers[1::2]) != len(view):
            raise ValueError(
                f"displacements: an offset and a length for each part, of {len(view)} bytes in all "
                f"({packed.nbytes} bytes)"
            )
        moved = start = 0
        for offset, length in zip(numbers[::2], numbers[1::2], strict=True):
            moved += _move_part(view[start : start + length], offset, sign)
            start += length
    return moved


def _move_part(code: memoryview, offset: int, sign: int) -> int:
    moved = at = 0
    while (found := _FIELD.search(code, at)) is not None and found.end() + 4 <= len(code):
        at = found.end() + 4
        value = int.from_bytes(code[at - 4 : at], "little", signed=True)
        if -REACH <= value < REACH:
            value = (value + sign * (offset + at) + REACH) % (2 * REACH) - REACH
            code[at - 4 : at] = value.to_bytes(4, "little", signed=True)
            moved += 1
    return moved
