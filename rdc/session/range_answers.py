"""A source's answers about ranges of a file: fingerprints of their blocks, and their bytes."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from itertools import accumulate

from rdc.kernel import blank_targets, block_fingerprints
from rdc.kernel.pieces import range_reads, take_ranges
from rdc.limits import DATA_BYTES
from rdc.plan.context import context_rows
from rdc.protocol.claims import CELL_BYTES
from rdc.protocol.messages import Code, Data, FileEnd, Literals, RangeRequest, Table
from rdc.protocol.packed import pack
from rdc.session.blanks import SOUGHT, blanked_ranges, blanking
from rdc.session.cell_checks import corrections
from rdc.session.code import Places, has_code
from rdc.session.commands import Press, Send
from rdc.session.pressure import Content
from rdc.session.tables import tabled

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from typing_extensions import Buffer

    from rdc.files.source import SourceFile
    from rdc.protocol.messages import BlockRequest
    from rdc.session.commands import Conversation

__all__ = ["end_of", "held_fingerprints", "packed_ranges", "ranges", "read_fingerprints"]

HARD_BYTES = 128 << 10
"""Literals of one file from which on they are compressed hard: a descent took its time over them, and they
are most of what is sent. 444 KB of a new TypeScript became 349 KB so, in 15 ms more (measured)."""

CLOSE_BYTES = 16 << 10
"""Bytes between two ranges that cost less to read than another read costs."""

RANGES_AT_ONCE = 2048
"""Of code: what is read for each besides, at most 1.1 KB, is then little more than 2 MB."""


def end_of(message: BlockRequest | RangeRequest) -> int:
    """Bytes that a file has at least, of which this is asked."""
    end = message.end
    if isinstance(message, RangeRequest) and message.claims.cells:
        end = max(end, message.claims.cells[-1] * CELL_BYTES + 1)
    return end


def held_fingerprints(content: bytes, message: BlockRequest, secret: bytes) -> bytes:
    """Of a file whose `content` is at hand and has all the ranges. `secret`: the session's."""
    rows = message.rows
    if message.blank:
        whole = bytearray(content)
        blank_targets(whole, SOUGHT)
        content = bytes(whole)
    held = take_ranges(rows, 0, content)
    return block_fingerprints(secret, held, message.size, message.width, rows[1::2])


def read_fingerprints(source: SourceFile, message: BlockRequest, secret: bytes) -> bytes:
    """FileChangedError where the file is not the one that was opened any more, here and below."""
    size, width = message.size, message.width
    fingerprints = bytearray()
    # A range that comes in parts comes in whole blocks, so that only its end has a shorter one.
    most = DATA_BYTES // size * size
    blanks = message.blank
    contents = _blanked(source, message.rows, most) if blanks else _contents(source.peek, message.rows, most)
    for piece, lengths in contents:
        fingerprints += block_fingerprints(secret, piece, size, width, lengths)
    source.check_unchanged()
    return bytes(fingerprints)


def packed_ranges(
    source: SourceFile, message: RangeRequest, secret: bytes, round_: int
) -> Conversation[None]:
    """All in one message, packed with what the other side holds around them."""
    wrong = list(corrections(source, message, secret))
    literals, context = (
        b"".join([piece for piece, _ in _contents(source.peek, rows, DATA_BYTES)])
        for rows in (message.rows, context_rows(message.rows, source.size))
    )
    source.check_unchanged()
    for correction in wrong:
        yield Send(correction, round_)
    yield Send(Literals(message.file, pack(literals, context)), round_)


def ranges(
    source: SourceFile,
    message: RangeRequest,
    secret: bytes,
    round_: int,
    *,
    code: bool,
    listen: Callable[[], Conversation[None]],
) -> Conversation[None]:
    """The ranges one behind the other in as few messages as possible: many are shorter than a header. `code`:
    machine code may go as such. `listen`: takes note of what is told meanwhile."""
    total = sum(message.lengths)
    if message.blank:
        yield Press(Content.CODE, total)
    elif total >= HARD_BYTES:
        yield Press(Content.TEXT)
    rows = message.rows
    places = Places(rows) if code else None
    for correction in corrections(source, message, secret):
        yield Send(correction, round_)
        yield from listen()
    held = bytearray()
    for piece, _ in _contents(source.peek, rows, DATA_BYTES):
        held += piece
        if len(held) >= DATA_BYTES:
            yield Send(_data(message.file, held[:DATA_BYTES], places), round_)
            yield from listen()
            del held[:DATA_BYTES]
    source.check_unchanged()
    if held:
        yield Send(_data(message.file, held, places), round_)
    # Without a digest: the receiver knows the root.
    yield Send(FileEnd(message.file, total), round_)


def _data(file: int, content: bytearray, places: Places | None) -> Data | Code | Table:
    """The next bytes of ranges, as what is worth compressing if that is allowed (there are `places` then)."""
    if places is not None:
        where = places.take(len(content))
        if has_code(content, where):
            return Code(file, memoryview(content))
        if stride := tabled(content, where):
            return Table(file, stride, memoryview(content))
    return Data(file, memoryview(content))


def _blanked(source: SourceFile, ranges: array[int], most: int) -> Iterator[tuple[Buffer, array[int]]]:
    """As `_contents`, without targets. What lies between ranges is not read: most is found by then."""
    read = blanking(source, SOUGHT)
    ends = array("Q", accumulate(ranges[1::2]))
    first = done = 0
    while first < len(ends):
        stop = min(bisect_right(ends, done + most, first), first + RANGES_AT_ONCE)
        if stop > first + 1:
            some = ranges[2 * first : 2 * stop]
            yield blanked_ranges(source, SOUGHT, some), some[1::2]
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
    """What a file has in these ranges, one behind the other, `most` bytes at a time at most, and how long the
    parts of each are. Ranges that are close together are read at once. `read` takes offset and length."""
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
