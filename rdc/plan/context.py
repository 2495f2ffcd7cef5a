"""What both sides know of a file around the ranges that are fetched, with which these are packed."""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import mul

from rdc.kernel.pieces import around_ranges, tile_range, tiled_copies
from rdc.limits import PACKED_CONTEXT_BYTES
from rdc.plan.descent import Patch, Repeat, Reuse, ReuseChunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["PlacedPiece", "context_rows", "known_pieces"]

PlacedPiece = tuple[int, int, int, int]
"""(offset in the file, base, offset there, length), in bytes."""


def context_rows(ranges: array[int], size: int) -> array[int]:
    """The bytes of a file of `size` bytes next to `ranges`, at least one, and in none of them; both are rows
    (offset, length) in order.

    To either side of each as many as make PACKED_CONTEXT_BYTES in all.
    """
    return array("Q", around_ranges(ranges, PACKED_CONTEXT_BYTES // len(ranges), size))


def known_pieces(
    parts: Sequence[Part], trees: Sequence[SignatureTree], wanted: array[int]
) -> Iterator[PlacedPiece] | None:
    """Where the bases have these bytes of the file that `parts` make, rows as above; None where that is not
    simple: runs that repeat, which literals are seldom near."""
    if any(isinstance(part, Repeat) or part.count != 1 for part in parts):
        return None
    return _placed(_copies(parts, trees), wanted)


def _placed(copies: array[int], wanted: array[int]) -> Iterator[PlacedPiece]:
    for offset, length in zip(wanted[0::2], wanted[1::2], strict=True):
        found = iter(array("Q", tiled_copies(tile_range(copies, offset, length), offset)))
        yield from zip(found, found, found, found, strict=True)


def _copies(parts: Sequence[Part], trees: Sequence[SignatureTree]) -> array[int]:
    """All that is copied from bases, in order of the file: the kernel's rows of copies."""
    starts: dict[int, array[int]] = {}

    def offset(base: int, row: int) -> int:
        if base not in starts:
            level = trees[base].levels[0]
            starts[base] = array("Q", accumulate(map(mul, level.lengths, level.counts), initial=0))
        return starts[base][row]

    copies = array("Q")
    at = 0
    for part in parts:
        if isinstance(part, Reuse):
            copies.extend((at, part.base, offset(part.base, part.first), part.length))
        elif isinstance(part, ReuseChunk):
            copies.extend((at, part.base, offset(part.base, part.row), part.length))
        elif isinstance(part, Patch):
            copies.frombytes(tiled_copies(part.pieces.tiles, at))
        at += part.length
    return copies
