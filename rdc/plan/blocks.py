"""The search below the chunk: which blocks of unknown chunks to ask for, and what a base has of them.

A gap is a maximal run of unknown chunks. It is looked for in a window of the base, between what is known on
either side of it. Blocks that match become copies; between the matches smaller blocks are asked for. Long
gaps are regions, with steps of their own. Nothing found here is certain: every chunk that blocks go into is
compared with its reference.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import deque
from itertools import accumulate
from operator import mul
from typing import TYPE_CHECKING, TypeAlias

from rdc.limits import BLOCKS_PER_MESSAGE, RANGES_PER_MESSAGE
from rdc.plan.descent import ByteRange, Copy, Fetch, Literal, Patch, Repeat, Reuse, ReuseChunk
from rdc.plan.order import Found, strays
from rdc.plan.questions import NOWHERE, ORDERED_COST, Ask, Find, fingerprint_width
from rdc.plan.region_search import RegionQuestion, RegionSearch
from rdc.plan.regions import REGION_BYTES, UNPLACED, Window, sliced
from rdc.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.plan.descent import Part
    from rdc.plan.regions import Near, Region
    from rdc.signature.tree import SignatureTree

__all__ = ["NOWHERE", "Ask", "BlockSearch", "Find", "Window"]

LADDERS = ((), (256,), (1024, 128), (1024, 256, 64))
"""Bytes of a block, from the first question about a long gap down, by the rounds there are for it.

From one Django release to the next the three sizes cost least of twelve ladders tried: 32.2 KB in all, where
two sizes cost 33.9 KB and none 280 KB. What one size does not find the next asks about, a round trip each."""

FURTHER = ((), (128,), (256, 64))
"""The same after a first size that came with a file's tree."""

LONG_GAP = 2 << 10
"""Bytes of a gap that is worth the first size; a shorter one starts with the second."""

RUN_BLOCKS = 8
"""Blocks in a row that are found nowhere: from here on they are new content, and smaller blocks are asked for
at the ends of the run alone."""

TAIL_BYTES = 16
"""A rest of a range that is shorter than this costs less as it is than as a fingerprint."""

MARGIN = 4 << 10
"""Bytes by which a window goes past the known neighbours, and about which a rest's own window lies."""

STRAY_LOOK = 4 << 10
"""Bytes of a search that one call costs besides: what is spent on blocks out of order stays below what their
windows took, whatever fingerprints come."""


class _Gap:
    __slots__ = ("before", "behind", "copies", "end", "offset", "regions", "windows")

    def __init__(
        self, offset: int, length: int, windows: tuple[Window, ...], before: int, behind: int
    ) -> None:
        """`before`, `behind`: places in the windows' base of what precedes and what follows, or UNPLACED."""
        self.offset = offset
        self.end = offset + length
        self.windows = windows
        self.before = before
        self.behind = behind
        self.copies: list[_Match] = []
        self.regions: tuple[Region, ...] = ()


@dataclass(frozen=True, slots=True)
class _Match:
    """`copy` is what the file has at `offset`."""

    offset: int
    copy: Copy


@dataclass(frozen=True, slots=True)
class _Open:
    """A range of a gap of which nothing is known yet, to be asked for in blocks of the ladder's `step`."""

    gap: _Gap
    offset: int
    length: int
    step: int


class _Blocks:
    """Blocks of gaps that a question is about."""

    __slots__ = ("ask", "opened")

    def __init__(self, ask: Ask, opened: list[_Open]) -> None:
        self.ask = ask
        self.opened = opened


class BlockSearch:
    """All gaps of one file. Send `asks()`, take each answer with `take`, until nothing is asked any more."""

    def __init__(self, parts: Sequence[Part], bases: Sequence[SignatureTree], rounds: int = 3) -> None:
        """`rounds`: how many times `asks` may have questions, at most."""
        self._parts = parts
        self._rounds = max(0, rounds)
        self._sizes: tuple[int, ...] = LADDERS[max(0, min(rounds, len(LADDERS) - 1))]
        self._gaps = list(_gaps(parts, bases))
        self._open: list[_Open] = []
        self._regions = RegionSearch(rounds)
        for gap in self._gaps:
            if not gap.windows or not self._sizes:
                continue
            if gap.end - gap.offset >= REGION_BYTES:
                size = bases[gap.windows[0].base].size
                gap.regions = sliced(gap.offset, gap.end, gap.windows, gap.before, gap.behind, size)
                self._regions.regions += gap.regions
            else:
                self._open.append(_Open(gap, gap.offset, gap.end - gap.offset, self._first_step(gap)))
        self._asked: deque[_Blocks | RegionQuestion] = deque()

    def begin(self, size: int, width: int) -> None:
        """Fingerprints of the whole file, one gap, come unasked: they are to be taken next."""
        self._sizes = (size, *(step for step in FURTHER[min(self._rounds, len(FURTHER) - 1)] if step < size))
        self._open, self._regions = [], RegionSearch(0)
        opened = [_Open(gap, gap.offset, gap.end - gap.offset, 0) for gap in self._gaps]
        ask = Ask(tuple(ByteRange(o.offset, o.length) for o in opened), size, width)
        self._asked.append(_Blocks(ask, opened))

    def asks(self) -> list[Ask]:
        """The next questions, to be answered in this order; none: all that can be found was."""
        opened, self._open = self._open, []
        for step, size in enumerate(self._sizes):
            self._batch(size, [found for found in opened if found.step == step])
        self._asked += self._regions.questions()
        return [asked.ask for asked in self._asked]

    def take(self, fingerprints: bytes, find: Find, near: Near) -> bool:
        """Takes the answer to the oldest question; True when it was the last."""
        asked = self._asked.popleft()
        if isinstance(asked, _Blocks):
            self._take_blocks(asked.ask, asked.opened, fingerprints, find)
        else:
            asked.take(fingerprints, find, near)
        return not self._asked

    def _take_blocks(self, ask: Ask, opened: list[_Open], fingerprints: bytes, find: Find) -> None:
        at = first = 0
        while first < len(opened):
            # Neighbours of one gap are looked for together: each window is read once.
            stop = first
            blobs = []
            while stop < len(opened) and opened[stop].gap is opened[first].gap:
                end = at + -(-opened[stop].length // ask.size) * ask.width
                blobs.append(fingerprints[at:end])
                at = end
                stop += 1
            self._match(ask, opened[first:stop], blobs, find)
            first = stop

    def parts(self) -> tuple[Part, ...]:
        """The recipe with what was found put in."""
        matches = []
        for gap in self._gaps:
            matches += sorted(gap.copies, key=lambda m: m.offset)
            for region in gap.regions:
                numbers = iter(region.pieces)
                for offset, place, length in zip(numbers, numbers, numbers, strict=True):
                    matches.append(_Match(offset, Copy(region.base, place, length)))
        return _patched(self._parts, 0, matches, [match.offset for match in matches])

    def _first_step(self, gap: _Gap) -> int:
        return 0 if gap.end - gap.offset >= LONG_GAP else min(1, len(self._sizes) - 1)

    def _batch(self, size: int, opened: list[_Open]) -> None:
        batch: list[_Open] = []
        blocks = 0
        for found in opened:
            # Of a gap longer than a message may ask for the rest stays as it is asked for in further ones.
            for piece in _split(found, size * BLOCKS_PER_MESSAGE):
                more = -(-piece.length // size)
                if batch and (blocks + more > BLOCKS_PER_MESSAGE or len(batch) >= RANGES_PER_MESSAGE):
                    self._close(size, batch)
                    batch, blocks = [], 0
                batch.append(piece)
                blocks += more
        if batch:
            self._close(size, batch)

    def _close(self, size: int, batch: list[_Open]) -> None:
        blocks = [-(-found.length // size) for found in batch]
        pairs = sum(
            count * sum(window.length for window in found.gap.windows)
            for count, found in zip(blocks, batch, strict=True)
        )
        ranges = tuple(ByteRange(found.offset, found.length) for found in batch)
        width = fingerprint_width(pairs // sum(blocks), ORDERED_COST)
        self._asked.append(_Blocks(Ask(ranges, size, width), batch))

    def _match(self, ask: Ask, opened: list[_Open], blobs: list[bytes], find: Find) -> None:
        gap, size, width = opened[0].gap, ask.size, ask.width
        whole = [found.length // size for found in opened]
        wanted = b"".join(blob[: count * width] for blob, count in zip(blobs, whole, strict=True))
        places = _search(gap.windows, size, width, wanted, find)
        blocks: list[_Block] = []
        row = 0
        for found, count, blob in zip(opened, whole, blobs, strict=True):
            taken = places[row : row + count]
            row += count
            rest = found.length - count * size
            if rest:
                ends = [_near_end(window, rest) for window in gap.windows]
                taken += _search(ends, rest, width, blob[count * width :], find)
            for number, place in enumerate(taken):
                length = rest if number == count else size
                fingerprint = blob[number * width : (number + 1) * width]
                blocks.append(_Block(found.offset + number * size, length, fingerprint, place))
        _put_in_order(gap, blocks, find)
        row = 0
        for found in opened:
            count = -(-found.length // size)
            some = blocks[row : row + count]
            row += count
            self._settle(found, [block.length for block in some], [block.place for block in some])

    def _settle(self, found: _Open, lengths: list[int], places: list[_Place]) -> None:
        """Copies for the blocks that were found, smaller blocks for runs of others."""
        at, run = found.offset, 0
        for row, (length, place) in enumerate(zip(lengths, places, strict=True)):
            if place is not None:
                self._descend(found, at, lengths[row - run : row])
                run = 0
                _add(found.gap.copies, at, Copy(place[0], place[1], length))
            else:
                run += 1
            at += length
        self._descend(found, at, lengths[len(lengths) - run :])

    def _descend(self, found: _Open, end: int, run: list[int]) -> None:
        """Asks about the blocks of `run`, which were found nowhere, in smaller ones."""
        step = found.step + 1
        if not run or step >= len(self._sizes):
            return
        start = end - sum(run)
        if len(run) > RUN_BLOCKS:
            self._reopen(found.gap, start, run[0], step)
            start, run = end - run[-1], run[-1:]
        self._reopen(found.gap, start, end - start, step)

    def _reopen(self, gap: _Gap, offset: int, length: int, step: int) -> None:
        rest = length % self._sizes[step]
        if rest < TAIL_BYTES:
            length -= rest
        if length:
            self._open.append(_Open(gap, offset, length, step))


_Place: TypeAlias = "tuple[int, int] | None"


class _Block:
    __slots__ = ("fingerprint", "length", "offset", "place")

    def __init__(self, offset: int, length: int, fingerprint: bytes, place: _Place) -> None:
        self.offset = offset
        self.length = length
        self.fingerprint = fingerprint
        self.place = place

    @property
    def found(self) -> Found | None:
        return None if self.place is None else Found(self.offset, self.length, *self.place)


def _put_in_order(gap: _Gap, blocks: list[_Block], find: Find) -> None:
    """Blocks alone in a place out of order are looked for between their neighbours instead: what repeats in a
    base is found in the first place that has it, and what is there by chance is not there."""
    found = [block.found for block in blocks]
    if not any(found):
        return
    certain = sorted(
        (Found(m.offset, m.copy.length, m.copy.base, m.copy.offset) for m in gap.copies),
        key=lambda one: one.offset,
    )
    start = min(window.offset for window in gap.windows)
    stop = max(window.offset + window.length for window in gap.windows)
    left = sum(window.length for window in gap.windows)
    for stray in strays(found, certain, start, stop):
        block, between = blocks[stray.row], stray.stop - stray.start
        windows = []
        if block.place is not None and block.length <= between <= left - STRAY_LOOK:
            windows.append(Window(block.place[0], stray.start, between))
            left -= between + STRAY_LOOK
        (block.place,) = _search(windows, block.length, len(block.fingerprint), block.fingerprint, find)


def _split(found: _Open, most: int) -> Iterator[_Open]:
    if found.length <= most:
        yield found
        return
    for at in range(0, found.length, most):
        yield _Open(found.gap, found.offset + at, min(most, found.length - at), found.step)


def _search(
    windows: Sequence[Window], size: int, width: int, fingerprints: bytes, find: Find
) -> list[_Place]:
    """What the first window has is taken from there."""
    places: list[_Place] = [None] * (len(fingerprints) // width)
    for window in windows:
        if fingerprints and window.length >= size and None in places:
            for row, offset in enumerate(find(window, size, width, fingerprints)):
                if offset != NOWHERE and places[row] is None:
                    places[row] = (window.base, offset)
    return places


def _near_end(window: Window, length: int) -> Window:
    """Where the end of a gap is looked for: a rest has a length of its own, so that only it is looked for."""
    take = min(window.length, length + 2 * MARGIN)
    return Window(window.base, window.offset + window.length - take, take)


def _add(copies: list[_Match], at: int, copy: Copy) -> None:
    """Appends, or lengthens the last one where both sides go on."""
    if copies:
        last = copies[-1]
        if (
            last.offset + last.copy.length == at
            and last.copy.base == copy.base
            and last.copy.offset + last.copy.length == copy.offset
        ):
            joined = Copy(copy.base, last.copy.offset, last.copy.length + copy.length)
            copies[-1] = _Match(last.offset, joined)
            return
    copies.append(_Match(at, copy))


# Gaps and their windows


def _gaps(parts: Sequence[Part], bases: Sequence[SignatureTree]) -> Iterator[_Gap]:
    if not bases:
        return
    starts: dict[int, array[int]] = {}

    def offset(base: int, row: int) -> int:
        if base not in starts:
            level = bases[base].levels[0]
            starts[base] = array("Q", accumulate(map(mul, level.lengths, level.counts), initial=0))
        return starts[base][row]

    before = (0, 0)
    held: ByteRange | None = None
    for at, part in _first_parts(parts, 0):
        if isinstance(part, Fetch):
            if held is not None and held.offset + held.length == at:
                held = ByteRange(held.offset, held.length + part.length)
                continue
            if held is not None:
                yield _gap(held, before, None, bases)
            held = ByteRange(at, part.length)
        elif isinstance(part, Reuse | ReuseChunk):
            first, stop = (part.first, part.stop) if isinstance(part, Reuse) else (part.row, part.row + 1)
            if held is not None:
                yield _gap(held, before, (part.base, offset(part.base, first)), bases)
                held = None
            before = (part.base, offset(part.base, stop))
    if held is not None:
        yield _gap(held, before, None, bases)


def _gap(
    held: ByteRange, before: tuple[int, int], after: tuple[int, int] | None, bases: Sequence[SignatureTree]
) -> _Gap:
    """The window is linear in the gap's own length, so that no recipe makes the search of a file long."""
    base, start = before
    goes_on, behind = start, UNPLACED
    if after is None or after[0] != base:
        after = (base, bases[base].size)
    else:
        behind = after[1]
    start, stop = max(0, start - MARGIN), min(bases[base].size, after[1] + MARGIN)
    most = 4 * held.length + 8 * MARGIN
    if start < stop <= start + most:
        window = Window(base, start, stop - start)
        return _Gap(held.offset, held.length, (window,), goes_on, behind)
    # Too far apart, or what follows here came before there: about either side of it.
    windows = []
    for begin in (start, max(0, stop - most // 2)):
        length = min(most // 2, bases[base].size - begin)
        if length > 0:
            windows.append(Window(base, begin, length))
    return _Gap(held.offset, held.length, tuple(windows), goes_on, behind)


def _first_parts(parts: Sequence[Part], offset: int) -> Iterator[tuple[int, Part]]:
    """The parts with their offsets in the file, of repeats the first time only."""
    for part in parts:
        if isinstance(part, Repeat):
            yield from _first_parts(part.parts, offset)
        else:
            yield offset, part
        offset += part.length * part.count


def _patched(
    parts: Sequence[Part], offset: int, matches: list[_Match], starts: list[int]
) -> tuple[Part, ...]:
    found: list[Part] = []
    for part in parts:
        if isinstance(part, Repeat):
            found.append(Repeat(_patched(part.parts, offset, matches, starts), part.length, part.count))
        elif isinstance(part, Fetch):
            pieces = _pieces(offset, part.length, matches, starts)
            if any(isinstance(piece, Copy) for piece in pieces):
                found.append(Patch(part.reference, part.length, part.count, pieces))
            else:
                found.append(part)
        else:
            found.append(part)
        offset += part.length * part.count
    return tuple(found)


def _pieces(offset: int, length: int, matches: list[_Match], starts: list[int]) -> tuple[Copy | Literal, ...]:
    """Copies and literals that tile bytes offset to offset + length."""
    pieces: list[Copy | Literal] = []
    at, end = offset, offset + length
    row = max(0, bisect_right(starts, offset) - 1)
    while at < end:
        if row == len(matches) or matches[row].offset >= end:
            pieces.append(Literal(end - at))
            break
        match = matches[row]
        stop = min(end, match.offset + match.copy.length)
        if match.offset > at:
            pieces.append(Literal(match.offset - at))
            at = match.offset
        if stop > at:
            if stop - at == match.copy.length:
                pieces.append(match.copy)
            else:
                skipped = at - match.offset
                pieces.append(Copy(match.copy.base, match.copy.offset + skipped, stop - at))
            at = stop
        row += 1
    return tuple(pieces)
