"""The questions about a file's regions, and what becomes of the answers."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate

from rdc.kernel.pieces import fill_places
from rdc.limits import BLOCKS_PER_MESSAGE, RANGES_PER_MESSAGE
from rdc.plan.questions import WRONG_COST, Ask, fingerprint_width
from rdc.plan.regions import CODE_STEP, RUNS_MOST, ladder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    from rdc.plan.questions import Find
    from rdc.plan.regions import Near, Region, Step

__all__ = ["RegionQuestion", "RegionSearch"]


class _Everywhere:
    """A part of a region, whose blocks are looked for once those of all parts are there."""

    __slots__ = ("ask", "fingerprints", "last", "region")

    def __init__(self, ask: Ask, region: Region, fingerprints: bytearray, last: bool) -> None:
        self.ask = ask
        self.region = region
        self.fingerprints = fingerprints
        self.last = last

    def take(self, fingerprints: bytes, find: Find, _near: Near) -> None:
        self.fingerprints += fingerprints
        if self.last:
            _look_everywhere(self.region, self.ask, bytes(self.fingerprints), find)
            self.fingerprints.clear()


class _Nearby:
    """Runs of a region."""

    __slots__ = ("ask", "region", "runs", "step")

    def __init__(self, ask: Ask, region: Region, runs: array[int], step: Step) -> None:
        self.ask = ask
        self.region = region
        self.runs = runs
        self.step = step

    def take(self, fingerprints: bytes, _find: Find, near: Near) -> None:
        found = near(self.region.base, self.step, self.ask.width, self.runs, fingerprints)
        self.region.add(found)


RegionQuestion: TypeAlias = _Everywhere | _Nearby


class RegionSearch:
    """All regions of one file, one step of the ladder after the other."""

    def __init__(self, rounds: int) -> None:
        self._steps = ladder(rounds)
        self.regions: list[Region] = []

    def leave_targets_out(self) -> None:
        """What is looked for, from the step on whose questions were the last, is machine code without its
        targets."""
        self._steps = (CODE_STEP,) if self._steps else ()

    def questions(self) -> Iterator[RegionQuestion]:
        """Those of the next step."""
        if not self._steps:
            return
        step, *later = self._steps
        self._steps = tuple(later)
        left = RUNS_MOST
        for region in self.regions:
            if step.everywhere:
                yield from _everywhere(region, step)
            else:
                runs = region.runs(step, left)
                left -= len(runs) // 4
                yield from _nearby(region, runs, step)


def _everywhere(region: Region, step: Step) -> Iterator[_Everywhere]:
    blocks = (region.end - region.offset) // step.size
    width = fingerprint_width(sum(window.length for window in region.windows), WRONG_COST)
    fingerprints = bytearray()
    for first in range(0, blocks, BLOCKS_PER_MESSAGE):
        count = min(BLOCKS_PER_MESSAGE, blocks - first)
        part = array("Q", (region.offset + first * step.size, count * step.size))
        yield _Everywhere(Ask(part, step.size, width), region, fingerprints, first + count == blocks)


def _look_everywhere(region: Region, ask: Ask, fingerprints: bytes, find: Find) -> None:
    """What the first window has is taken from there."""
    places = array("Q")
    for window in region.windows:
        if window.length < ask.size:
            continue
        more = array("Q", find(window, ask.size, ask.width, fingerprints))
        places = array("Q", fill_places(places, more, 0)) if places else more
    region.place(ask.size, places)


def _nearby(region: Region, runs: array[int], step: Step) -> Iterator[_Nearby]:
    """Questions about runs, as many in each as a message may have."""
    width = fingerprint_width(2 * (2 * step.reach + 1), WRONG_COST)
    offsets, lengths = runs[0::4], runs[1::4]
    blocks = array("Q", accumulate((-(-length // step.size) for length in lengths), initial=0))
    first = 0
    while first < len(offsets):
        stop = min(bisect_right(blocks, blocks[first] + BLOCKS_PER_MESSAGE) - 1, first + RANGES_PER_MESSAGE)
        stop = min(max(stop, first + 1), len(offsets))
        ranges = array("Q", bytes(16 * (stop - first)))
        ranges[0::2], ranges[1::2] = offsets[first:stop], lengths[first:stop]
        yield _Nearby(Ask(ranges, step.size, width), region, runs[4 * first : 4 * stop], step)
        first = stop
