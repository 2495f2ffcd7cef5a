"""Matches, unmatched runs and copy instructions in plain Python. This file is the definition; the C code
equals it.

Rows are buffers of native 64-bit numbers, such as array('Q'):

    match             offset, base_offset, length   bytes of the file that a base has at `base_offset`
    unmatched run     offset, length, before, behind
                      The content before it continues in the base at `before`, the content after it begins
                      there at `behind`. Either may be UNPLACED.
    copy              offset, base, base_offset, length   a match with the number of its base
    copy instruction  base, base_offset, length   the next bytes of a chunk; for base LITERAL they are
                      fetched
    range             offset, length
    source            offset, length   the next bytes of a chunk in the data read; at LITERAL they are fetched

ValueError for incomplete rows, rows in a wrong order, or rows that end past 2^63 - 1.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = [
    "around_ranges",
    "assemble",
    "assemble_with_bits",
    "block_matches",
    "copies_of_instructions",
    "fetched_ranges",
    "fill_offsets",
    "instructions_of_range",
    "instructions_of_ranges",
    "join_matches",
    "plan_reads",
    "range_reads",
    "run_spans",
    "take_ranges",
    "unmatched_runs",
]

_UNPLACED = _LITERAL = (1 << 64) - 1
_END = (1 << 63) - 1


def fill_offsets(base_offsets: ReadableBuffer, more: ReadableBuffer, shift: int) -> bytes:
    """Returns `base_offsets` with each UNPLACED entry replaced by the entry of `more` plus `shift`."""
    _numbers(shift)
    first, second = _column(base_offsets), _column(more)
    _check(len(first) == len(second))
    filled: list[int] = []
    for base_offset, other in zip(first, second, strict=True):
        if base_offset != _UNPLACED or other == _UNPLACED:
            filled.append(base_offset)
        else:
            _check(other + shift <= _END)
            filled.append(other + shift)
    return _packed(filled)


def block_matches(offset: int, size: int, base_offsets: ReadableBuffer) -> bytes:
    """Returns the matches of blocks of `size` bytes from `offset` on. `base_offsets`: where the
    base has each block, or UNPLACED. Neighbours that continue in the base too become one match."""
    _numbers(offset, size)
    numbers = _column(base_offsets)
    _check(size > 0 and offset + size * len(numbers) <= _END)
    matches: list[int] = []
    for row, base_offset in enumerate(numbers):
        if base_offset != _UNPLACED:
            _check(base_offset + size <= _END)
            _append(matches, offset + row * size, base_offset, size)
    return _packed(matches)


def join_matches(first: ReadableBuffer, second: ReadableBuffer) -> bytes:
    """Merges two ordered rows of matches, which must not overlap. Neighbours that continue become one
    match."""
    matches: list[int] = []
    end = 0
    for offset, base_offset, length in sorted([*_rows(first, 3), *_rows(second, 3)], key=lambda row: row[0]):
        _check(end <= offset and offset + length <= _END and base_offset + length <= _END)
        end = offset + length
        _append(matches, offset, base_offset, length)
    for rows in (first, second):
        offsets = [row[0] for row in _rows(rows, 3)]
        _check(offsets == sorted(offsets))
    return _packed(matches)


def unmatched_runs(
    matches: ReadableBuffer,
    start: int,
    end: int,
    before: int,
    behind: int,
    size: int,
    ends: int,
    far: int,
    tail: int,
    most: int,
) -> bytes:
    """Returns the unmatched runs between the matches of bytes start to end of a file, cut to what blocks of
    `size` bytes should ask about. At most `most` + 1 rows.

    If both neighbours of a run agree on its length up to `far` bytes, it is cut to `ends` bytes at either
    end. Otherwise each neighbour predicts its half, up to `ends` bytes. A last block shorter than `tail`
    bytes is left out, and so are shorter runs.
    """
    # long because the definition stands in one piece, to be compared with the C form
    _numbers(start, end, before, behind, size, ends, far, tail, most)
    _check(size > 0 and ends <= _END // 2 and end <= _END)
    _check(all(base_offset == _UNPLACED or base_offset <= _END for base_offset in (before, behind)))
    rows: list[tuple[int, ...]] = []
    at, base_offset = start, before
    for offset, begin, length in (*_rows(matches, 3), (end, behind, 0)):
        _check(at <= offset <= offset + length <= end)
        _check((offset, length) == (end, 0) or begin + length <= _END)
        if offset > at and offset - at >= tail:
            if len(rows) >= most:
                break
            for run in _parts(at, offset - at, base_offset, begin, ends, far):
                rest = run[1] % size
                cut = rest if rest < tail else 0
                row = (run[0], run[1] - cut, run[2], _less(run[3], cut))
                if row[1] and row[2:] != (_UNPLACED, _UNPLACED):
                    rows.append(row)
        at, base_offset = offset + length, begin + length
    return _packed([number for row in rows for number in row])


def range_reads(ranges: ReadableBuffer, close: int, most: int) -> bytes:
    """Returns rows (number of ranges, start, length) of reads of a file that cover these ascending, disjoint
    ranges.

    Ranges with at most `close` bytes between them share a read of at most `most` bytes. A longer range is
    read alone.
    """
    _numbers(close, most)
    reads: list[list[int]] = []
    end = 0
    for offset, length in _rows(ranges, 2):
        _check(end <= offset and offset + length <= _END)
        gap, end = offset - end, offset + length
        if reads and gap <= close and end - reads[-1][1] <= most:
            reads[-1] = [reads[-1][0] + 1, reads[-1][1], end - reads[-1][1]]
        else:
            reads.append([1, offset, length])
    return _packed([number for read in reads for number in read])


def around_ranges(ranges: ReadableBuffer, reach: int, size: int) -> bytes:
    """Returns up to `reach` bytes before and after each of these ascending, disjoint ranges of a file of
    `size` bytes. The rows (offset, length) contain no byte of the ranges."""
    _numbers(reach, size)
    rows = [tuple(row) for row in _rows(ranges, 2)]
    found: list[int] = []
    at = last = 0
    for number, (offset, length) in enumerate(rows):
        end = offset + length
        _check(last <= offset and end <= _END)
        last = end
        start = max(at, offset - reach)
        if start < offset:
            found += (start, offset - start)
        following = rows[number + 1][0] if number + 1 < len(rows) else size
        stop = min(size, following, end + reach)
        if end < stop:
            found += (end, stop - end)
        at = max(end, stop)
    return _packed(found)


def take_ranges(ranges: ReadableBuffer, start: int, data: ReadableBuffer) -> bytes:
    """Returns the bytes of these ascending, disjoint ranges from `data`, which is the file's content from
    `start` on."""
    _numbers(start)
    taken = bytearray()
    with memoryview(data).cast("B") as view:
        at = 0
        for offset, length in _rows(ranges, 2):
            _check(start + at <= offset and offset - start + length <= len(view))
            at = offset - start + length
            taken += view[at - length : at]
    return bytes(taken)


def run_spans(runs: ReadableBuffer, size: int, reach: int, close: int, most: int) -> bytes:
    """Returns rows (number of runs, start, stop, number of blocks) of the parts of the base to search for
    unmatched runs.

    Blocks are searched within `reach` bytes of where the run's neighbours predict them. Runs share a span of
    at most `most` bytes if at most `close` bytes lie between them.
    """
    # long because the definition stands in one piece, to be compared with the C form
    _numbers(size, reach, close, most)
    _check(0 < size <= _END // 4 and reach <= _END // 4 and close <= _END)
    spans: list[list[int]] = []
    for _, length, before, behind in _rows(runs, 4):
        base_offsets = [base_offset for base_offset in (before, behind) if base_offset != _UNPLACED]
        _check(bool(base_offsets) and max(length, *base_offsets) <= _END // 4)
        low = min(before, max(0, behind - length) if behind != _UNPLACED else before)
        high = max(before + length if before != _UNPLACED else 0, behind if behind != _UNPLACED else 0)
        low, high = max(0, low - reach), high + reach + size
        blocks = -(-length // size)
        if spans:
            count, start, stop, earlier = spans[-1]
            near = low <= stop + close and start <= high + close
            if near and max(stop, high) - min(start, low) <= most:
                spans[-1] = [count + 1, min(start, low), max(stop, high), earlier + blocks]
                continue
        spans.append([1, low, high, blocks])
    return _packed([number for span in spans for number in span])


def instructions_of_range(copies: ReadableBuffer, offset: int, length: int) -> bytes:
    """Returns the copy instructions for bytes offset to offset + length of a file. `copies` are ordered by
    offset; of two that overlap the earlier one wins."""
    _numbers(offset, length)
    _check(offset + length <= _END)
    rows = list(_rows(copies, 4))
    instructions: list[int] = []
    at, end = offset, offset + length
    for begin, base, base_offset, size in rows[max(0, bisect_right([row[0] for row in rows], offset) - 1) :]:
        if at >= end or begin >= end:
            break
        _check(base != _LITERAL and begin + size <= _END and base_offset + size <= _END)
        if begin > at:
            instructions += (_LITERAL, 0, begin - at)
            at = begin
        stop = min(end, begin + size)
        if stop > at:
            instructions += (base, base_offset + at - begin, stop - at)
            at = stop
    if at < end:
        instructions += (_LITERAL, 0, end - at)
    return _packed(instructions)


def instructions_of_ranges(copies: ReadableBuffer, ranges: ReadableBuffer) -> tuple[bytes, bytes]:
    """Returns the copy instructions for these ranges one after another, and a row (number of instructions,
    bytes to fetch) per range."""
    made, totals = [], array("Q")
    _rows(copies, 4)  # incomplete rows are refused even without a range
    for offset, length in _rows(ranges, 2):
        instructions = instructions_of_range(copies, offset, length)
        rows = list(_rows(instructions, 3))
        made.append(instructions)
        totals.extend((len(rows), sum(size for base, _, size in rows if base == _LITERAL)))
    return b"".join(made), totals.tobytes()


def copies_of_instructions(instructions: ReadableBuffer, offset: int) -> bytes:
    """Returns the rows of copies for these copy instructions, which describe a file from `offset` on."""
    _numbers(offset)
    copies: list[int] = []
    for base, base_offset, length in _rows(instructions, 3):
        _check(offset + length <= _END)
        if base != _LITERAL:
            copies += (offset, base, base_offset, length)
        offset += length
    return _packed(copies)


def fetched_ranges(instructions: ReadableBuffer, offset: int) -> bytes:
    """Returns the ranges of the file to fetch for these copy instructions from `offset` on. Adjacent ranges
    are joined."""
    _numbers(offset)
    ranges: list[int] = []
    for base, _, length in _rows(instructions, 3):
        _check(offset + length <= _END)
        if base == _LITERAL:
            if ranges and ranges[-2] + ranges[-1] == offset:
                ranges[-1] += length
            else:
                ranges += (offset, length)
        offset += length
    return _packed(ranges)


def plan_reads(
    instructions: ReadableBuffer, close: int, back: int = 0, ahead: int = 0, sizes: ReadableBuffer = b""
) -> tuple[int, bytes, bytes]:
    """Plans the reads of the bases for the copy instructions of a chunk.

    Returns (bytes to fetch, rows (base, offset, length) of reads, a source per instruction). Sources refer to
    the results of all reads, one after another. Matches with at most `close` bytes between them share a read.
    Each read is extended by `back` bytes before and `ahead` bytes after it, within its base. `sizes` has the
    bytes of each base; a base without an entry is not extended at its end.
    """
    _numbers(close, back, ahead)
    ends = [size for (size,) in _rows(sizes, 1)]
    _check(max(close, back, ahead, *ends) <= _END)
    rows = list(_rows(instructions, 3))
    literals = sum(length for base, _, length in rows if base == _LITERAL)
    _check(literals <= _END)
    reads: list[list[int]] = []
    at = [_LITERAL] * len(rows)
    read = 0

    def surrounded(base: int, base_offset: int, length: int) -> list[int]:
        before, end = min(back, base_offset), base_offset + length
        behind = max(0, min(ahead, ends[base] - end)) if base < len(ends) else 0
        return [base, base_offset - before, before + length + behind]

    for base, base_offset, length, row in sorted((*instruction, row) for row, instruction in enumerate(rows)):
        if base == _LITERAL:
            break
        _check(base_offset + length <= _END)
        if reads and reads[-1][0] == base and base_offset <= reads[-1][1] + reads[-1][2] + close:
            reads[-1][2] = max(reads[-1][2], base_offset + length - reads[-1][1])
        else:
            read += surrounded(*reads[-1])[2] if reads else 0
            reads.append([base, base_offset, length])
        whole = surrounded(*reads[-1])
        _check(read + whole[2] <= _END)
        at[row] = read + base_offset - whole[1]
    sources = [number for start, row in zip(at, rows, strict=True) for number in (start, row[2])]
    return literals, _packed([number for row in reads for number in surrounded(*row)]), _packed(sources)


def assemble(sources: ReadableBuffer, copied: ReadableBuffer, literals: ReadableBuffer) -> bytearray:
    """Builds a chunk from the data that was read and exactly the literals. ValueError if they do not add
    up."""
    made = bytearray()
    with memoryview(copied).cast("B") as read, memoryview(literals).cast("B") as fetched:
        at = 0
        for offset, length in _rows(sources, 2):
            if offset == _LITERAL:
                _check(at + length <= len(fetched))
                made += fetched[at : at + length]
                at += length
            else:
                _check(offset + length <= len(read))
                made += read[offset : offset + length]
        _check(at == len(fetched))
    return made


def assemble_with_bits(
    sources: ReadableBuffer, copied: ReadableBuffer, bits: ReadableBuffer
) -> tuple[bytearray, bytes]:
    """Builds a chunk with zeros for literals, and one bit per byte of it, the lowest bit of a byte first.
    `bits` has the bits of the data that was read. ValueError if they do not add up."""
    read, packed = bytes(copied), bytes(bits)
    _check(len(packed) == -(-len(read) // 8))
    seen = bytes(packed[byte // 8] >> byte % 8 & 1 for byte in range(len(read)))
    literals = bytes(sum(length for offset, length in _rows(sources, 2) if offset == _LITERAL))
    marks = assemble(sources, seen, literals)
    number = sum(mark << byte for byte, mark in enumerate(marks))
    return assemble(sources, read, literals), number.to_bytes(-(-len(marks) // 8), "little")


def _parts(
    start: int, length: int, before: int, behind: int, ends: int, far: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yields the parts of one unmatched run that are worth asking about."""
    if _UNPLACED in (before, behind) or abs(behind - before - length) <= far:
        if length <= 2 * ends:
            yield start, length, before, behind
            return
        tail = length - ends
        if before != _UNPLACED:
            yield start, ends, before, _less(behind, tail)
        if behind != _UNPLACED:
            yield start + tail, ends, _UNPLACED if before == _UNPLACED else before + tail, behind
    else:
        half = min(ends, length // 2)
        yield start, half, before, _UNPLACED
        yield start + length - half, half, _UNPLACED, behind


def _less(base_offset: int, length: int) -> int:
    """Returns the offset `length` bytes before `base_offset`, or UNPLACED if that is before the base."""
    return base_offset - length if _UNPLACED != base_offset >= length else _UNPLACED


def _append(matches: list[int], offset: int, base_offset: int, length: int) -> None:
    if matches and matches[-3] + matches[-1] == offset and matches[-2] + matches[-1] == base_offset:
        matches[-1] += length
    else:
        matches += (offset, base_offset, length)


def _check(right: bool) -> None:
    if not right:
        raise ValueError("rows that are out of order, end past 2^63 - 1, or are not there")


def _numbers(*numbers: int) -> None:
    _check(all(0 <= number <= _UNPLACED for number in numbers))


def _column(numbers: ReadableBuffer) -> memoryview:
    view = memoryview(numbers).cast("B")
    _check(len(view) % 8 == 0)
    return view.cast("Q")


def _rows(buffer: ReadableBuffer, width: int) -> Iterator[tuple[int, ...]]:
    column = _column(buffer)
    _check(len(column) % width == 0)
    numbers = iter(column)
    return zip(*[numbers] * width, strict=True)


def _packed(numbers: list[int]) -> bytes:
    return array("Q", numbers).tobytes()
