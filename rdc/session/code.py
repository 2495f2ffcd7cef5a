"""Machine code among the ranges of a file: it travels with absolute targets, which compress better."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

from rdc.kernel import absolute_targets, relative_targets

__all__ = ["SAMPLED_BYTES", "Places", "has_code", "restored", "sample_of"]

TARGETS_ONE_IN = 200
"""Bytes for each target rewritten, at most, in what is sent as code: half a megabyte has one in 20 to 60 then
and compresses a fifth better; tables of other numbers have one in 300 or more and grow by 2 to 10 % (measured
on libraries of OpenCV, Arrow and LibreOffice)."""


SAMPLED_BYTES = 64 << 10
"""Content from which on a sample is looked at first: what is plainly something else, as most is, costs an
eighth then."""

SAMPLES = 8
SAMPLED_ONE_IN = 8

PLAINLY = 3
"""Times fewer targets than TARGETS_ONE_IN has, of which no look at the rest makes enough."""


class Places:
    """Where in a file lies what goes by of its ranges, which come one behind the other in messages of any
    length. 24 bytes a range."""

    def __init__(self, ranges: array[int]) -> None:
        """`ranges`: offset and length by turns, in bytes."""
        self._ranges = ranges
        self._ends = array("Q", accumulate(ranges[1::2]))
        self._at = 0

    def skip(self, size: int) -> None:
        """So many bytes go by."""
        self._at += size

    def take(self, size: int) -> array[int]:
        """So many bytes go by, at least one and no more than there are: offset and length of each piece."""
        start, stop = self._at, self._at + size
        first, last = bisect_right(self._ends, start), bisect_left(self._ends, stop)
        pieces = self._ranges[2 * first : 2 * last + 2]
        seen = start + pieces[1] - self._ends[first]
        pieces[0] += seen
        pieces[1] -= seen
        pieces[-1] -= self._ends[last] - stop
        self._at = stop
        return pieces


def has_code(content: bytearray, places: array[int]) -> bool:
    """Gives `content`, which is at these `places` of a file, absolute targets if that pays, or leaves it."""
    if len(content) >= SAMPLED_BYTES:
        sample, where = sample_of(content, places)
        if absolute_targets(sample, where) * TARGETS_ONE_IN * PLAINLY < len(sample):
            return False
    if absolute_targets(content, places) * TARGETS_ONE_IN >= len(content):
        return True
    relative_targets(content, places)
    return False


def sample_of(content: bytearray, places: array[int]) -> tuple[bytearray, array[int]]:
    """Parts of it, as far from each other, one behind the other, and where they are."""
    step = len(content) // SAMPLES
    size = step // SAMPLED_ONE_IN
    passing = Places(places)
    sample, where = bytearray(), array("Q")
    for at in range(0, SAMPLES * step, step):
        sample += content[at : at + size]
        where += passing.take(size)
        passing.skip(step - size)
    return sample, where


def restored(payload: bytes | bytearray | memoryview, places: array[int]) -> bytearray:
    """What has_code() made this of."""
    content = bytearray(payload)
    relative_targets(content, places)
    return content
