"""Open ranges in as many messages as their bounds take: nothing is lost, doubled or put into another gap."""

from __future__ import annotations

from array import array
from itertools import pairwise
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from rdc.plan import search as open_ranges
from rdc.plan.search import Gap, UnmatchedRanges

RANGES, BLOCKS = 5, 7
SIZE = 16
"""Bytes of a block."""


@st.composite
def columns(draw: st.DrawFn) -> UnmatchedRanges:
    """Ranges of some gaps, behind one another; some of a gap come in several parts."""
    found, at = UnmatchedRanges(), 0
    for _ in range(draw(st.integers(1, 6))):
        gap = Gap(at, 0, (), 0, 0)
        for _ in range(draw(st.integers(1, 2))):
            ranges = array("Q")
            for _ in range(draw(st.integers(0, 6))):
                at += draw(st.integers(0, 3))
                length = draw(st.integers(1, 3 * SIZE) | st.integers(1, 3 * BLOCKS * SIZE))
                ranges.extend((at, length))
                at += length
            found.add(gap, ranges)
    return found


def bytes_of(ranges: UnmatchedRanges) -> list[tuple[int, int]]:
    """Each byte that they are about, with the number of its gap."""
    found, first = [], 0
    for gap, count in zip(ranges.gaps, ranges.counts, strict=True):
        for at in range(first, first + count):
            offset, length = ranges.ranges[2 * at : 2 * at + 2]
            found += [(id(gap), byte) for byte in range(offset, offset + length)]
        first += count
    assert 2 * first == len(ranges.ranges)
    return found


@given(columns())
def test_messages_together_are_about_the_same_bytes(ranges: UnmatchedRanges) -> None:
    with (
        mock.patch.object(open_ranges, "RANGES_PER_MESSAGE", RANGES),
        mock.patch.object(open_ranges, "BLOCKS_PER_MESSAGE", BLOCKS),
    ):
        if not ranges.ranges:
            return
        parts = list(ranges.messages(SIZE))
        assert [found for part in parts for found in bytes_of(part)] == bytes_of(ranges)
        for part in parts:
            blocks = [-(-length // SIZE) for length in part.ranges[1::2]]
            assert 0 < len(blocks) <= RANGES
            assert part.blocks(SIZE)[-1] == sum(blocks) <= BLOCKS
            assert part.fits(SIZE)
            assert min(part.counts) > 0
        # A range that is parted is parted between blocks: there are no more of them than in one message.
        whole = [-(-length // SIZE) for length in ranges.ranges[1::2]]
        assert sum(part.blocks(SIZE)[-1] for part in parts) == sum(whole)
        assert ranges.fits(SIZE) == (len(whole) <= RANGES and sum(whole) <= BLOCKS)


@given(columns())
def test_no_message_has_room_for_what_the_next_begins_with(ranges: UnmatchedRanges) -> None:
    """But for what is left of a range too long for one."""
    with (
        mock.patch.object(open_ranges, "RANGES_PER_MESSAGE", RANGES),
        mock.patch.object(open_ranges, "BLOCKS_PER_MESSAGE", BLOCKS),
    ):
        parts = list(ranges.messages(SIZE)) if ranges.ranges else []
        for part, following in pairwise(parts):
            more = -(-following.ranges[1] // SIZE)
            assert len(part.ranges) // 2 == RANGES or part.blocks(SIZE)[-1] + more > BLOCKS
