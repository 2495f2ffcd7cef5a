"""The search below the chunk: which blocks of unmatched chunks to ask for, and which of them a base has.

A gap is a maximal run of unmatched chunks. The search looks in a window of the base, between the matches on
either side of the gap. Matching blocks become copies. Smaller blocks are asked for between them. Large gaps
have steps of their own.

Matches are not certain. Every chunk that contains matched blocks is compared with its reference later.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from itertools import accumulate, chain, islice, repeat
from operator import attrgetter, floordiv, mul, sub

from rdc.kernel import (
    INSTRUCTION_BYTES,
    block_matches,
    fill_offsets,
    instructions_of_ranges,
    join_matches,
    unmatched_runs,
)
from rdc.lean.records import Record
from rdc.limits import BLOCKS_PER_MESSAGE, RANGES_PER_MESSAGE
from rdc.plan.descent import ByteRange, ChunkRecipe, Fetch, Part, Patch, Repeat, Reuse, ReuseChunk
from rdc.signature.tree import chunk_offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import TypeAlias

    from rdc.plan.bundle import BundleLayout
    from rdc.signature.tree import SignatureTree


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


class BlockQuestion(Record):
    """A request for fingerprints, of `width` bytes each, of the blocks of `size` bytes in some ranges. The
    last block of a range may be shorter."""

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
    """Return the bytes per fingerprint if each is compared with `candidates` offsets and a false match costs
    `cost` bytes.

    With w bytes per block, n blocks cost n w for the fingerprints. False matches of absent blocks add n
    candidates cost / 256^w. One more byte costs n and removes nearly all of the second term. It pays until
    candidates cost <= 256^w, whatever n is.
    """
    return min(MOST_WIDTH, max(LEAST_WIDTH, -(-(candidates * cost - 1).bit_length() // 8)))


# Large gaps of a file, such as the code of a rebuilt library, and the matches found in a base.
#
# The first step searches for blocks everywhere in the base. The content between two matches mostly lies
# between them in the base too, except for changed addresses. Later steps try smaller blocks at few offsets,
# so short fingerprints suffice.

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


class Window(Record):
    """Bytes offset to offset + length of a base."""

    base: int
    offset: int
    length: int


class Step(Record):
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


LARGE_GAP_LADDERS: tuple[tuple[Step, ...], ...] = (
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
        """The windows in which the first step searches for the blocks. All are of one base."""
        self.base = windows[0].base
        self.before = before
        self.behind = behind
        self.matches = array("Q")
        """Matches in order: offset in the file, offset in the base, length."""

    def take_offsets(self, size: int, base_offsets: array[int]) -> None:
        """Take the offsets in the base of the gap's blocks of `size` bytes, from the start of the gap on."""
        self.matches = array("Q", block_matches(self.offset, size, base_offsets))

    def add(self, found: array[int]) -> None:
        """Take matches, in order, that lie between the present ones."""
        self.matches = array("Q", join_matches(self.matches, found))

    def runs(self, step: Step, most: int) -> array[int]:
        """Return the unmatched runs to ask about next as the kernel's rows: at most `most` + 1."""
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
    """Split a gap into large gaps of at most SLICE_BYTES. If there are several, each gets its own window
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


# The gaps of a file after a descent, and the windows of a base to search for their blocks.
#
# A gap is a maximal run of unmatched chunks. Its window is what the base has between the gap's matched
# neighbours.

MARGIN = 4 << 10
"""Bytes by which a window extends past the matched neighbours."""

WINDOW_BYTES = 8 << 20
"""Bytes of the largest window that is read at once. A gap below the limit of large gaps needs an eighth."""


class Gap:
    """`length` unmatched bytes of a file from `offset` on, with windows of one base.

    The content before the gap continues in the base at `before`. The content after it begins there at
    `behind`. Either may be UNPLACED.
    """

    __slots__ = (
        "base",
        "before",
        "behind",
        "end",
        "is_plain",
        "large_gaps",
        "matches",
        "offset",
        "window_bytes",
        "windows",
    )

    def __init__(
        self, offset: int, length: int, windows: tuple[Window, ...], before: int, behind: int
    ) -> None:
        self.offset = offset
        self.end = offset + length
        self.windows = windows
        self.base = windows[0].base if windows else 0
        self.window_bytes = sum(map(attrgetter("length"), windows))
        """Bytes of all windows."""
        self.is_plain = len(windows) == 1 and self.window_bytes <= WINDOW_BYTES
        """True if it has one window, which can be read at once."""
        self.before = before
        self.behind = behind
        self.matches = array("Q")
        """Matches in order: offset in the file, offset in the base, length."""
        self.large_gaps: tuple[LargeGap, ...] = ()


def gaps_of(parts: Sequence[Part], bases: Sequence[SignatureTree]) -> Iterator[Gap]:
    """Yield the gaps of `parts` in file order."""
    if not bases:
        return
    offsets = list(map(chunk_offsets, bases))
    before = (0, 0)
    unmatched: ByteRange | None = None
    ended: list[tuple[int, Part | None]] = [*first_parts(parts, 0), (0, None)]
    for at, part in ended:
        first = last = 0
        if isinstance(part, Fetch):
            if unmatched is not None and unmatched.offset + unmatched.length == at:
                unmatched = ByteRange(unmatched.offset, unmatched.length + part.length)
                continue
        elif isinstance(part, Reuse | ReuseChunk):
            first, last = (part.first, part.stop) if isinstance(part, Reuse) else (part.row, part.row + 1)
        elif part is not None:
            continue
        if unmatched is not None:
            base, start = before
            stop, behind = bases[base].size, UNPLACED
            if isinstance(part, Reuse | ReuseChunk) and part.base == base:
                stop = behind = offsets[base][first]
            yield gap_within(unmatched, base, (start, stop), (0, bases[base].size), (start, behind))
            unmatched = None
        if isinstance(part, Fetch):
            unmatched = ByteRange(at, part.length)
        elif part is not None:
            before = (part.base, offsets[part.base][last])


def gap_within(
    unmatched: ByteRange,
    base: int,
    between: tuple[int, int],
    bounds: tuple[int, int],
    around: tuple[int, int],
) -> Gap:
    """Return the gap `unmatched` with windows in a base around the offsets `between`, limited to `bounds`.

    `around`: its `before` and `behind`. Windows are linear in the length of the gap, so no recipe can make
    the search of a file long.
    """
    start, stop = max(bounds[0], between[0] - MARGIN), min(bounds[1], between[1] + MARGIN)
    most = 4 * unmatched.length + 8 * MARGIN
    if start < stop <= start + most:
        return Gap(unmatched.offset, unmatched.length, (Window(base, start, stop - start),), *around)
    # The neighbours are too far apart or out of order: search near each of them.
    windows = []
    for begin in (start, max(bounds[0], stop - most // 2)):
        length = min(most // 2, bounds[1] - begin)
        if length > 0:
            windows.append(Window(base, begin, length))
    return Gap(unmatched.offset, unmatched.length, tuple(windows), *around)


def first_parts(parts: Sequence[Part], offset: int) -> list[tuple[int, Part]]:
    """Return the parts with their offsets in the file. Repeated parts come once, at their first
    occurrence."""
    found: list[tuple[int, Part]] = []
    for part in parts:
        if isinstance(part, Repeat):
            found += first_parts(part.parts, offset)
        else:
            found.append((offset, part))
        offset += part.length * part.count
    return found


class UnmatchedRanges:
    """Ranges of several gaps in file order.

    Gap i of `gaps` has `counts[i]` ranges. `ranges` has two numbers per range: offset in the file and length.
    """

    __slots__ = ("counts", "gaps", "ranges")

    def __init__(self) -> None:
        self.gaps: list[Gap] = []
        self.counts: list[int] = []
        self.ranges: array[int] = array("Q")

    def add(self, gap: Gap, ranges: array[int] | None = None) -> None:
        """Append ranges of `gap`, which lie after all ranges added before. None: the whole gap."""
        if ranges is None:
            ranges = array("Q", (gap.offset, gap.end - gap.offset))
        if not ranges:
            return
        if self.gaps and self.gaps[-1] is gap:
            self.counts[-1] += len(ranges) // 2
        else:
            self.gaps.append(gap)
            self.counts.append(len(ranges) // 2)
        self.ranges += ranges

    def blocks(self, size: int) -> list[int]:
        """Return the number of blocks of `size` bytes before each range, and their total as the last
        item."""
        # A last block may be shorter: lengths are rounded up.
        rounded = map((size - 1).__add__, self.ranges[1::2])
        return list(accumulate(map(floordiv, rounded, repeat(size)), initial=0))

    def fits(self, size: int) -> bool:
        """Return whether one message may ask for all ranges."""
        return len(self.ranges) <= 2 * RANGES_PER_MESSAGE and (
            sum(self.ranges[1::2]) // size + len(self.ranges) // 2 <= BLOCKS_PER_MESSAGE
            or self.blocks(size)[-1] <= BLOCKS_PER_MESSAGE
        )

    def messages(self, size: int) -> list[UnmatchedRanges]:
        """Return the ranges in portions that each fit into one message."""
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
        """Split ranges longer than `most` bytes, the longest that one message may ask for."""
        if max(self.ranges[1::2]) <= most:
            return self
        short = UnmatchedRanges()
        numbers = iter(self.ranges)
        for gap, count in zip(self.gaps, self.counts, strict=True):
            for offset, length in islice(zip(numbers, numbers, strict=True), count):
                for at in range(0, length, most):
                    short.add(gap, array("Q", (offset + at, min(most, length - at))))
        return short


class _Everywhere(Record, frozen=False):
    """A question about some blocks of a large gap. The search starts when the fingerprints of all blocks are
    there."""

    request: BlockQuestion
    large_gap: LargeGap
    fingerprints: bytearray
    last: bool

    def take(self, fingerprints: bytes, find: Find, _near: Near) -> None:
        self.fingerprints += fingerprints
        if self.last:
            _look_everywhere(self.large_gap, self.request, bytes(self.fingerprints), find)
            self.fingerprints.clear()


class _Nearby(Record, frozen=False):
    """A question about unmatched runs of a large gap."""

    request: BlockQuestion
    large_gap: LargeGap
    runs: array[int]
    step: Step

    def take(self, fingerprints: bytes, _find: Find, near: Near) -> None:
        found = near(self.large_gap.base, self.step, self.request.width, self.runs, fingerprints)
        self.large_gap.add(found)


LargeGapQuestion: TypeAlias = _Everywhere | _Nearby


class LargeGapSearch:
    """A search that asks about all large gaps of one file, one step of the ladder after another."""

    def __init__(self, rounds: int) -> None:
        self._steps = LARGE_GAP_LADDERS[max(0, min(rounds, len(LARGE_GAP_LADDERS) - 1))]
        self.large_gaps: list[LargeGap] = []

    def mask_displacements(self) -> None:
        """Mask x86 displacements from the last asked step on. One more step follows, if there was one."""
        self._steps = (CODE_STEP,) if self._steps else ()

    def questions(self) -> Iterator[LargeGapQuestion]:
        """Yield the questions of the next step."""
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
    """Search all windows. The first window that has a block wins."""
    base_offsets = array("Q")
    for window in large_gap.windows:
        if window.length < request.size:
            continue
        more = array("Q", find(window, request.size, request.width, fingerprints))
        base_offsets = array("Q", fill_offsets(base_offsets, more, 0)) if base_offsets else more
    large_gap.take_offsets(request.size, base_offsets)


def _nearby(large_gap: LargeGap, runs: array[int], step: Step) -> Iterator[_Nearby]:
    """Yield questions about unmatched runs, each with as many runs as one message may have."""
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


# The search below the chunk: which blocks of unmatched chunks to ask for, and which of them a base has.
#
# A gap is a maximal run of unmatched chunks. The search looks in a window of the base, between the matches on
# either side of the gap. Matching blocks become copies. Smaller blocks are asked for between them. Large gaps
# have steps of their own.
#
# Matches are not certain. Every chunk that contains matched blocks is compared with its reference later.

LADDERS = ((), (128,), (1024, 128))
"""Block sizes in bytes by number of available rounds, from the first question about a long gap on.

Each size takes one round trip and asks about what the size before did not find. Measured from one release to
the next, in bytes of the whole session: Django 21,877 with these two and 21,356 with a third (1,024, 256 and
64), of two other releases 64,612 and 63,928, TypeScript 9,058 and 9,039, numpy 11,814 and 11,817. With 1,024
and 64: 22,631, 68,424, 9,536 and 12,352. Blocks of 128 alone cost 31,866, 89,568, 15,046 and 14,454.
"""

FURTHER = ((), (128,))
"""Further block sizes, where fingerprints of a first size came with the file's tree."""

ONE_SIZES = (128, 256, 384)
"""Block sizes in bytes of a search that takes one round trip.

Measured on two updates of TypeScript, in bytes of the whole session: 12,486 and 15,055 with blocks of 128,
10,140 and 11,943 with 256, 9,555 and 10,934 with 384, 9,593 and 10,983 with 512. Two sizes take 8,187 and
9,067, and one round trip more.
"""

SPARE_BYTES = 3 << 10
"""Bytes that the searches of all files of a session may cost more to save a round trip: 2.5 ms of a line of
10 Mbit/s."""

PRINT_BYTES = 3
"""Bytes of most fingerprints."""

EDIT_SPACING = 24 << 10
"""Bytes of a gap for each edit in it beyond the first."""

LITERAL_SHARE = 0.25
"""Bytes sent for a byte of literals, which are compressed with what is around them."""


def expected_bytes(unknown: int, gaps: int, sizes: Sequence[int]) -> float:
    """Return the bytes that a search is expected to cost: fingerprints, and literals in the end.

    `unknown`: bytes of all `gaps` gaps. `sizes`: of the blocks, one after the other. Every edit leaves one
    block of each size unfound.
    """
    edits = gaps + unknown / EDIT_SPACING
    cost, left = 0.0, float(unknown)
    for size in sizes:
        cost += PRINT_BYTES * left / size
        left = min(left, edits * size)
    return cost + LITERAL_SHARE * left


class Sizes(Record):
    """The block sizes of a search, and the bytes that they cost beyond the cheapest ones."""

    sizes: tuple[int, ...]
    spent: float = 0.0


def sizes_for(unknown: int, gaps: int, rounds: int, spare: float) -> Sizes:
    """Return the block sizes for gaps of `unknown` bytes in total.

    They are one size, and thus one round trip, if that costs at most `spare` bytes more than two. `rounds`:
    questions that may follow.
    """
    ladder = LADDERS[max(0, min(rounds, len(LADDERS) - 1))]
    if len(ladder) < 2:
        return Sizes(ladder)
    costs = {size: expected_bytes(unknown, gaps, (size,)) for size in ONE_SIZES}
    best = min(costs, key=costs.__getitem__)
    more = costs[best] - expected_bytes(unknown, gaps, ladder)
    return Sizes((best,), max(0.0, more)) if more <= spare else Sizes(ladder)


LONG_GAP = 2 << 10
"""Bytes of a gap that starts with the first size. Shorter gaps start with the second size."""

TOGETHER_BYTES = 256 << 10
"""Bytes of windows read and searched in one call. They fit into a second-level cache."""


class _Blocks:
    """A question about blocks of gaps."""

    __slots__ = ("blocks", "opened", "request", "step")

    def __init__(self, opened: UnmatchedRanges, size: int, step: int, width: int = 0) -> None:
        """`step`: index of the size in the ladder. `width`: bytes of a fingerprint; 0 derives it from the
        number of blocks."""
        self.opened = opened
        self.step = step
        self.blocks = opened.blocks(size)
        if not width:
            ends = list(map(self.blocks.__getitem__, accumulate(opened.counts, initial=0)))
            window_bytes = map(attrgetter("window_bytes"), opened.gaps)
            pairs = sum(map(mul, window_bytes, map(sub, ends[1:], ends)))
            width = fingerprint_width(pairs // self.blocks[-1], ORDERED_COST)
        self.request = BlockQuestion(opened.ranges, size, width)

    def together(self) -> list[tuple[list[Gap], slice]]:
        """Return the gaps to search in one call each, with the rows of their ranges."""
        groups: list[tuple[list[Gap], slice]] = []
        gaps: list[Gap] = []
        first = row = left = 0
        for gap, count in zip(self.opened.gaps, self.opened.counts, strict=True):
            if gaps and (
                gap.window_bytes > left or gap.base != gaps[0].base or not (gap.is_plain and gaps[0].is_plain)
            ):
                groups.append((gaps, slice(first, row)))
                gaps, first = [], row
            if not gaps:
                left = TOGETHER_BYTES
            gaps.append(gap)
            left -= gap.window_bytes
            row += count
        if gaps:
            groups.append((gaps, slice(first, row)))
        return groups


class GapSearch:
    """Searches for some gaps of a file. Send `questions()` and pass each answer to `take` until
    there are no more."""

    def __init__(self, gaps: Sequence[Gap], sizes: Sequence[int]) -> None:
        """`gaps`: in file order. `sizes`: bytes of a block, from the first question on."""
        self._gaps = gaps
        self.unknown = 0
        """Bytes of all gaps."""
        for gap in gaps:
            self.unknown += gap.end - gap.offset
        self._asked: deque[_Blocks | LargeGapQuestion] = deque()
        self._large_gaps = LargeGapSearch(0)
        self._sizes = sizes
        self._open: dict[int, UnmatchedRanges] = {}
        """Ranges to ask about next, by the number of their block size."""

    def open(self, gap: Gap, least: int = 0) -> None:
        """Ask about the whole gap, from the block size on that fits its length, size number `least` or a
        later one. Gaps are opened in file order."""
        step = 0 if gap.end - gap.offset >= LONG_GAP else min(1, len(self._sizes) - 1)
        step = max(least, step)
        self._open.setdefault(step, UnmatchedRanges()).add(gap)

    def expect(self, gaps: Iterable[Gap], size: int, width: int, step: int) -> None:
        """Announce that fingerprints of all blocks of these gaps are the next answer, without a question.
        The sizes after number `step` are asked for what is not found."""
        opened = UnmatchedRanges()
        for gap in gaps:
            opened.add(gap)
        if opened.ranges:
            self._asked.append(_Blocks(opened, size, step, width))

    def questions(self) -> list[BlockQuestion]:
        """Return the next questions, to be answered in this order. Empty: the search is over."""
        opened, self._open = self._open, {}
        for step in sorted(opened):
            if opened[step].ranges:
                for part in opened[step].messages(self._sizes[step]):
                    self._asked.append(_Blocks(part, self._sizes[step], step))
        if self._large_gaps.large_gaps:
            self._asked += self._large_gaps.questions()
        return list(map(attrgetter("request"), self._asked))

    def mask_displacements(self) -> None:
        """Expect fingerprints of machine code with masked x86 displacements from now on."""
        self._large_gaps.mask_displacements()

    def take(self, fingerprints: bytes, search: Search, find: Find, near: Near) -> bool:
        """Take the answer to the oldest question. Returns True if it was the last one."""
        asked = self._asked.popleft()
        if not isinstance(asked, _Blocks):
            asked.take(fingerprints, find, near)
            return not self._asked
        size, width = asked.request.size, asked.request.width
        step = asked.step + 1
        smaller, opened = 0, UnmatchedRanges()
        if step < len(self._sizes):
            smaller, opened = self._sizes[step], self._open.setdefault(step, opened)
        row = 0
        for gaps, rows in asked.together():
            counts = asked.opened.counts[row : row + len(gaps)]
            row += len(gaps)
            ranges = asked.opened.ranges[2 * rows.start : 2 * rows.stop]
            prints = fingerprints[asked.blocks[rows.start] * width : asked.blocks[rows.stop] * width]
            if not gaps[0].is_plain:
                opened.add(gaps[0], _search_anywhere(gaps[0], size, width, smaller, ranges, prints, find))
                continue
            numbers: list[int] = []
            known = array("Q")
            for gap, count in zip(gaps, counts, strict=True):
                window = gap.windows[0]
                numbers += (window.offset, window.length, count, len(gap.matches) // 3)
                known += gap.matches
            table = array("Q", numbers)
            answer = search(gaps[0].base, size, width, smaller, table, ranges, known, prints)
            found, left = array("Q", answer[1]), array("Q", answer[2])
            at = at_left = 0
            pairs = iter(array("Q", answer[0]))
            for gap, matches, spans in zip(gaps, pairs, pairs, strict=True):
                gap.matches = found[at : at + 3 * matches]
                opened.add(gap, left[at_left : at_left + 2 * spans])
                at += 3 * matches
                at_left += 2 * spans
        return not self._asked

    def copies(self) -> array[int]:
        """Return all matches in order, as the kernel's rows of copies."""
        copies = array("Q")
        for gap in self._gaps:
            for matches in (gap.matches, *map(attrgetter("matches"), gap.large_gaps)):
                offsets = matches[0::3]
                rows = array("Q", [gap.base]) * (4 * len(offsets))
                rows[0::4], rows[2::4], rows[3::4] = offsets, matches[1::3], matches[2::3]
                copies += rows
        return copies


class BlockSearch(GapSearch):
    """Searches for all gaps of one file."""

    def __init__(
        self,
        parts: Sequence[Part],
        bases: Sequence[SignatureTree],
        rounds: int = 3,
        spare: float = 0.0,
        compresses: Callable[[Window], bool] | None = None,
    ) -> None:
        """Prepare the search. `rounds`: how many times `questions` may return any. `spare`: bytes that it may
        cost more to save a round trip. `compresses`: tells whether a base's content in a window does; called
        at most once. If it does not, literals are dear, and no byte is spared."""
        gaps = list(gaps_of(parts, bases))
        lengths = [gap.end - gap.offset for gap in gaps]
        if max(lengths, default=0) >= LARGE_GAP_BYTES:
            spare = float("-inf")  # the steps of a large gap take several round trips anyway
        if spare > 0 and rounds > 1 and compresses is not None and gaps and gaps[0].windows:
            spare *= compresses(gaps[0].windows[0])
        chosen = sizes_for(sum(lengths), len(gaps), rounds, spare)
        super().__init__(gaps, chosen.sizes)
        self.spent = chosen.spent
        """Bytes of `spare` that are used up."""
        self._parts = parts
        self._rounds = max(0, rounds)
        self._large_gaps = LargeGapSearch(rounds)
        for gap in self._gaps:
            if not gap.windows or not self._sizes:
                continue
            if gap.end - gap.offset >= LARGE_GAP_BYTES:
                size = bases[gap.base].size
                gap.large_gaps = sliced(gap.offset, gap.end, gap.windows, gap.before, gap.behind, size)
                self._large_gaps.large_gaps += gap.large_gaps
            else:
                self.open(gap)

    def begin(self, size: int, width: int) -> None:
        """Announce fingerprints of the whole file, one gap, as the next answer without a question."""
        self._sizes = (size, *(step for step in FURTHER[min(self._rounds, len(FURTHER) - 1)] if step < size))
        self._open = {}
        self._large_gaps = LargeGapSearch(0)
        self.expect(self._gaps, size, width, 0)

    def parts(self, *, single: bool = False) -> tuple[Part, ...]:
        """Return the recipe with the matches put in. `single` leaves repeated chunks as they are."""
        return _patched(self._parts, 0, _chunk_recipes(self._parts, self.copies()), single=single)


class BundleSearch(GapSearch):
    """Searches for each file of a bundle in its old version."""

    def __init__(self, layout: BundleLayout, old: Sequence[int], width: int, rounds: int) -> None:
        """Prepare the search. The first answers to take are the fingerprints of `layout.likes`, of `width`
        bytes.

        `old`: bytes of the old versions in bundle order. `rounds`: how many times `questions` may return any.
        """
        further = FURTHER[max(0, min(rounds, len(FURTHER) - 1))]
        begins = accumulate(old, initial=0)
        gaps = [
            gap_within(
                ByteRange(at, size), 0, (begin, begin + length), (begin, begin + length), (UNPLACED, UNPLACED)
            )
            for at, size, begin, length in zip(layout.starts, layout.sizes, begins, old, strict=False)
        ]
        super().__init__(gaps, (0, *further))
        for like in layout.likes:
            self.expect(gaps[like.first : like.stop], like.block, width, 0)


def _search_anywhere(
    gap: Gap, size: int, width: int, smaller: int, ranges: array[int], fingerprints: bytes, find: Find
) -> array[int]:
    """Search a gap whose neighbours are far apart or out of order, which is rare. Sets its matches and
    returns the ranges to ask about next."""
    from rdc.plan.gap_search import Match, Span, search_gap

    def find_in(span: Span, size: int, prints: bytes) -> Sequence[int]:
        return find(Window(gap.base, *span), size, width, prints)

    outcome = search_gap(
        [Span(window.offset, window.length) for window in gap.windows],
        size,
        width,
        smaller,
        list(map(Span, ranges[0::2], ranges[1::2])),
        list(map(Match, gap.matches[0::3], gap.matches[1::3], gap.matches[2::3])),
        fingerprints,
        find_in,
    )
    gap.matches = array("Q", (number for match in outcome.matches for number in match))
    return array("Q", (number for span in outcome.ranges for number in span))


def _chunk_recipes(parts: Sequence[Part], copies: array[int]) -> dict[int, ChunkRecipe]:
    """Return the copies and literals of each patched chunk by its offset in the file, repeated chunks at
    their first occurrence. `copies`: the kernel's rows of all matches."""
    chunks: list[tuple[int, int]] = []
    for at, part in first_parts(parts, 0):
        if isinstance(part, Fetch):
            chunks.append((at, part.length))
    instructions, totals = instructions_of_ranges(copies, array("Q", chain.from_iterable(chunks)))
    numbers = iter(array("Q", totals))
    found = {}
    first = 0
    for (at, length), count, fetched in zip(chunks, numbers, numbers, strict=True):
        stop = first + count * INSTRUCTION_BYTES
        if fetched < length:
            found[at] = ChunkRecipe(instructions[first:stop], fetched)
        first = stop
    return found


def _patched(
    parts: Sequence[Part], offset: int, found: dict[int, ChunkRecipe], *, single: bool
) -> tuple[Part, ...]:
    """Put the patches in `found` into the parts. `single` leaves repeated chunks as they are."""
    made: list[Part] = []
    for part in parts:
        if single and (isinstance(part, Repeat) or part.count > 1):
            made.append(part)
        elif isinstance(part, Repeat):
            inside = _patched(part.parts, offset, found, single=single)
            made.append(Repeat(inside, part.length, part.count))
        elif isinstance(part, Fetch) and offset in found:
            made.append(Patch(part.reference, part.length, part.count, found[offset]))
        else:
            made.append(part)
        offset += part.length * part.count
    return tuple(made)
