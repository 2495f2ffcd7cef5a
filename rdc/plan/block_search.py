"""The search below the chunk: which blocks of unmatched chunks to ask for, and which of them a base has.

A gap is a maximal run of unmatched chunks. The search looks in a window of the base, between the matches on
either side of the gap. Matching blocks become copies. Smaller blocks are asked for between them. Large gaps
have steps of their own.

Matches are not certain. Every chunk that contains matched blocks is compared with its reference later.
"""

from __future__ import annotations

from array import array
from collections import deque
from itertools import accumulate, chain
from operator import attrgetter, mul, sub

from rdc.kernel import INSTRUCTION_BYTES, instructions_of_ranges
from rdc.plan.block_requests import NOWHERE, ORDERED_COST, BlockQuestion, Find, fingerprint_width
from rdc.plan.descent import ChunkRecipe, Fetch, Patch, Repeat
from rdc.plan.gaps import Gap, first_parts, gaps_of
from rdc.plan.large_gap_search import LargeGapQuestion, LargeGapSearch
from rdc.plan.large_gaps import LARGE_GAP_BYTES, Window, sliced
from rdc.plan.unmatched_ranges import UnmatchedRanges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rdc.plan.block_requests import Search
    from rdc.plan.descent import Part
    from rdc.plan.large_gaps import Near
    from rdc.signature.tree import SignatureTree

__all__ = ["NOWHERE", "BlockQuestion", "BlockSearch", "Find", "GapSearch", "Window", "first_step"]

LADDERS = ((), (256,), (1024, 128), (1024, 256, 64))
"""Block sizes in bytes by number of available rounds, from the first question about a long gap on.

Three sizes cost least of twelve ladders tried from one Django release to the next: 32.2 KB in total. Two
sizes cost 33.9 KB, none 280 KB. Each size takes one round trip and asks about what the size before did not
find.
"""

FURTHER = ((), (128,), (256, 64))
"""Further block sizes, where fingerprints of a first size came with the file's tree."""

LONG_GAP = 2 << 10
"""Bytes of a gap that starts with the first size. Shorter gaps start with the second size."""

TOGETHER_BYTES = 256 << 10
"""Bytes of windows read and searched in one call. They fit into a second-level cache."""

WINDOW_BYTES = 8 << 20
"""Bytes of the largest window that is read at once. A gap below the limit of large gaps needs an eighth."""


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
        """Returns the gaps to search in one call each, with the rows of their ranges."""
        groups: list[tuple[list[Gap], slice]] = []
        gaps: list[Gap] = []
        first = row = left = 0
        for gap, count in zip(self.opened.gaps, self.opened.counts, strict=True):
            if gaps and (
                gap.window_bytes > left or gap.base != gaps[0].base or not _plain(gap) or not _plain(gaps[0])
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
        self._asked: deque[_Blocks | LargeGapQuestion] = deque()
        self._large_gaps = LargeGapSearch(0)
        self._use_sizes(sizes)

    def _use_sizes(self, sizes: Sequence[int]) -> None:
        """Uses these block sizes for all further questions."""
        self._sizes = sizes
        self._open = [UnmatchedRanges() for _ in sizes]

    def open(self, gap: Gap, step: int) -> None:
        """Asks about the whole gap in blocks of size number `step`. Gaps are opened in file order."""
        self._open[step].add(gap, _all_of(gap))

    def expect(self, gaps: Iterable[Gap], size: int, width: int, step: int) -> None:
        """Announces that fingerprints of all blocks of these gaps are the next answer, without a question.
        The sizes after number `step` are asked for what is not found."""
        opened = UnmatchedRanges()
        for gap in gaps:
            opened.add(gap, _all_of(gap))
        if opened.ranges:
            self._asked.append(_Blocks(opened, size, step, width))

    def questions(self) -> list[BlockQuestion]:
        """Returns the next questions, to be answered in this order. Empty: the search is over."""
        for step, size in enumerate(self._sizes):
            opened = self._open[step]
            if opened.ranges:
                self._open[step] = UnmatchedRanges()
                for part in opened.messages(size):
                    self._asked.append(_Blocks(part, size, step))
        if self._large_gaps.large_gaps:
            self._asked += self._large_gaps.questions()
        return [asked.request for asked in self._asked]

    def mask_displacements(self) -> None:
        """From now on, fingerprints are those of machine code with masked x86 displacements."""
        self._large_gaps.mask_displacements()

    def take(self, fingerprints: bytes, search: Search, find: Find, near: Near) -> bool:
        """Takes the answer to the oldest question. Returns True if it was the last one."""
        asked = self._asked.popleft()
        if isinstance(asked, _Blocks):
            self._take_blocks(asked, fingerprints, search, find)
        else:
            asked.take(fingerprints, find, near)
        return not self._asked

    def _take_blocks(self, asked: _Blocks, fingerprints: bytes, search: Search, find: Find) -> None:
        size, width = asked.request.size, asked.request.width
        step = asked.step + 1
        smaller, opened = (
            (self._sizes[step], self._open[step]) if step < len(self._sizes) else (0, UnmatchedRanges())
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

    @property
    def unknown(self) -> int:
        """Bytes of all gaps."""
        return sum([gap.end - gap.offset for gap in self._gaps])

    def copies(self) -> array[int]:
        """Returns all matches in order, as the kernel's rows of copies."""
        copies = array("Q")
        for gap in self._gaps:
            for matches in (gap.matches, *(large_gap.matches for large_gap in gap.large_gaps)):
                copies += _copies(gap.base, matches)
        return copies


class BlockSearch(GapSearch):
    """Searches for all gaps of one file."""

    def __init__(self, parts: Sequence[Part], bases: Sequence[SignatureTree], rounds: int = 3) -> None:
        """`rounds`: how many times `questions` may return any."""
        super().__init__(list(gaps_of(parts, bases)), LADDERS[max(0, min(rounds, len(LADDERS) - 1))])
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
                self.open(gap, self._first_step(gap))

    def begin(self, size: int, width: int) -> None:
        """Announces fingerprints of the whole file, one gap, as the next answer without a question."""
        self._use_sizes(
            (size, *(step for step in FURTHER[min(self._rounds, len(FURTHER) - 1)] if step < size))
        )
        self._large_gaps = LargeGapSearch(0)
        self.expect(self._gaps, size, width, 0)

    def parts(self, *, single: bool = False) -> tuple[Part, ...]:
        """Returns the recipe with the matches put in. `single` leaves repeated chunks as they are."""
        return _patched(self._parts, 0, _chunk_recipes(self._parts, self.copies()), single=single)

    def _first_step(self, gap: Gap) -> int:
        return first_step(gap.end - gap.offset, len(self._sizes))


def first_step(length: int, sizes: int) -> int:
    """Returns the index of the first of `sizes` block sizes to ask about for a gap of `length` bytes."""
    return 0 if length >= LONG_GAP else min(1, sizes - 1)


def _all_of(gap: Gap) -> array[int]:
    return array("Q", (gap.offset, gap.end - gap.offset))


def _plain(gap: Gap) -> bool:
    """True for a gap with one window, which can be read at once."""
    return len(gap.windows) == 1 and gap.window_bytes <= WINDOW_BYTES


def _search_anywhere(
    gap: Gap, size: int, width: int, smaller: int, ranges: array[int], fingerprints: bytes, find: Find
) -> array[int]:
    """Searches a gap whose neighbours are far apart or out of order, which is rare. Sets its matches and
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


def _copies(base: int, matches: array[int]) -> array[int]:
    """Converts the kernel's rows of matches into rows of copies."""
    offsets = matches[0::3]
    rows = array("Q", [base]) * (4 * len(offsets))
    rows[0::4], rows[2::4], rows[3::4] = offsets, matches[1::3], matches[2::3]
    return rows


def _chunk_recipes(parts: Sequence[Part], copies: array[int]) -> dict[int, ChunkRecipe]:
    """Returns the copies and literals of each patched chunk by its offset in the file, repeated chunks at
    their first occurrence. `copies`: the kernel's rows of all matches."""
    chunks = [(at, part.length) for at, part in first_parts(parts, 0) if isinstance(part, Fetch)]
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
    """Puts the patches in `found` into the parts. `single` leaves repeated chunks as they are."""
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
