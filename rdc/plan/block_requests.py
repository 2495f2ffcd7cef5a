"""A request for block fingerprints of some ranges of a file, and the width of these fingerprints."""

from __future__ import annotations

from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from rdc.plan.large_gaps import Window

__all__ = ["NOWHERE", "ORDERED_COST", "WRONG_COST", "BlockQuestion", "Find", "Search", "fingerprint_width"]

NOWHERE = (1 << 64) - 1
"""Offset of a block that was not found, as the kernel writes it."""

WRONG_COST = 4 << 10
"""Bytes that a false match costs: its check block is sent again."""

ORDERED_COST = 64
"""Bytes that a false match costs on average where blocks out of order are searched again. That second search
finds most false matches, and these cost nothing. Measured in sum from one release of Django, TypeScript and
numpy to the next: 64 needs fewer bytes than 8 and 512."""

LEAST_WIDTH = 2
MOST_WIDTH = 8


@dataclass(frozen=True, slots=True)
class BlockQuestion:
    """Asks for fingerprints of `width` bytes of the blocks of `size` bytes in some ranges. The last block of
    a range may be shorter."""

    ranges: array[int]
    """Two numbers per range: its offset in the file and its length, in bytes."""
    size: int
    width: int

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The ranges as (offset, length)."""
        return list(zip(self.ranges[0::2], self.ranges[1::2], strict=True))


Find: TypeAlias = "Callable[[Window, int, int, bytes], Sequence[int]]"
"""(window, size, width, fingerprints) -> the offset in the base of each block, or NOWHERE."""

Search: TypeAlias = (
    "Callable[[int, int, int, int, array[int], array[int], array[int], bytes], tuple[bytes, ...]]"
)
"""(base, size, width, smaller, gaps, ranges, matches, fingerprints) -> (counts, matches, ranges). All but the
base have the layout of the kernel's `search_gaps`."""


def fingerprint_width(candidates: int, cost: int) -> int:
    """Returns the bytes per fingerprint if each is compared with `candidates` offsets and a false match costs
    `cost` bytes.

    With w bytes per block, n blocks cost n w for the fingerprints. False matches of absent blocks add n
    candidates cost / 256^w. One more byte costs n and removes nearly all of the second term. It pays until
    candidates cost <= 256^w, whatever n is.
    """
    return min(MOST_WIDTH, max(LEAST_WIDTH, -(-(candidates * cost - 1).bit_length() // 8)))
