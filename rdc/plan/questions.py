"""What is asked about content below the chunk: fingerprints of the blocks of some ranges of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from rdc.records import dataclass

if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Sequence

    from rdc.plan.regions import Window

__all__ = ["NOWHERE", "Ask", "Find", "Search", "fingerprint_width"]

NOWHERE = (1 << 64) - 1
"""Offset of a block that was not found, as the kernel says it."""

CERTAINTY_BITS = 10
"""One file in 2^10 at most may be deceived by a fingerprint: a chunk of it then comes once more."""


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


def fingerprint_width(pairs: int, least: int = 4, certainty: int = CERTAINTY_BITS) -> int:
    """Bytes of a fingerprint, where so many pairs of blocks are compared."""
    return min(8, max(least, -(-(pairs.bit_length() + certainty) // 8)))
