"""Ranges of gaps for which no match was found yet, stored as columns, and their split into messages."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate, islice

from rdc.limits.wire import BLOCKS_PER_MESSAGE, RANGES_PER_MESSAGE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.plan.gaps import Gap

__all__ = ["UnmatchedRanges"]


class UnmatchedRanges:
    """Ranges of several gaps in file order.

    Gap i of `gaps` has `counts[i]` ranges. `ranges` has two numbers per range: offset in the file and length.
    """

    __slots__ = ("counts", "gaps", "ranges")

    def __init__(self) -> None:
        self.gaps: list[Gap] = []
        self.counts: list[int] = []
        self.ranges = array("Q")

    def add(self, gap: Gap, ranges: array[int]) -> None:
        """Appends ranges of `gap`, which lie after all ranges added before."""
        if not ranges:
            return
        if self.gaps and self.gaps[-1] is gap:
            self.counts[-1] += len(ranges) // 2
        else:
            self.gaps.append(gap)
            self.counts.append(len(ranges) // 2)
        self.ranges += ranges

    def blocks(self, size: int) -> list[int]:
        """Returns the number of blocks of `size` bytes before each range, and their total as the last
        item."""
        return list(accumulate([-(-length // size) for length in self.ranges[1::2]], initial=0))

    def fits(self, size: int) -> bool:
        """Returns whether one message may ask for all ranges."""
        return len(self.ranges) <= 2 * RANGES_PER_MESSAGE and (
            sum(self.ranges[1::2]) // size + len(self.ranges) // 2 <= BLOCKS_PER_MESSAGE
            or self.blocks(size)[-1] <= BLOCKS_PER_MESSAGE
        )

    def messages(self, size: int) -> list[UnmatchedRanges]:
        """Returns the ranges in portions that each fit into one message."""
        if self.fits(size):
            return [self]
        portions: list[UnmatchedRanges] = []
        short = self._cut(size * BLOCKS_PER_MESSAGE)
        blocks, ends = short.blocks(size), list(accumulate(short.counts))
        first, last = 0, len(blocks) - 1
        while first < last:
            stop = bisect_right(blocks, blocks[first] + BLOCKS_PER_MESSAGE) - 1
            stop = min(stop, first + RANGES_PER_MESSAGE, last)
            part = UnmatchedRanges()
            row = bisect_right(ends, first)
            at = first
            while at < stop:
                end = min(stop, ends[row])
                part.add(short.gaps[row], short.ranges[2 * at : 2 * end])
                at, row = end, row + 1
            portions.append(part)
            first = stop
        return portions

    def _cut(self, most: int) -> UnmatchedRanges:
        """Splits ranges longer than `most` bytes, the longest that one message may ask for."""
        if max(self.ranges[1::2]) <= most:
            return self
        short = UnmatchedRanges()
        numbers = iter(self.ranges)
        for gap, count in zip(self.gaps, self.counts, strict=True):
            for offset, length in islice(zip(numbers, numbers, strict=True), count):
                for at in range(0, length, most):
                    short.add(gap, array("Q", (offset + at, min(most, length - at))))
        return short
