"""Long unknown stretches of a file, such as a rebuilt library's code, and where a base has pieces of them.

Blocks are looked for everywhere first. What lies between two that were found is mostly where they say, but
for changed addresses: smaller blocks are then tried in few places, so that their fingerprints can be short.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, TypeAlias

from rdc.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = [
    "REGION_BYTES",
    "RUNS_MOST",
    "SLICE_BYTES",
    "UNPLACED",
    "Near",
    "Region",
    "Step",
    "Window",
    "ladder",
]

REGION_BYTES = 256 << 10
"""Bytes of a gap from which on it is a region. Source code that was edited has no such gaps."""

SLICE_BYTES = 128 << 20
"""Bytes of a region at most: its surroundings in the base are looked through for it, in time that is linear
in a file's size."""

RUNS_MOST = 1 << 18
"""Runs that one file's next step asks about, 32 bytes each: those of 600 MB of libraries. Others stay
literals."""

UNPLACED = (1 << 64) - 1
"""Place in a base that is not known, as the kernel says it."""

FAR_BYTES = 64 << 10
"""Two neighbours whose places are by so much further apart than the run between them is long are not of one
mind: each is believed for its half of the run."""


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes offset to offset + length of a base."""

    base: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Step:
    """One question about a region."""

    size: int
    """Bytes of a block."""
    reach: int
    """Bytes by which a block may be away from where its neighbours say; the first step looks everywhere."""
    ends: int
    """Bytes at either end of a run that are asked about: further away hardly anything is found."""

    @property
    def everywhere(self) -> bool:
        """It asks about a region's blocks, without knowing where they may be."""
        return not self.ends


LADDERS = (
    (),
    (Step(512, 0, 0),),
    (Step(512, 0, 0), Step(64, 256, 4096)),
    (Step(512, 0, 0), Step(128, 256, 8192), Step(32, 0, 512)),
)
"""By the rounds there are. From one release of OpenCV, pyarrow and LibreOffice to the next the largest
library takes 14.9, 12.6 and 22.0 MB with these three, 16.4, 13.2 and 22.2 with 1024, 128 and 32 bytes."""

TAIL_BYTES = 16
"""A rest of a run that is shorter than this costs less as it is than as a fingerprint."""


def ladder(rounds: int) -> tuple[Step, ...]:
    """The steps for so many round trips."""
    return LADDERS[max(0, min(rounds, len(LADDERS) - 1))]


Near: TypeAlias = "Callable[[int, Step, int, array[int], bytes], array[int]]"
"""(base, step, width, runs, fingerprints) -> pieces, both as the kernel's `match_runs` has them."""


class Region:
    """`length` bytes of a file from `offset` on. What precedes it goes on in the base at `before`, what
    follows it begins there at `behind`; either may be UNPLACED."""

    __slots__ = ("base", "before", "behind", "end", "offset", "pieces", "windows")

    def __init__(
        self, offset: int, length: int, windows: tuple[Window, ...], before: int, behind: int
    ) -> None:
        self.offset = offset
        self.end = offset + length
        self.windows = windows
        """Where its blocks are looked for first; all are of one base."""
        self.base = windows[0].base
        self.before = before
        self.behind = behind
        self.pieces = array("Q")
        """Of what was found, in order: offset in the file, place in the base, length."""

    def place(self, size: int, places: Sequence[int]) -> None:
        """Takes where in the base the blocks of `size` bytes are, from the region's start on."""
        pieces = self.pieces
        go_on = UNPLACED
        at = self.offset
        for place in places:
            if place == go_on != UNPLACED:
                pieces[-1] += size
                go_on += size
            elif place == UNPLACED:
                go_on = UNPLACED
            else:
                pieces.extend((at, place, size))
                go_on = place + size
            at += size

    def add(self, found: array[int]) -> None:
        """Takes pieces that lie between those that are there."""
        if not found:
            return
        rows = [*_rows(self.pieces), *_rows(found)]
        rows.sort()
        joined = array("Q")
        end = go_on = -1
        for offset, place, length in rows:
            if offset == end and place == go_on:
                joined[-1] += length
            else:
                joined.extend((offset, place, length))
            end, go_on = offset + length, place + length
        self.pieces = joined

    def runs(self, step: Step, most: int) -> array[int]:
        """The runs of unknown bytes to ask about next, as the kernel has them: `most`, or one more."""
        found = array("Q")
        at, place = self.offset, self.before
        for offset, begin, length in (*_rows(self.pieces), (self.end, self.behind, 0)):
            if offset - at >= TAIL_BYTES:
                if len(found) >= 4 * most:
                    break
                _open(found, at, offset, place, begin, step)
            at, place = offset + length, begin + length
        return found


def sliced(
    offset: int, end: int, windows: tuple[Window, ...], before: int, behind: int, base_size: int
) -> tuple[Region, ...]:
    """A gap as regions; each of several has a window of its own, about where it would be in the base."""
    if end - offset <= SLICE_BYTES:
        return (Region(offset, end - offset, windows, before, behind),)
    regions = []
    for at in range(offset, end, SLICE_BYTES):
        take = min(SLICE_BYTES, end - at)
        start = max(0, min(before + at - offset, base_size) - SLICE_BYTES // 2)
        window = Window(windows[0].base, start, min(base_size - start, take + SLICE_BYTES))
        ahead = before if at == offset else UNPLACED
        back = behind if at + take == end else UNPLACED
        regions.append(Region(at, take, (window,), ahead, back))
    return tuple(regions)


def _rows(pieces: array[int]) -> Iterator[tuple[int, int, int]]:
    numbers = iter(pieces)
    return zip(numbers, numbers, numbers, strict=True)


def _open(found: array[int], start: int, end: int, before: int, behind: int, step: Step) -> None:
    """The parts of one run that are worth asking about."""
    length = end - start
    if UNPLACED in (before, behind) or abs(behind - before - length) <= FAR_BYTES:
        if length <= 2 * step.ends:
            parts = [(start, end, before, behind)]
        else:
            head, tail = start + step.ends, end - step.ends
            parts = [
                (start, head, before, _less(behind, end - head)),
                (tail, end, UNPLACED if before == UNPLACED else before + tail - start, behind),
            ]
            parts = [part for part, known in zip(parts, (before, behind), strict=True) if known != UNPLACED]
    else:
        reach = min(step.ends, length // 2)
        parts = [(start, start + reach, before, UNPLACED), (end - reach, end, UNPLACED, behind)]
    for begin, stop, ahead, back in parts:
        rest = (stop - begin) % step.size
        cut = rest if rest < TAIL_BYTES else 0
        row = (begin, stop - cut - begin, ahead, _less(back, cut))
        if row[1] > 0 and row[2:] != (UNPLACED, UNPLACED):
            found.extend(row)


def _less(place: int, length: int) -> int:
    """So many bytes before a place, if that is in the base."""
    return place - length if UNPLACED != place >= length else UNPLACED
