"""Offsets in a file for bytes of requested ranges, which travel back to back in messages of any length."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

__all__ = ["SAMPLED_BYTES", "RangeOffsets", "sample_of"]

SAMPLED_BYTES = 64 << 10
"""Filters sample content of at least this many bytes before they try all of it. Most content matches no
filter; rejecting it by a sample costs an eighth."""

SAMPLES = 8
SAMPLED_ONE_IN = 8


class RangeOffsets:
    """Position in a list of ranges. Takes 24 bytes of memory per range."""

    def __init__(self, ranges: array[int]) -> None:
        """`ranges`: rows (offset, length), in bytes."""
        self._ranges = ranges
        self._ends = array("Q", accumulate(ranges[1::2]))
        self._at = 0

    def skip(self, size: int) -> None:
        """Advances by `size` bytes."""
        self._at += size

    def take(self, size: int) -> array[int]:
        """Advances by `size` bytes and returns their rows (offset, length).

        `size` is at least 1 and at most what is left.
        """
        start, stop = self._at, self._at + size
        first, last = bisect_right(self._ends, start), bisect_left(self._ends, stop)
        rows = self._ranges[2 * first : 2 * last + 2]
        taken = start + rows[1] - self._ends[first]
        rows[0] += taken
        rows[1] -= taken
        rows[-1] -= self._ends[last] - stop
        self._at = stop
        return rows


def sample_of(content: bytearray, offsets: array[int]) -> tuple[bytearray, array[int]]:
    """Returns SAMPLES evenly spaced parts of `content` in one piece, and their rows (offset, length)."""
    step = len(content) // SAMPLES
    size = step // SAMPLED_ONE_IN
    position = RangeOffsets(offsets)
    sample, rows = bytearray(), array("Q")
    for at in range(0, SAMPLES * step, step):
        sample += content[at : at + size]
        rows += position.take(size)
        position.skip(step - size)
    return sample, rows
