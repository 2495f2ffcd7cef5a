"""Check blocks: which of them contain matched blocks, their digests, and their assignment to range requests.

A check block is a fixed verification block of a file. Matched blocks are found by short fingerprints, which
are sometimes wrong. The digest of a check block shows a false match before the missing bytes of the file are
sent. The correct bytes then come in the same answer, without another round trip.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import filterfalse

from rdc.kernel import (
    around_ranges,
    block_fingerprints,
    copies_of_instructions,
    instructions_of_range,
    instructions_of_ranges,
)
from rdc.limits import (
    CHECK_BLOCKS_PER_ANSWER,
    CHECK_BLOCKS_PER_MESSAGE,
    PACKED_CONTEXT_BYTES,
    RANGES_PER_MESSAGE,
    SIZE_LIMIT,
)
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, CHECK_BLOCK_DIGEST_BYTES
from rdc.signature.tree import chunk_offsets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.plan.descent import Part
    from rdc.signature.tree import SignatureTree


def by_base(reads: array[int]) -> list[tuple[int, array[int]]]:
    """Return each base's number with its offsets and lengths, alternating. `reads` has the kernel's rows
    (base, offset, length), ordered by base."""
    found: list[tuple[int, array[int]]] = []
    bases = reads[0::3]
    first = 0
    while first < len(bases):
        base = bases[first]
        stop = bisect_right(bases, base, first)
        rows = reads[3 * first : 3 * stop]
        del rows[0::3]
        found.append((base, rows))
        first = stop
    return found


def unverified_check_blocks(
    parts: Sequence[Part], trees: Sequence[SignatureTree], size: int
) -> Iterator[tuple[tuple[int, ...], bytes]]:
    """Yield the check blocks of a file that contain matched blocks, with the copy instructions for their
    contents.

    `parts` make the file of `size` bytes. Each item has up to CHECK_BLOCKS_PER_ANSWER check block numbers.
    LITERAL stands for bytes that have to be fetched; their digest is computed over zeros.

    Check blocks with bytes that are neither present nor requested are left out. These occur in runs of equal
    chunks.
    """
    copies, check_blocks = _copies(parts, trees), _with_matches(parts)
    offsets = copies[0::4]
    for first in range(0, len(check_blocks), CHECK_BLOCKS_PER_ANSWER):
        some = tuple(check_blocks[first : first + CHECK_BLOCKS_PER_ANSWER])
        wanted = array("Q")
        for at, stop in check_block_ranges(some):
            wanted.extend((at, min(stop, size) - at))
        row = max(0, bisect_right(offsets, wanted[0]) - 1)
        stop_row = bisect_left(offsets, wanted[-2] + wanted[-1])
        yield some, instructions_of_ranges(copies[4 * row : 4 * stop_row], wanted)[0]


def check_block_ranges(check_blocks: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) offsets in the file of each run of consecutive check blocks. A last block counts
    in full, even past the end of the file."""
    first = 0
    while first < len(check_blocks):
        stop = first + 1
        while stop < len(check_blocks) and check_blocks[stop] - check_blocks[stop - 1] == 1:
            stop += 1
        yield check_blocks[first] * CHECK_BLOCK_BYTES, (check_blocks[stop - 1] + 1) * CHECK_BLOCK_BYTES
        first = stop


def _with_matches(parts: Sequence[Part]) -> list[int]:
    """Return the check blocks that contain matched blocks, and no repeated content."""
    from rdc.plan.descent import Patch, Repeat  # a source only makes digests

    found: list[int] = []
    torn: set[int] = set()
    at = behind = 0
    for part in parts:
        end = at + part.length * part.count
        repeated = at if isinstance(part, Repeat) else at + part.length
        if repeated < end:
            # The first and the last: those between contain nothing else, so no patch reaches them.
            torn.update((repeated // CHECK_BLOCK_BYTES, (end - 1) // CHECK_BLOCK_BYTES))
        if isinstance(part, Patch):
            first, stop = at // CHECK_BLOCK_BYTES, (at + part.length - 1) // CHECK_BLOCK_BYTES + 1
            found += range(max(behind, first), stop)
            behind = stop
        at = end
    return list(filterfalse(torn.__contains__, found))


_OTHER_KEY = bytes(range(255, -1, -1))
"""For bytes.translate: inverts each bit of a key."""


def check_block_digests(secret: bytes, images: Buffer) -> bytes:
    """Return CHECK_BLOCK_DIGEST_BYTES for each check block in `images`, keyed with the session's secret.

    The key differs from the one for block fingerprints. With the same polynomial, a false match at the end of
    a check block would stay unnoticed.
    """
    return block_fingerprints(
        secret.translate(_OTHER_KEY), images, CHECK_BLOCK_BYTES, CHECK_BLOCK_DIGEST_BYTES
    )


def divided(ranges: array[int], check_blocks: Sequence[int]) -> Iterator[tuple[array[int], slice]]:
    """Divide ranges and check blocks over requests. Yields (ranges, slice of `check_blocks`), where ranges
    alternate offset and length. If there are ranges at all, every request has some.

    The ranges within one check block go into one request, because its digest covers all other bytes of the
    block. A range is cut if necessary. Check blocks that fit into no request are left out.
    """
    blocks = len(check_blocks)
    if ranges and len(ranges) <= 2 * RANGES_PER_MESSAGE and blocks <= CHECK_BLOCKS_PER_MESSAGE:
        behind = check_blocks[-1] - (ranges[-2] + ranges[-1]) // CHECK_BLOCK_BYTES if blocks else 0
        if behind < CHECK_BLOCKS_PER_MESSAGE:
            yield ranges, slice(0, blocks)  # one request takes all of them, as it does for most files
            return
    left, first = _Ranges(ranges), 0
    while not ranges and first < len(check_blocks):
        yield array("Q"), slice(first, min(first + CHECK_BLOCKS_PER_MESSAGE, len(check_blocks)))
        first += CHECK_BLOCKS_PER_MESSAGE
    while left:
        stop = min(left.stop, ranges[-2] + ranges[-1] + CHECK_BLOCK_BYTES * CHECK_BLOCKS_PER_MESSAGE)
        last = _check_blocks_before(stop, check_blocks, first)
        some = left.take(min(stop, _start_of(check_blocks, first + CHECK_BLOCKS_PER_MESSAGE)))
        if some:
            yield some, slice(first, last)
        first = last


def divided_wholly(ranges: array[int], check_blocks: Sequence[int]) -> Iterator[tuple[array[int], slice]]:
    """Like `divided`, but leaves out no check block. Requests may have no ranges."""
    left, first = _Ranges(ranges), 0
    while left or first < len(check_blocks):
        stop = min(left.stop, _start_of(check_blocks, first + CHECK_BLOCKS_PER_MESSAGE))
        last = _check_blocks_before(stop, check_blocks, first)
        yield left.take(stop), slice(first, last)
        first = last


def _start_of(check_blocks: Sequence[int], row: int) -> int:
    """Return the file offset of the check block in this row, or SIZE_LIMIT past the last row."""
    return check_blocks[row] * CHECK_BLOCK_BYTES if row < len(check_blocks) else SIZE_LIMIT


def _check_blocks_before(stop: int, check_blocks: Sequence[int], first: int) -> int:
    """Return the first row from `first` on whose check block begins at `stop` or later, or exceeds the room
    of a request."""
    return bisect_left(
        check_blocks,
        -(-stop // CHECK_BLOCK_BYTES),
        first,
        min(first + CHECK_BLOCKS_PER_MESSAGE, len(check_blocks)),
    )


class _Ranges:
    """Ranges that no request has yet."""

    __slots__ = ("_first", "_offsets", "_rows")

    def __init__(self, rows: array[int]) -> None:
        """`rows`: offset and length alternate; no two ranges touch."""
        self._rows = rows[:]
        self._offsets = rows[0::2]
        self._first = 0

    def __bool__(self) -> bool:
        return self._first < len(self._offsets)

    @property
    def stop(self) -> int:
        """Start of the check block up to which one request can take all ranges."""
        row = self._first + RANGES_PER_MESSAGE
        # This many ranges do not touch each other, so they span more than one check block.
        return (
            self._offsets[row] // CHECK_BLOCK_BYTES * CHECK_BLOCK_BYTES
            if row < len(self._offsets)
            else SIZE_LIMIT
        )

    def take(self, stop: int) -> array[int]:
        """Remove and return the ranges before offset `stop`. A range across it is cut."""
        last = bisect_left(self._offsets, stop, self._first)
        some = self._rows[2 * self._first : 2 * last]
        self._first = last
        over = some[-2] + some[-1] - stop if some else 0
        if over > 0:
            some[-1] -= over
            self._first -= 1
            self._offsets[self._first] = self._rows[2 * self._first] = stop
            self._rows[2 * self._first + 1] = over
        return some


# Bytes around the fetched ranges of a file that both sides have. They prime the compression of the fetched
# bytes.

PlacedMatch = tuple[int, int, int, int]
"""(offset in the file, base, offset in the base, length), in bytes."""


def context_rows(ranges: array[int], size: int) -> array[int]:
    """Return the bytes next to `ranges` that are in none of them, for a file of `size` bytes.

    `ranges` has at least one range. Arguments and result are rows (offset, length) in file order. Both sides
    of each range get the same number of bytes, PACKED_CONTEXT_BYTES in total.
    """
    return array("Q", around_ranges(ranges, PACKED_CONTEXT_BYTES // len(ranges), size))


def known_matches(
    parts: Sequence[Part], trees: Sequence[SignatureTree], wanted: array[int]
) -> Iterator[PlacedMatch] | None:
    """Yield where the bases have the `wanted` ranges (rows of offset and length) of the file that `parts`
    make.

    Returns None if any part repeats. Literals are seldom near repeated content.
    """
    from rdc.plan.descent import Repeat

    if any(isinstance(part, Repeat) or part.count != 1 for part in parts):
        return None
    return _placed(_copies(parts, trees), wanted)


def _placed(copies: array[int], wanted: array[int]) -> Iterator[PlacedMatch]:
    for offset, length in zip(wanted[0::2], wanted[1::2], strict=True):
        found = iter(
            array("Q", copies_of_instructions(instructions_of_range(copies, offset, length), offset))
        )
        yield from zip(found, found, found, found, strict=True)


def _copies(parts: Sequence[Part], trees: Sequence[SignatureTree]) -> array[int]:
    """Return everything that is copied from bases, in file order, as the kernel's rows of copies. Repeated
    content comes once, where it begins; what repeats as a sequence of parts does not come at all."""
    from rdc.plan.descent import Patch, Reuse, ReuseChunk

    offsets = list(map(chunk_offsets, trees))
    copies = array("Q")
    at = 0
    for part in parts:
        if isinstance(part, Reuse):
            copies.extend((at, part.base, offsets[part.base][part.first], part.length))
        elif isinstance(part, ReuseChunk):
            copies.extend((at, part.base, offsets[part.base][part.row], part.length))
        elif isinstance(part, Patch):
            copies.frombytes(copies_of_instructions(part.chunk_recipe.instructions, at))
        at += part.length * part.count
    return copies
