"""The block search of one gap of a file in windows of a base: the definition of rdc.kernel.search_gaps, and
what searches the rare gap that has several windows.

A gap is an unmatched range of a file. A window is the part of the base to search. Blocks that are found
become matches; the content between them is asked about in smaller blocks.

A single block at an offset out of order is searched again between its neighbours. A fingerprint of 4 bytes
falsely matches a block of new content in a window of 40 KB once in 100,000 times. Over the thousands of
blocks of a session that is often enough to matter, because the repair takes further round trips. Two
consecutive blocks found at consecutive offsets are no accident. A block found between its neighbours is none
either, because that range is hardly longer than the block.
"""

from __future__ import annotations

from bisect import bisect_left

from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias


NOWHERE = (1 << 64) - 1
"""Offset of a block that was not found."""

RUN_BLOCKS = 8
"""More consecutive unmatched blocks than this are new content. Smaller blocks are then asked for at both ends
only."""

TAIL_BYTES = 16
"""A tail of a range shorter than this costs less as a literal than as a fingerprint."""

END_MARGIN = 4 << 10
"""The tail of a range is searched within this many bytes of the end of a window."""

STRAY_LOOK = 4 << 10
"""Cost of one search call, counted in searched bytes. Blocks out of order may cost at most as much as the
search of their windows did, whatever fingerprints arrive."""


class Span(NamedTuple):
    """`length` bytes from `start` on, of a file or of a base."""

    start: int
    length: int


class Match(NamedTuple):
    """A match: `length` bytes at `offset` of a file that a base seems to have at `base_offset`."""

    offset: int
    base_offset: int
    length: int

    def precedes(self, other: Match) -> bool:
        """Return whether `other` continues where this match ends, in the file and in the base."""
        return (
            self.offset + self.length == other.offset and self.base_offset + self.length == other.base_offset
        )


class Outcome(NamedTuple):
    """The matches of a gap after a search, and the ranges to ask about next; both in order."""

    matches: list[Match]
    ranges: list[Span]


Find: TypeAlias = "Callable[[Span, int, bytes], Sequence[int]]"
"""(window, size, fingerprints) -> the offset in the base of each block, or NOWHERE."""


class _Block(Record, frozen=False):
    offset: int
    length: int
    fingerprint: bytes
    base_offset: int

    @property
    def found(self) -> Match | None:
        return None if self.base_offset == NOWHERE else Match(self.offset, self.base_offset, self.length)


def search_gap(
    windows: Sequence[Span],
    size: int,
    width: int,
    smaller: int,
    ranges: Sequence[Span],
    matches: Sequence[Match],
    fingerprints: bytes,
    find: Find,
) -> Outcome:
    """Search for the blocks of a gap's `ranges` in `windows`. The arguments are those of `search_gaps`.

    All whole blocks are searched together in every window; the first window that has a block wins. A tail has
    a length of its own and is searched only at the ends of the windows. Then blocks out of order are searched
    between their neighbours. The remaining ranges are cut again.
    """
    whole = b""
    at = 0
    for span in ranges:
        whole += fingerprints[at : at + span.length // size * width]
        at += -(-span.length // size) * width
    base_offsets = iter(_search(windows, size, width, whole, find))
    blocks: list[list[_Block]] = []
    at = 0
    for span in ranges:
        some = []
        for offset in range(0, span.length, size):
            length, fingerprint = min(size, span.length - offset), fingerprints[at : at + width]
            if length == size:
                base_offset = next(base_offsets)
            else:
                ends = [_near_end(window, length) for window in windows]
                (base_offset,) = _search(ends, length, width, fingerprint, find)
            some.append(_Block(span.start + offset, length, fingerprint, base_offset))
            at += width
        blocks.append(some)
    _put_in_order([block for some in blocks for block in some], windows, matches, find)
    found = [block.found for some in blocks for block in some]
    left = [span for some in blocks for span in _unfound(some, smaller)]
    return Outcome(_joined([*matches, *(match for match in found if match is not None)]), left)


def _search(windows: Sequence[Span], size: int, width: int, fingerprints: bytes, find: Find) -> list[int]:
    """Search all windows. The first window that has a block wins."""
    base_offsets = [NOWHERE] * (len(fingerprints) // width)
    for window in windows:
        if window.length >= size and NOWHERE in base_offsets:
            for row, base_offset in enumerate(find(window, size, fingerprints)):
                if base_offsets[row] == NOWHERE:
                    base_offsets[row] = base_offset
    return base_offsets


def _near_end(window: Span, length: int) -> Span:
    take = min(window.length, length + 2 * END_MARGIN)
    return Span(window.start + window.length - take, take)


def _put_in_order(
    blocks: Sequence[_Block], windows: Sequence[Span], matches: Sequence[Match], find: Find
) -> None:
    """Search single blocks that are out of order between their neighbours instead.

    Repeated content is found at its first offset in a base, which may be the wrong one. A false match is not
    found again.
    """
    # long because the definition stands in one piece, to be compared with the C form
    if all(block.base_offset == NOWHERE for block in blocks):
        return
    # Equal offsets occur only in forged matches; the earlier match then comes first.
    anchors = sorted((*matches, *_runs(blocks)), key=lambda match: match.offset)
    offsets = [match.offset for match in anchors]
    left = sum(window.length for window in windows)
    for block in blocks:
        found = block.found
        if found is None:
            continue
        at = bisect_left(offsets, found.offset)
        before, after = anchors[at - 1] if at else None, anchors[at] if at < len(anchors) else None
        if after is not None and (after.offset == found.offset or found.precedes(after)):
            continue
        if before is not None and (before.offset + before.length > found.offset or before.precedes(found)):
            continue  # part of a run of blocks, or the continuation of the match before
        first = before.base_offset + before.length if before else min(window.start for window in windows)
        last = after.base_offset if after else max(window.start + window.length for window in windows)
        if first <= found.base_offset <= last - found.length:
            continue
        block.base_offset = NOWHERE
        if found.length <= last - first <= left - STRAY_LOOK:
            left -= last - first + STRAY_LOOK
            (block.base_offset,) = find(Span(first, last - first), found.length, block.fingerprint)


def _runs(blocks: Sequence[_Block]) -> Iterator[Match]:
    """Yield runs of two or more consecutive blocks found at consecutive offsets, each as one match."""
    earlier: Match | None = None
    earlier_blocks = 0
    for block in (*(block.found for block in blocks), None):
        if earlier is not None and block is not None and earlier.precedes(block):
            earlier = Match(earlier.offset, earlier.base_offset, earlier.length + block.length)
            earlier_blocks += 1
            continue
        if earlier is not None and earlier_blocks > 1:
            yield earlier
        earlier, earlier_blocks = block, 1


def _joined(matches: list[Match]) -> list[Match]:
    """Return the matches in file order. Neighbours that continue in both become one."""
    joined: list[Match] = []
    for match in sorted(matches, key=lambda match: match.offset):
        if joined and joined[-1].precedes(match):
            joined[-1] = joined[-1]._replace(length=joined[-1].length + match.length)
        else:
            joined.append(match)
    return joined


def _unfound(blocks: Sequence[_Block], smaller: int) -> Iterator[Span]:
    """Yield the parts of one range to ask about in smaller blocks."""
    if not smaller:
        return
    run: list[_Block] = []
    for block in (*blocks, None):
        if block is not None and block.base_offset == NOWHERE:
            run.append(block)
            continue
        if len(run) > RUN_BLOCKS:
            ends = [Span(end.offset, end.length) for end in (run[0], run[-1])]
        else:
            ends = [Span(run[0].offset, sum(block.length for block in run))] if run else []
        for start, length in ends:
            rest = length % smaller
            worth = length - rest if rest < TAIL_BYTES else length
            if worth:
                yield Span(start, worth)
        run = []
