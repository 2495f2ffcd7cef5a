"""The search below the chunk: which blocks of unknown chunks to ask for, and what a base has of them.

A gap is a maximal run of unknown chunks. It is looked for in a window of the base, between what is known on
either side of it. Blocks that match become copies; between the matches smaller blocks are asked for. Long
gaps are regions, with steps of their own. Nothing found here is certain: every chunk that blocks go into is
compared with its reference.
"""

from __future__ import annotations

from array import array
from collections import deque
from itertools import accumulate, chain
from operator import mul, sub

from rdc.kernel.pieces import TILE_BYTES, tile_ranges
from rdc.plan.descent import Fetch, Patch, Pieces, Repeat
from rdc.plan.gaps import Gap, first_parts, gaps_of
from rdc.plan.open_ranges import OpenRanges
from rdc.plan.questions import NOWHERE, ORDERED_COST, Ask, Find, fingerprint_width
from rdc.plan.region_search import RegionQuestion, RegionSearch
from rdc.plan.regions import REGION_BYTES, Window, sliced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.plan.questions import Search
    from rdc.plan.regions import Near
    from rdc.signature.tree import SignatureTree

__all__ = ["NOWHERE", "Ask", "BlockSearch", "Find", "GapSearch", "Window", "first_step"]

LADDERS = ((), (256,), (1024, 128), (1024, 256, 64))
"""Bytes of a block, from the first question about a long gap down, by the rounds there are for it.

From one Django release to the next the three sizes cost least of twelve ladders tried: 32.2 KB in all, where
two sizes cost 33.9 KB and none 280 KB. What one size does not find the next asks about, a round trip each."""

FURTHER = ((), (128,), (256, 64))
"""The same after a first size that came with a file's tree."""

LONG_GAP = 2 << 10
"""Bytes of a gap that is worth the first size; a shorter one starts with the second."""

TOGETHER_BYTES = 256 << 10
"""Bytes of windows that are read and looked through in one call. They stay in a second-level cache."""

WINDOW_BYTES = 8 << 20
"""Bytes of a window that is read at once. Those of gaps, which are shorter than a region, have an eighth."""


class _Blocks:
    """Blocks of gaps that a question is about."""

    __slots__ = ("ask", "blocks", "opened", "step")

    def __init__(self, opened: OpenRanges, size: int, step: int, width: int = 0) -> None:
        """`step`: of the ladder. `width`: of a fingerprint, if not what so many blocks need."""
        self.opened = opened
        self.step = step
        self.blocks = opened.blocks(size)
        if not width:
            ends = [self.blocks[row] for row in accumulate(opened.counts, initial=0)]
            looked = [gap.looked for gap in opened.gaps]
            pairs = sum(map(mul, looked, map(sub, ends[1:], ends)))
            width = fingerprint_width(pairs // self.blocks[-1], ORDERED_COST)
        self.ask = Ask(opened.ranges, size, width)

    def together(self) -> Iterator[tuple[list[Gap], slice]]:
        """Gaps that are looked for in one call, with the rows of their ranges."""
        gaps: list[Gap] = []
        first = row = left = 0
        for gap, count in zip(self.opened.gaps, self.opened.counts, strict=True):
            if gaps and (
                gap.looked > left or gap.base != gaps[0].base or not _plain(gap) or not _plain(gaps[0])
            ):
                yield gaps, slice(first, row)
                gaps, first = [], row
            if not gaps:
                left = TOGETHER_BYTES
            gaps.append(gap)
            left -= gap.looked
            row += count
        if gaps:
            yield gaps, slice(first, row)


class GapSearch:
    """Some gaps of a file. Send `asks()`, take each answer with `take`, until nothing is asked any more."""

    def __init__(self, gaps: Sequence[Gap], sizes: Sequence[int]) -> None:
        """`gaps`: in order of the file. `sizes`: bytes of a block, from the first question down."""
        self._gaps = gaps
        self._asked: deque[_Blocks | RegionQuestion] = deque()
        self._regions = RegionSearch(0)
        self._climb(sizes)

    def _climb(self, sizes: Sequence[int]) -> None:
        """Asks in blocks of these sizes from here on."""
        self._sizes = sizes
        self._open = [OpenRanges() for _ in sizes]

    def open(self, gap: Gap, step: int) -> None:
        """All of a gap is to be asked about, in blocks of the size with this number; gaps come in order."""
        self._open[step].add(gap, _all_of(gap))

    def expect(self, gaps: Iterable[Gap], size: int, width: int, step: int) -> None:
        """Fingerprints of blocks of all of some gaps come unasked, as the next that are taken. For what is
        not found the size behind that with the number `step` is next."""
        opened = OpenRanges()
        for gap in gaps:
            opened.add(gap, _all_of(gap))
        if opened.ranges:
            self._asked.append(_Blocks(opened, size, step, width))

    def asks(self) -> list[Ask]:
        """The next questions, to be answered in this order; none: all that can be found was."""
        for step, size in enumerate(self._sizes):
            opened = self._open[step]
            if opened.ranges:
                self._open[step] = OpenRanges()
                self._asked += [_Blocks(part, size, step) for part in opened.messages(size)]
        self._asked += self._regions.questions()
        return [asked.ask for asked in self._asked]

    def leave_targets_out(self) -> None:
        """All that is asked, the first questions included, is of machine code without its targets."""
        self._regions.leave_targets_out()

    def take(self, fingerprints: bytes, search: Search, find: Find, near: Near) -> bool:
        """Takes the answer to the oldest question; True when it was the last."""
        asked = self._asked.popleft()
        if isinstance(asked, _Blocks):
            self._take_blocks(asked, fingerprints, search, find)
        else:
            asked.take(fingerprints, find, near)
        return not self._asked

    def _take_blocks(self, asked: _Blocks, fingerprints: bytes, search: Search, find: Find) -> None:
        size, width = asked.ask.size, asked.ask.width
        step = asked.step + 1
        smaller, opened = (
            (self._sizes[step], self._open[step]) if step < len(self._sizes) else (0, OpenRanges())
        )
        row = 0
        for gaps, rows in asked.together():
            counts = asked.opened.counts[row : row + len(gaps)]
            row += len(gaps)
            ranges = asked.opened.ranges[2 * rows.start : 2 * rows.stop]
            prints = fingerprints[asked.blocks[rows.start] * width : asked.blocks[rows.stop] * width]
            if not _plain(gaps[0]):
                opened.add(gaps[0], _search_anywhere(gaps[0], size, width, smaller, ranges, prints, find))
                continue
            numbers: list[int] = []
            known = array("Q")
            for gap, count in zip(gaps, counts, strict=True):
                window = gap.windows[0]
                numbers += (window.offset, window.length, count, len(gap.pieces) // 3)
                known += gap.pieces
            table = array("Q", numbers)
            answer = search(gaps[0].base, size, width, smaller, table, ranges, known, prints)
            found, left = array("Q", answer[1]), array("Q", answer[2])
            at = at_left = 0
            pairs = iter(array("Q", answer[0]))
            for gap, pieces, spans in zip(gaps, pairs, pairs, strict=True):
                gap.pieces = found[at : at + 3 * pieces]
                opened.add(gap, left[at_left : at_left + 2 * spans])
                at += 3 * pieces
                at_left += 2 * spans

    @property
    def unknown(self) -> int:
        """Bytes of all gaps."""
        return sum(gap.end - gap.offset for gap in self._gaps)

    def copies(self) -> array[int]:
        """All that was found: the kernel's rows of copies, in order."""
        copies = array("Q")
        for gap in self._gaps:
            for pieces in (gap.pieces, *(region.pieces for region in gap.regions)):
                copies += _copies(gap.base, pieces)
        return copies


class BlockSearch(GapSearch):
    """All gaps of one file."""

    def __init__(self, parts: Sequence[Part], bases: Sequence[SignatureTree], rounds: int = 3) -> None:
        """`rounds`: how many times `asks` may have questions, at most."""
        super().__init__(list(gaps_of(parts, bases)), LADDERS[max(0, min(rounds, len(LADDERS) - 1))])
        self._parts = parts
        self._rounds = max(0, rounds)
        self._regions = RegionSearch(rounds)
        for gap in self._gaps:
            if not gap.windows or not self._sizes:
                continue
            if gap.end - gap.offset >= REGION_BYTES:
                size = bases[gap.base].size
                gap.regions = sliced(gap.offset, gap.end, gap.windows, gap.before, gap.behind, size)
                self._regions.regions += gap.regions
            else:
                self.open(gap, self._first_step(gap))

    def begin(self, size: int, width: int) -> None:
        """Fingerprints of the whole file, one gap, come unasked: they are to be taken next."""
        self._climb((size, *(step for step in FURTHER[min(self._rounds, len(FURTHER) - 1)] if step < size)))
        self._regions = RegionSearch(0)
        self.expect(self._gaps, size, width, 0)

    def parts(self, *, single: bool = False) -> tuple[Part, ...]:
        """The recipe with what was found put in; `single`: but for chunks that repeat."""
        return _patched(self._parts, 0, _pieces(self._parts, self.copies()), single=single)

    def _first_step(self, gap: Gap) -> int:
        return first_step(gap.end - gap.offset, len(self._sizes))


def first_step(length: int, sizes: int) -> int:
    """Which of so many sizes a gap of `length` bytes is asked about with first."""
    return 0 if length >= LONG_GAP else min(1, sizes - 1)


def _all_of(gap: Gap) -> array[int]:
    return array("Q", (gap.offset, gap.end - gap.offset))


def _plain(gap: Gap) -> bool:
    """It is looked for in one window, which is read at once."""
    return len(gap.windows) == 1 and gap.looked <= WINDOW_BYTES


def _search_anywhere(
    gap: Gap, size: int, width: int, smaller: int, ranges: array[int], fingerprints: bytes, find: Find
) -> array[int]:
    """The same for a gap whose neighbours are far apart or out of order, which few are."""
    from rdc.kernel.pure_gaps import Piece, Span, search_gap

    def find_in(span: Span, size: int, prints: bytes) -> Sequence[int]:
        return find(Window(gap.base, *span), size, width, prints)

    outcome = search_gap(
        [Span(window.offset, window.length) for window in gap.windows],
        size,
        width,
        smaller,
        list(map(Span, ranges[0::2], ranges[1::2])),
        list(map(Piece, gap.pieces[0::3], gap.pieces[1::3], gap.pieces[2::3])),
        fingerprints,
        find_in,
    )
    gap.pieces = array("Q", (number for piece in outcome.pieces for number in piece))
    return array("Q", (number for span in outcome.ranges for number in span))


def _copies(base: int, pieces: array[int]) -> array[int]:
    """The kernel's rows of pieces as rows of copies."""
    offsets = pieces[0::3]
    rows = array("Q", [base]) * (4 * len(offsets))
    rows[0::4], rows[2::4], rows[3::4] = offsets, pieces[1::3], pieces[2::3]
    return rows


def _pieces(parts: Sequence[Part], copies: array[int]) -> dict[int, Pieces]:
    """What each chunk that no base has is put together from, by its offset; of those that repeat the first.
    `copies`: the kernel's rows of all that was found."""
    chunks = [(at, part.length) for at, part in first_parts(parts, 0) if isinstance(part, Fetch)]
    tiles, tiled = tile_ranges(copies, array("Q", chain.from_iterable(chunks)))
    numbers = iter(array("Q", tiled))
    found = {}
    first = 0
    for (at, length), count, fetched in zip(chunks, numbers, numbers, strict=True):
        stop = first + count * TILE_BYTES
        if fetched < length:
            found[at] = Pieces(tiles[first:stop], fetched)
        first = stop
    return found


def _patched(
    parts: Sequence[Part], offset: int, found: dict[int, Pieces], *, single: bool
) -> tuple[Part, ...]:
    """`found`: as above; `single`: of chunks that repeat none."""
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
