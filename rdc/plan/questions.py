"""What is asked about content below the chunk: fingerprints of the blocks of some ranges of a file."""

from __future__ import annotations

from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from rdc.plan.regions import Window

__all__ = ["NOWHERE", "ORDERED_COST", "WRONG_COST", "Ask", "Find", "Search", "fingerprint_width"]

NOWHERE = (1 << 64) - 1
"""Offset of a block that was not found, as the kernel says it."""

WRONG_COST = 4 << 10
"""Bytes that a block costs which seems to be where it is not: those of its cell, which comes again."""

ORDERED_COST = 64
"""The same where blocks alone and out of order are looked at again: a wrong one is mostly noticed so, and
costs nothing. Measured from one release of Django, TypeScript and numpy to the next, in sum: 64 cost less
than 8 and 512."""

LEAST_WIDTH = 2
MOST_WIDTH = 8


@dataclass(frozen=True, slots=True)
class Ask:
    """Blocks of `size` bytes of these ranges (whose ends may be shorter), fingerprints of `width` bytes."""

    ranges: array[int]
    """Two numbers each, offset in the file and length."""
    size: int
    width: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The ranges, (offset, length)."""
        return list(zip(self.ranges[0::2], self.ranges[1::2], strict=True))


Find: TypeAlias = "Callable[[Window, int, int, bytes], Sequence[int]]"
"""(window, size, width, fingerprints) -> the offset in the base of each block, or NOWHERE."""

Search: TypeAlias = (
    "Callable[[int, int, int, int, array[int], array[int], array[int], bytes], tuple[bytes, ...]]"
)
"""(base, size, width, smaller, gaps, ranges, pieces, fingerprints) -> (counts, pieces, ranges), all but
the base as the kernel's `search_gaps` has them."""


def fingerprint_width(candidates: int, cost: int) -> int:
    """Bytes of a fingerprint that is compared with those of so many places, if a wrong match costs `cost`
    bytes.

    With w bytes a block, n blocks cost n w and n candidates cost / 256^w, the latter for those that are in no
    place. A byte more costs n and saves nearly all of that: it pays until candidates cost <= 256^w, for any
    n.
    """
    return min(MOST_WIDTH, max(LEAST_WIDTH, -(-(candidates * cost - 1).bit_length() // 8)))
