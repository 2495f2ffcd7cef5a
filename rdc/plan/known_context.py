"""Bytes around the fetched ranges of a file that both sides have. They prime the compression of the fetched
bytes."""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import mul

from rdc.kernel import around_ranges, copies_of_instructions, instructions_of_range
from rdc.limits.wire import PACKED_CONTEXT_BYTES
from rdc.plan.descent import Patch, Repeat, Reuse, ReuseChunk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree

__all__ = ["PlacedMatch", "context_rows", "known_matches"]

PlacedMatch = tuple[int, int, int, int]
"""(offset in the file, base, offset in the base, length), in bytes."""


def context_rows(ranges: array[int], size: int) -> array[int]:
    """Returns the bytes next to `ranges` that are in none of them, for a file of `size` bytes.

    `ranges` has at least one range. Arguments and result are rows (offset, length) in file order. Both sides
    of each range get the same number of bytes, PACKED_CONTEXT_BYTES in total.
    """
    return array("Q", around_ranges(ranges, PACKED_CONTEXT_BYTES // len(ranges), size))


def known_matches(
    parts: Sequence[Part], trees: Sequence[SignatureTree], wanted: array[int]
) -> Iterator[PlacedMatch] | None:
    """Yields where the bases have the `wanted` ranges (rows of offset and length) of the file that `parts`
    make.

    Returns None if any part repeats. Literals are seldom near repeated content.
    """
    if any(isinstance(part, Repeat) or part.count != 1 for part in parts):
        return None
    return _placed(_copies(parts, trees), wanted)


def _placed(copies: array[int], wanted: array[int]) -> Iterator[PlacedMatch]:
    for offset, length in zip(wanted[0::2], wanted[1::2], strict=True):
        found = iter(
            array("Q", copies_of_instructions(instructions_of_range(copies, offset, length), offset))
        )
        yield from zip(found, found, found, found, strict=True)


def _copies(parts: Sequence[Part], trees: Sequence[SignatureTree]) -> array[int]:
    """Returns everything that is copied from bases, in file order, as the kernel's rows of copies."""
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
            copies.frombytes(copies_of_instructions(part.chunk_recipe.instructions, at))
        at += part.length
    return copies
