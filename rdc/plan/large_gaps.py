"""Large gaps of a file, such as the code of a rebuilt library, and the matches found in a base.

The first step searches for blocks everywhere in the base. The content between two matches mostly lies between
them in the base too, except for changed addresses. Later steps try smaller blocks at few offsets, so short
fingerprints suffice.
"""

from __future__ import annotations

from array import array

from rdc.kernel import block_matches, join_matches, unmatched_runs
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

__all__ = [
    "CODE_STEP",
    "LARGE_GAP_BYTES",
    "RUNS_MAX",
    "SLICE_BYTES",
    "UNPLACED",
    "LargeGap",
    "Near",
    "Step",
    "Window",
    "ladder",
]

LARGE_GAP_BYTES = 256 << 10
"""A gap of at least this many bytes is a large gap. Edited source code has none."""

SLICE_BYTES = 128 << 20
"""Bytes of a large gap at most; longer ones are split. Each slice is searched for only near its expected
offset, so the total time stays linear in the file's size."""

RUNS_MAX = 1 << 18
"""Unmatched runs that one step asks about for one file, 32 bytes each: enough for 600 MB of libraries.
Further runs stay literals."""

UNPLACED = (1 << 64) - 1
"""Unknown offset in a base, as the kernel writes it."""

FAR_BYTES = 64 << 10
"""Two neighbours of an unmatched run contradict each other if their offsets differ from the run's length by
more than this. Then each predicts the offsets of one half of the run."""


@dataclass(frozen=True, slots=True)
class Window:
    """Bytes offset to offset + length of a base."""

    base: int
    offset: int
    length: int


@dataclass(frozen=True, slots=True)
class Step:
    """One question about a large gap."""

    size: int
    """Bytes of a block."""
    reach: int
    """Largest distance in bytes between a block and its expected offset. The first step searches everywhere
    instead."""
    ends: int
    """Bytes at either end of an unmatched run that the step asks about. Further inside hardly anything is
    found."""

    @property
    def everywhere(self) -> bool:
        """True for a step that searches for all blocks of a large gap without an expected offset."""
        return not self.ends


LARGE_GAP_LADDERS = (
    (),
    (Step(512, 0, 0),),
    (Step(512, 0, 0), Step(64, 256, 4096)),
    (Step(512, 0, 0), Step(128, 256, 8192), Step(32, 0, 512)),
)
"""The steps by number of available rounds.

Measured from one release of OpenCV, pyarrow and LibreOffice to the next, in MB for the largest library.
Blocks of 512, 128 and 32 bytes: 14.9, 12.6 and 22.0. Blocks of 1,024, 128 and 32: 16.4, 13.2 and 22.2. Blocks
of 256, 64 and 32: 14.6, 12.4 and 22.0, with a first search that takes twice as long. With masked x86
displacements the figures are 7.4, 4.9 and 8.1; 8.1, 4.7 and 7.9; and 7.7, 5.3 and 8.8.
"""

CODE_STEP = Step(64, 0, 4096)
"""The second step where x86 displacements are masked; blocks then match nearly up to the ends of their runs.

Measured on the three libraries above: a third step saved 1.5, 0 and 2.6 %, for one round trip and 3 to 10 %
of the time of the whole sync. Measured on 14 packages of libraries: a reach of 256 found little more and
needs longer fingerprints. It sent 0.7 % more on average (2.3 % more to 0.6 % less) and took 2 % of the time
for OpenCV. Blocks of 32 bytes sent 0.9 % more, blocks of 128 bytes 1.9 %.
"""

TAIL_BYTES = 16
"""A tail of an unmatched run shorter than this costs less as a literal than as a fingerprint."""


def ladder(rounds: int) -> tuple[Step, ...]:
    """Returns the steps for this many round trips."""
    return LARGE_GAP_LADDERS[max(0, min(rounds, len(LARGE_GAP_LADDERS) - 1))]


Near: TypeAlias = "Callable[[int, Step, int, array[int], bytes], array[int]]"
"""(base, step, width, unmatched runs, fingerprints) -> matches; rows as in the kernel's `match_runs`."""


class LargeGap:
    """`length` bytes of a file from `offset` on that were not matched yet.

    The content before the gap continues in the base at `before`. The content after it begins there at
    `behind`. Either may be UNPLACED.
    """

    __slots__ = ("base", "before", "behind", "end", "matches", "offset", "windows")

    def __init__(
        self, offset: int, length: int, windows: tuple[Window, ...], before: int, behind: int
    ) -> None:
        self.offset = offset
        self.end = offset + length
        self.windows = windows
        """Where the first step searches for the blocks. All windows are of one base."""
        self.base = windows[0].base
        self.before = before
        self.behind = behind
        self.matches = array("Q")
        """Matches in order: offset in the file, offset in the base, length."""

    def take_offsets(self, size: int, base_offsets: array[int]) -> None:
        """Takes the offsets in the base of the gap's blocks of `size` bytes, from the start of the gap on."""
        self.matches = array("Q", block_matches(self.offset, size, base_offsets))

    def add(self, found: array[int]) -> None:
        """Takes matches, in order, that lie between the present ones."""
        self.matches = array("Q", join_matches(self.matches, found))

    def runs(self, step: Step, most: int) -> array[int]:
        """Returns the unmatched runs to ask about next as the kernel's rows: at most `most` + 1."""
        return array(
            "Q",
            unmatched_runs(
                self.matches,
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
) -> tuple[LargeGap, ...]:
    """Splits a gap into large gaps of at most SLICE_BYTES. If there are several, each gets its own window
    around its expected offset in the base."""
    if end - offset <= SLICE_BYTES:
        return (LargeGap(offset, end - offset, windows, before, behind),)
    large_gaps = []
    for at in range(offset, end, SLICE_BYTES):
        take = min(SLICE_BYTES, end - at)
        start = max(0, min(before + at - offset, base_size) - SLICE_BYTES // 2)
        window = Window(windows[0].base, start, min(base_size - start, take + SLICE_BYTES))
        ahead = before if at == offset else UNPLACED
        back = behind if at + take == end else UNPLACED
        large_gaps.append(LargeGap(at, take, (window,), ahead, back))
    return tuple(large_gaps)
