"""The questions about a file's large gaps, and how answers are applied."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate

from rdc.kernel import fill_offsets
from rdc.limits.wire import BLOCKS_PER_MESSAGE, RANGES_PER_MESSAGE
from rdc.plan.block_requests import WRONG_COST, BlockQuestion, fingerprint_width
from rdc.plan.large_gaps import CODE_STEP, RUNS_MAX, ladder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from rdc.plan.block_requests import Find
    from rdc.plan.large_gaps import LargeGap, Near, Step

__all__ = ["LargeGapQuestion", "LargeGapSearch"]


class _Everywhere:
    """A question about some blocks of a large gap. The search starts when the fingerprints of all blocks are
    there."""

    __slots__ = ("fingerprints", "large_gap", "last", "request")

    def __init__(
        self, request: BlockQuestion, large_gap: LargeGap, fingerprints: bytearray, last: bool
    ) -> None:
        self.request = request
        self.large_gap = large_gap
        self.fingerprints = fingerprints
        self.last = last

    def take(self, fingerprints: bytes, find: Find, _near: Near) -> None:
        self.fingerprints += fingerprints
        if self.last:
            _look_everywhere(self.large_gap, self.request, bytes(self.fingerprints), find)
            self.fingerprints.clear()


class _Nearby:
    """A question about unmatched runs of a large gap."""

    __slots__ = ("large_gap", "request", "runs", "step")

    def __init__(self, request: BlockQuestion, large_gap: LargeGap, runs: array[int], step: Step) -> None:
        self.request = request
        self.large_gap = large_gap
        self.runs = runs
        self.step = step

    def take(self, fingerprints: bytes, _find: Find, near: Near) -> None:
        found = near(self.large_gap.base, self.step, self.request.width, self.runs, fingerprints)
        self.large_gap.add(found)


LargeGapQuestion: TypeAlias = _Everywhere | _Nearby


class LargeGapSearch:
    """Asks about all large gaps of one file, one step of the ladder after another."""

    def __init__(self, rounds: int) -> None:
        self._steps = ladder(rounds)
        self.large_gaps: list[LargeGap] = []

    def mask_displacements(self) -> None:
        """From the last asked step on, the search masks x86 displacements. One more step follows, if there
        was one."""
        self._steps = (CODE_STEP,) if self._steps else ()

    def questions(self) -> Iterator[LargeGapQuestion]:
        """Yields the questions of the next step."""
        if not self._steps:
            return
        step, *later = self._steps
        self._steps = tuple(later)
        left = RUNS_MAX
        for large_gap in self.large_gaps:
            if step.everywhere:
                yield from _everywhere(large_gap, step)
            else:
                runs = large_gap.runs(step, left)
                left -= len(runs) // 4
                yield from _nearby(large_gap, runs, step)


def _everywhere(large_gap: LargeGap, step: Step) -> Iterator[_Everywhere]:
    blocks = (large_gap.end - large_gap.offset) // step.size
    width = fingerprint_width(sum(window.length for window in large_gap.windows), WRONG_COST)
    fingerprints = bytearray()
    for first in range(0, blocks, BLOCKS_PER_MESSAGE):
        count = min(BLOCKS_PER_MESSAGE, blocks - first)
        part = array("Q", (large_gap.offset + first * step.size, count * step.size))
        yield _Everywhere(
            BlockQuestion(part, step.size, width), large_gap, fingerprints, first + count == blocks
        )


def _look_everywhere(large_gap: LargeGap, request: BlockQuestion, fingerprints: bytes, find: Find) -> None:
    """Searches all windows. The first window that has a block wins."""
    base_offsets = array("Q")
    for window in large_gap.windows:
        if window.length < request.size:
            continue
        more = array("Q", find(window, request.size, request.width, fingerprints))
        base_offsets = array("Q", fill_offsets(base_offsets, more, 0)) if base_offsets else more
    large_gap.take_offsets(request.size, base_offsets)


def _nearby(large_gap: LargeGap, runs: array[int], step: Step) -> Iterator[_Nearby]:
    """Yields questions about unmatched runs, each with as many runs as one message may have."""
    width = fingerprint_width(2 * (2 * step.reach + 1), WRONG_COST)
    offsets, lengths = runs[0::4], runs[1::4]
    blocks = array("Q", accumulate((-(-length // step.size) for length in lengths), initial=0))
    first = 0
    while first < len(offsets):
        stop = min(bisect_right(blocks, blocks[first] + BLOCKS_PER_MESSAGE) - 1, first + RANGES_PER_MESSAGE)
        stop = min(max(stop, first + 1), len(offsets))
        ranges = array("Q", bytes(16 * (stop - first)))
        ranges[0::2], ranges[1::2] = offsets[first:stop], lengths[first:stop]
        yield _Nearby(BlockQuestion(ranges, step.size, width), large_gap, runs[4 * first : 4 * stop], step)
        first = stop
