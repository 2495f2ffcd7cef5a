"""Long unknown stretches of a file, such as a rebuilt library's code, and where a base has pieces of them.

Blocks are looked for everywhere first. What lies between two that were found is mostly where they say, but
for changed addresses: smaller blocks are then tried in few places, so that their fingerprints can be short.
"""

from __future__ import annotations

from array import array

from rdc.kernel.pieces import join_pieces, open_runs, place_blocks
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

__all__ = [
    "CODE_STEP",
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
library took 14.9, 12.6 and 22.0 MB in a trial with sizes of 512, 128 and 32 bytes; 16.4, 13.2 and 22.2 with
1,024, 128 and 32; and 14.6, 12.4 and 22.0 with 256, 64 and 32, whose first search takes twice as long. Where
targets are left out it is 7.4, 4.9 and 8.1 MB, 8.1, 4.7 and 7.9, and 7.7, 5.3 and 8.8."""

CODE_STEP = Step(64, 0, 4096)
"""Behind the first, where targets are left out: blocks are then found nearly to their ends. A third step made
1.5, 0 and 2.6 % less of those three, for a round trip and 3 to 10 % of the whole sync's time. A reach of 256
found little more, for fingerprints that have to be longer: of 14 packages of libraries it made 0.7 % more in
the mean (2.3 % more to 0.6 % less), and took 2 % of OpenCV's time. Blocks of 32 bytes made 0.9 % more, of 128
bytes 1.9 % (measured)."""

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

    def place(self, size: int, places: array[int]) -> None:
        """Takes where in the base the blocks of `size` bytes are, from the region's start on."""
        self.pieces = array("Q", place_blocks(self.offset, size, places))

    def add(self, found: array[int]) -> None:
        """Takes pieces, in order, that lie between those that are there."""
        self.pieces = array("Q", join_pieces(self.pieces, found))

    def runs(self, step: Step, most: int) -> array[int]:
        """The runs of unknown bytes to ask about next, as the kernel has them: `most`, or one more."""
        return array(
            "Q",
            open_runs(
                self.pieces,
                self.offset,
                self.end,
                self.before,
                self.behind,
                step.size,
                step.ends,
                FAR_BYTES,
                TAIL_BYTES,
                most,
            ),
        )


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
