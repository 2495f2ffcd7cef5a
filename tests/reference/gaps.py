"""The block search of several gaps of a file, one after another by rdc.plan.gap_search."""

from __future__ import annotations

import struct
from array import array

from rdc.plan.gap_search import NOWHERE, Match, Span, search_gap
from tests.reference import blocks as block_search

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["search_gaps"]

OFFSET_HIGHEST = 1 << 63
RANGE_LONGEST = 1 << 32


def search_gaps(
    key: bytes,
    windows: ReadableBuffer,
    size: int,
    width: int,
    smaller: int,
    gaps: ReadableBuffer,
    ranges: ReadableBuffer,
    matches: ReadableBuffer,
    fingerprints: ReadableBuffer,
    /,
) -> tuple[bytes, bytes, bytes]:
    """Runs `search_gap` for several gaps with one window each. All numbers are little-endian with 64 bits.

    `windows`: the bytes of all windows one after another. `gaps`, four numbers each: offset of its window in
    the base, length of the window, number of ranges, number of matches. `ranges`, two each: offset in the
    file, length. `matches`, three each: offset in the file, offset in the base, length.
    `fingerprints`: of the blocks of `size` bytes of each range; the last block may be shorter. `smaller`:
    bytes of the next smaller block, 0 for none.

    Returns three columns: for each gap its number of matches and of ranges, the matches, and the ranges.
    ValueError if counts do not add up, if ranges or matches of a gap are not in order, or if a match lies
    outside the window.
    """
    data, prints = bytes(windows), bytes(fingerprints)
    if len(key) != 16 or size < 1 or not 1 <= width <= 8 or len(prints) % width:
        raise ValueError(
            "blocks: a key of 16 bytes, a size of >= 1, a width of 1 to 8, fingerprints without a rest"
        )
    packed = bytes(gaps), bytes(ranges), bytes(matches)
    if smaller < 0 or any(len(rows) % (8 * fields) for rows, fields in zip(packed, (4, 2, 3), strict=True)):
        raise ValueError("gaps: rows of 32, 16 and 24 bytes, smaller blocks of >= 0 bytes")
    spans = [Span(*row) for row in struct.iter_unpack("<2Q", packed[1])]
    earlier = [Match(*row) for row in struct.iter_unpack("<3Q", packed[2])]
    at = at_span = at_match = at_print = 0
    counts, found, left = array("Q"), array("Q"), array("Q")
    for start, length, more_spans, more_matches in struct.iter_unpack("<4Q", packed[0]):
        some = spans[at_span : at_span + more_spans]
        known = earlier[at_match : at_match + more_matches]
        if start > OFFSET_HIGHEST or length > len(data) - at:
            raise ValueError("gaps: a window outside of the data")
        if (len(some), len(known)) != (more_spans, more_matches):
            raise ValueError("gaps: more ranges or matches than there are")
        _check_order(some, known, Span(start, length))
        blocks = sum(-(-span.length // size) for span in some)
        if blocks * width > len(prints) - at_print:
            raise ValueError("gaps: more blocks than fingerprints")
        window = data[at : at + length]

        def find(
            inside: Span, size: int, wanted: bytes, window: bytes = window, start: int = start
        ) -> list[int]:
            base = window[inside.start - start :][: inside.length]
            base_offsets = array("Q", block_search.match_blocks(key, base, size, width, wanted))
            return [
                base_offset if base_offset == NOWHERE else base_offset + inside.start
                for base_offset in base_offsets
            ]

        mine = prints[at_print : at_print + blocks * width]
        outcome = search_gap([Span(start, length)], size, width, smaller, some, known, mine, find)
        counts.extend((len(outcome.matches), len(outcome.ranges)))
        for match in outcome.matches:
            found.extend(match)
        for span in outcome.ranges:
            left.extend(span)
        at += length
        at_span += more_spans
        at_match += more_matches
        at_print += blocks * width
    if (at, at_span, at_match, at_print) != (len(data), len(spans), len(earlier), len(prints)):
        raise ValueError("gaps: windows, ranges, matches or fingerprints that belong to none")
    return _packed(counts), _packed(found), _packed(left)


def _packed(rows: array[int]) -> bytes:
    return struct.pack(f"<{len(rows)}Q", *rows)


def _check_order(ranges: list[Span], matches: list[Match], window: Span) -> None:
    end = 0
    for start, length in ranges:
        if not (end <= start <= OFFSET_HIGHEST and 1 <= length <= RANGE_LONGEST):
            raise ValueError("gaps: ranges of 1 to 2^32 bytes, in order, at offsets up to 2^63")
        end = start + length
    end = 0
    for offset, base_offset, length in matches:
        if not (end <= offset <= OFFSET_HIGHEST and 1 <= length <= window.length) or not (
            window.start <= base_offset <= window.start + window.length - length
        ):
            raise ValueError("gaps: matches in order, at offsets up to 2^63, within the window")
        end = offset + length
