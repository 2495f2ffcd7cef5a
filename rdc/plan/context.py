"""What both sides know of a file around the ranges that are fetched, with which these are packed."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from operator import mul

from rdc.kernel.pieces import LITERAL, around_ranges, tile_range
from rdc.limits import PACKED_CONTEXT_BYTES
from rdc.plan.descent import Copy, Patch, Repeat, Reuse, ReuseChunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["PlacedPiece", "context_rows", "known_pieces", "placed_pieces"]

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
    return placed_pieces(parts, trees, wanted)


def placed_pieces(
    parts: Sequence[Part], trees: Sequence[SignatureTree], wanted: array[int]
) -> Iterator[PlacedPiece]:
    """The same of all parts: of what repeats only the first time."""
    copies = array("Q", chain.from_iterable(_copies(parts, trees)))
    for offset, length in zip(wanted[0::2], wanted[1::2], strict=True):
        at = offset
        tiles = iter(array("Q", tile_range(copies, offset, length)))
        for base, place, size in zip(tiles, tiles, tiles, strict=True):
            if base != LITERAL:
                yield at, base, place, size
            at += size


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
