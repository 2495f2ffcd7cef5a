"""What both sides know of a file around the ranges that are fetched, with which these are packed."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from operator import mul

from rdc.kernel.pieces import around_ranges
from rdc.limits import PACKED_CONTEXT_BYTES
from rdc.plan.descent import ByteRange, Copy, Patch, Repeat, Reuse, ReuseChunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["PlacedPiece", "context_ranges", "context_rows", "known_pieces", "placed_pieces"]

PlacedPiece = tuple[int, int, int, int]
"""(offset in the file, base, offset there, length), in bytes."""


def context_ranges(ranges: Sequence[tuple[int, int]], size: int) -> tuple[ByteRange, ...]:
    """The bytes of a file of `size` bytes next to `ranges`, (offset, length) in order, and in none of them.

    To either side of each as many as make PACKED_CONTEXT_BYTES in all.
    """
    rows = context_rows(array("Q", chain.from_iterable(ranges)), size)
    return tuple(map(ByteRange, rows[0::2], rows[1::2]))


def context_rows(ranges: array[int], size: int) -> array[int]:
    """The same as rows (offset, length), of at least one."""
    return array("Q", around_ranges(ranges, PACKED_CONTEXT_BYTES // len(ranges), size))


def known_pieces(
    parts: Sequence[Part], trees: Sequence[SignatureTree], wanted: Sequence[ByteRange]
) -> Iterator[PlacedPiece] | None:
    """Where the bases have these bytes of the file that `parts` make; None where that is not simple: runs
    that repeat, which literals are seldom near."""
    if any(isinstance(part, Repeat) or part.count != 1 for part in parts):
        return None
    return placed_pieces(parts, trees, wanted)


def placed_pieces(
    parts: Sequence[Part], trees: Sequence[SignatureTree], wanted: Sequence[ByteRange]
) -> Iterator[PlacedPiece]:
    """The same of all parts: of what repeats only the first time."""
    row = 0
    for at, base, offset, length in _copies(parts, trees):
        while row < len(wanted) and wanted[row].offset + wanted[row].length <= at:
            row += 1
        here = row
        while here < len(wanted) and wanted[here].offset < at + length:
            start = max(at, wanted[here].offset)
            stop = min(at + length, wanted[here].offset + wanted[here].length)
            yield start, base, offset + start - at, stop - start
            here += 1


def _copies(parts: Sequence[Part], trees: Sequence[SignatureTree]) -> Iterator[PlacedPiece]:
    """All that is copied from bases, in order of the file."""
    starts: dict[int, array[int]] = {}

    def offset(base: int, row: int) -> int:
        if base not in starts:
            level = trees[base].levels[0]
            starts[base] = array("Q", accumulate(map(mul, level.lengths, level.counts), initial=0))
        return starts[base][row]

    at = 0
    for part in parts:
        if isinstance(part, Reuse):
            yield at, part.base, offset(part.base, part.first), part.length
        elif isinstance(part, ReuseChunk):
            yield at, part.base, offset(part.base, part.row), part.length
        elif isinstance(part, Patch):
            inside = at
            for piece in part.pieces:
                if isinstance(piece, Copy):
                    yield inside, piece.base, piece.offset, piece.length
                inside += piece.length
        at += part.length * part.count
