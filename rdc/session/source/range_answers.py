"""The source's answers about ranges of a file: fingerprints of their blocks, and their bytes.

Before the bytes it answers claims: it checks the check blocks and sends those that are wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate
from operator import add

from rdc.kernel import (
    assemble,
    block_fingerprints,
    instructions_of_range,
    plan_reads,
    range_reads,
    take_ranges,
)
from rdc.lean.records import dataclass
from rdc.limits.wire import CHECK_BLOCKS_PER_ANSWER, DATA_BYTES
from rdc.plan.check_blocks import check_block_digests, check_block_ranges
from rdc.plan.known_context import context_rows
from rdc.protocol import messages
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES, CHECK_BLOCK_DIGEST_BYTES, rests
from rdc.protocol.wire.stream import pack_literals
from rdc.session.binaries.filters import (
    LOOK_AHEAD,
    LOOK_BACK,
    RangeOffsets,
    cut_displacements,
    encode,
    mask,
    mask_ranges,
    masked_reader,
)
from rdc.session.runtime.commands import Send, SetCompression
from rdc.session.runtime.compression_policy import Content
from rdc.session.source.demand import CLOSE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.files.root.source_file import SourceFile
    from rdc.session.runtime.commands import Conversation

__all__ = ["corrections", "end_of", "cached_fingerprints", "packed_ranges", "ranges", "read_fingerprints"]


@dataclass(frozen=True, slots=True)
class _CheckBlocks:
    """Check blocks back to back, as the destination's claims have them: with zeros for the requested ranges,
    and with masked displacements if the request is masked."""

    numbers: tuple[int, ...]
    content: bytes | bytearray
    displacements: bytes = b""
    """The displacements outside of the requested ranges, as they are sent."""
    counts: bytes = b""
    """Bytes of displacements per check block, 64-bit numbers."""

    def displacements_without(self, wrong: Sequence[int]) -> bytes:
        """Returns the displacements except those of the check blocks in these rows."""
        if not wrong:
            return self.displacements
        ends = array("Q", accumulate(array("Q", self.counts), initial=0))
        return b"".join(
            self.displacements[ends[row] : ends[row + 1]]
            for row in range(len(self.numbers))
            if row not in wrong
        )


def corrections(
    source: SourceFile, message: messages.RangeRequest, secret: bytes
) -> Iterator[messages.Correction | messages.Targets]:
    """Yields what answers the claims of `message`, before its ranges are sent. `secret`: the session's.

    Check blocks that lie wholly in requested ranges have no claim. Raises FileChangedError if the file is
    shorter by now.
    """
    claims, at = message.claims, 0
    for blocks in _claimed_blocks(source, message):
        digests = check_block_digests(secret, blocks.content)
        claimed = claims.digests[at : at + len(digests)]
        at += len(digests)
        wrong = []
        if claimed != digests:
            wrong = [
                row
                for row, start in enumerate(range(0, len(claimed), CHECK_BLOCK_DIGEST_BYTES))
                if claimed[start : start + CHECK_BLOCK_DIGEST_BYTES]
                != digests[start : start + CHECK_BLOCK_DIGEST_BYTES]
            ]
            yield from _correction(source, message, [blocks.numbers[row] for row in wrong])
        displacements = blocks.displacements_without(wrong) if blocks.displacements else b""
        if displacements:
            yield messages.Targets(message.file, displacements)


def _claimed_blocks(source: SourceFile, message: messages.RangeRequest) -> Iterator[_CheckBlocks]:
    """Yields all claimed check blocks, CHECK_BLOCKS_PER_ANSWER at a time."""
    ends = array("Q", (0, *accumulate(map(add, message.gaps, message.lengths))))
    known = array("Q", bytes(32 * len(ends)))
    known[0::4] = known[2::4] = ends
    known[3::4] = array("Q", (*message.gaps, source.size - ends[-1]))
    around = (LOOK_BACK, LOOK_AHEAD, array("Q", (source.size,))) if message.blank else ()
    for first in range(0, len(message.claims.cells), CHECK_BLOCKS_PER_ANSWER):
        numbers = message.claims.cells[first : first + CHECK_BLOCKS_PER_ANSWER]
        copies = b"".join(
            instructions_of_range(known, start, min(stop, source.size) - start)
            for start, stop in check_block_ranges(numbers)
        )
        requested, reads, sources = plan_reads(copies, CHECK_BLOCK_BYTES, *around)
        rows = array("Q", reads)
        del rows[0::3]  # the number of the base, which is always the file itself
        content = source.read_ranges(rows)
        if message.blank:
            yield _CheckBlocks(numbers, *cut_displacements(sources, content, rows[1::2], numbers))
        else:
            yield _CheckBlocks(numbers, assemble(sources, content, bytes(requested)))


def _correction(
    source: SourceFile, message: messages.RangeRequest, wrong: list[int]
) -> Iterator[messages.Correction]:
    """Yields one correction for the `wrong` check blocks, or none if there is nothing to correct."""
    found = list(rests(message.rows, wrong, source.size))
    numbers = tuple(sorted({number for number, _, _ in found}))
    if numbers:
        payload = b"".join(source.pread(offset, length) for _, offset, length in found)
        yield messages.Correction(message.file, numbers, payload)


HARD_BYTES = 128 << 10
"""Literals of one file are compressed at a higher level from this many bytes on. They are most of what is
sent. 444 KB of a new TypeScript became 349 KB, for 15 ms of CPU time (measured)."""

RANGES_AT_ONCE = 2048
"""Ranges masked at a time. Each needs at most 1.1 KB of surroundings: little more than 2 MB in all."""


def end_of(message: messages.BlockRequest | messages.RangeRequest) -> int:
    """Returns the smallest size in bytes of a file that has all that the request names."""
    end = message.end
    if isinstance(message, messages.RangeRequest) and message.claims.cells:
        end = max(end, message.claims.cells[-1] * CHECK_BLOCK_BYTES + 1)
    return end


def cached_fingerprints(content: bytes, message: messages.BlockRequest, secret: bytes) -> bytes:
    """Returns the requested fingerprints of a file that is in memory. `secret`: the session's."""
    rows = message.rows
    if message.blank:
        whole = bytearray(content)
        mask(whole)
        content = bytes(whole)
    ranges = take_ranges(rows, 0, content)
    return block_fingerprints(secret, ranges, message.size, message.width, rows[1::2])


def read_fingerprints(source: SourceFile, message: messages.BlockRequest, secret: bytes) -> bytes:
    """Returns the requested fingerprints of an open file. `secret`: the session's.

    This function and those below raise FileChangedError if the file changed since it was opened.
    """
    size, width = message.size, message.width
    fingerprints = bytearray()
    # A long range is read in whole blocks: only its last block may be shorter.
    most = DATA_BYTES // size * size
    masked = message.blank
    contents = _masked(source, message.rows, most) if masked else _contents(source.peek, message.rows, most)
    for content, lengths in contents:
        fingerprints += block_fingerprints(secret, content, size, width, lengths)
    source.check_unchanged()
    return bytes(fingerprints)


def packed_ranges(
    source: SourceFile, message: messages.RangeRequest, secret: bytes, round_: int
) -> Conversation[None]:
    """Sends all ranges in one message, compressed with the bytes around them, which the destination has."""
    answers = list(corrections(source, message, secret))
    literals, context = (
        b"".join([content for content, _ in _contents(source.peek, rows, DATA_BYTES)])
        for rows in (message.rows, context_rows(message.rows, source.size))
    )
    source.check_unchanged()
    for answer in answers:
        yield Send(answer, round_)
    yield Send(messages.Literals(message.file, pack_literals(literals, context)), round_)


def ranges(
    source: SourceFile,
    message: messages.RangeRequest,
    secret: bytes,
    round_: int,
    *,
    code: bool,
    listen: Callable[[], Conversation[None]],
) -> Conversation[None]:
    """Sends the ranges back to back in as few messages as possible: many are shorter than a message header.

    `code`: content may be encoded by the filters for x86 code and number tables. `listen`: takes events that
    the destination sends meanwhile.
    """
    total = sum(message.lengths)
    if message.blank:
        yield SetCompression(Content.CODE, total)
    elif total >= HARD_BYTES:
        yield SetCompression(Content.TEXT)
    rows = message.rows
    offsets = RangeOffsets(rows) if code else None
    for answer in corrections(source, message, secret):
        yield Send(answer, round_)
        yield from listen()
    unsent = bytearray()
    for content, _ in _contents(source.peek, rows, DATA_BYTES):
        unsent += content
        if len(unsent) >= DATA_BYTES:
            yield Send(_data(message.file, unsent[:DATA_BYTES], offsets), round_)
            yield from listen()
            del unsent[:DATA_BYTES]
    source.check_unchanged()
    if unsent:
        yield Send(_data(message.file, unsent, offsets), round_)
    # There is no digest: the destination knows the root.
    yield Send(messages.FileEnd(message.file, total), round_)


def _data(
    file: int, content: bytearray, offsets: RangeOffsets | None
) -> messages.Data | messages.Code | messages.Table:
    """Returns the next bytes of ranges as a message, encoded if there are `offsets`."""
    if offsets is None:
        return messages.Data(file, memoryview(content))
    return encode(file, content, offsets.take(len(content)))


def _masked(source: SourceFile, ranges: array[int], most: int) -> Iterator[tuple[Buffer, array[int]]]:
    """Does what `_contents` does, with masked displacements. Reads nothing between ranges."""
    read = masked_reader(source)
    ends = array("Q", accumulate(ranges[1::2]))
    first = done = 0
    while first < len(ends):
        stop = min(bisect_right(ends, done + most, first), first + RANGES_AT_ONCE)
        if stop > first + 1:
            some = ranges[2 * first : 2 * stop]
            yield mask_ranges(source, some), some[1::2]
        else:
            stop = first + 1
            start, length = ranges[2 * first], ranges[2 * first + 1]
            for at in range(0, length, most):
                part = min(most, length - at)
                yield read(start + at, part), array("Q", (part,))
        first, done = stop, ends[stop - 1]


def _contents(
    read: Callable[[int, int], bytes | memoryview], ranges: array[int], most: int
) -> Iterator[tuple[Buffer, array[int]]]:
    """Yields the content of ranges back to back, at most `most` bytes at a time, and the length of each part.

    `ranges`: rows (offset, length). Close ranges are read at once. `read` takes offset and length.
    """
    reads = iter(array("Q", range_reads(ranges, CLOSE_BYTES, most)))
    first = 0
    for count, start, length in zip(reads, reads, reads, strict=True):
        some = ranges[2 * first : 2 * (first + count)]
        first += count
        if count > 1:
            yield take_ranges(some, start, read(start, length)), some[1::2]
            continue
        for at in range(0, length, most):
            part = min(most, length - at)
            yield read(start + at, part), array("Q", (part,))
