"""The filters for x86 code and number tables.

- `looks_like` tells whether a file is x86 code that gains from masking.
- `mask` and its variants overwrite the displacements of x86 branches before blocks are matched. Code that
  only moved is found then, because its displacements no longer differ.
- `masked_blocks`, `cut_displacements` and `Displacements` do this for check blocks, and put the right
  displacements back afterwards.
- `encode` and `decode` transform literals so that they compress better. They are inverses.

`RangeOffsets` tells where in a file the bytes of a message belong: the filters depend on it.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate
from operator import add, sub

from rdc.errors import ProtocolError
from rdc.kernel import (
    absolute_displacements,
    assemble,
    assemble_with_bits,
    bit_counts,
    difference_words,
    displacement_bits,
    mask_displacements,
    nonzero_bytes,
    overwrite_marked,
    plan_reads,
    put_displacements,
    relative_displacements,
    sum_words,
    take_displacements,
)
from rdc.protocol.messages import Code, Data, Table
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rdc.files.root.source_file import SourceFile


# Masking of x86 code: displacements of branches are overwritten with filler before blocks are matched.

SEARCH_FILLER, CHECK_FILLER = 0x80, 0x7F
"""Bytes that replace a displacement where blocks are searched, and where check blocks are compared. They
differ, so a false match caused by a real 0x80 byte is caught when the check block's digest differs. Otherwise
both sides mask the same bytes."""

LOOK_BACK = 40
LOOK_AHEAD = 19
"""Bytes before and behind a byte that decide whether it belongs to a displacement."""

CLOSE_BYTES = 1 << 10
"""Bytes between two ranges that cost less to read and mask than a separate read costs."""

SAMPLE_BYTES = 4096
CODE_SAMPLES = 64
"""Parts of a file that `looks_like` examines: 256 KiB, in a few hundred microseconds."""

DISPLACEMENT_BYTES = 2
BYTES_PER_DISPLACEMENT = 110
"""A file is code if it has at least one displacement per 110 bytes. Two nonzero bytes count as one
displacement. Unlinked code, such as kernel modules, has zeros there, so nothing differs where it moved.
Libraries have one per 30 to 110 bytes, kernel modules one per 90 to 220. Text, tables and compressed data
have one per 500 to 4,000 (measured)."""


def looks_like(source: SourceFile) -> bool:
    """Tell whether most of the file seems to be linked x86 code. Raises FileError if it cannot be read."""
    if source.size < SAMPLE_BYTES:
        return False
    offsets = range(0, source.size - SAMPLE_BYTES + 1, max(SAMPLE_BYTES, source.size // CODE_SAMPLES))
    masked_bytes = 0
    for offset in offsets:
        content = source.pread(offset, SAMPLE_BYTES)
        if 0 not in content:
            continue  # text
        sample = bytearray(content)
        masked_bytes += nonzero_bytes(sample)
        mask_displacements(sample, 0)
        masked_bytes -= nonzero_bytes(sample)
    return masked_bytes * BYTES_PER_DISPLACEMENT >= len(offsets) * SAMPLE_BYTES * DISPLACEMENT_BYTES


def mask(content: bytearray) -> None:
    """Mask a whole file in memory for the block search."""
    mask_displacements(content, SEARCH_FILLER)


def masked_reader(source: SourceFile) -> Callable[[int, int], memoryview]:
    """Return a function that reads (offset, length) and masks as `mask` would mask the whole file.

    Each call reuses the memory of the call before. Raises FileError if the file cannot be read.
    """
    buffer = memoryview(bytearray())

    def read(offset: int, length: int) -> memoryview:
        nonlocal buffer
        start = max(0, offset - LOOK_BACK)
        size = min(source.size, offset + length + LOOK_AHEAD) - start
        if len(buffer) < size:
            buffer = memoryview(bytearray(size))
        source.read_into(buffer[:size], start)
        mask_displacements(buffer[:size], SEARCH_FILLER)
        return buffer[offset - start : offset - start + length]

    return read


def mask_ranges(source: SourceFile, ranges: array[int]) -> bytearray:
    """Read ranges back to back, masked as `mask` would mask the whole file.

    `ranges`: rows (offset, length), in any order. Raises FileError if the file cannot be read.
    """
    copies = array("Q", bytes(12 * len(ranges)))
    copies[1::3], copies[2::3] = ranges[0::2], ranges[1::2]
    _, reads, sources = plan_reads(copies, CLOSE_BYTES, LOOK_BACK, LOOK_AHEAD, array("Q", (source.size,)))
    wider = array("Q", reads)
    del wider[0::3]  # the number of the base, which is always 0
    content = bytearray(sum(wider[1::2]))
    source.read_ranges_into(memoryview(content), wider)
    mask_displacements(content, SEARCH_FILLER, wider[1::2])
    return assemble(sources, content, b"")


def mask_ranges_into(buffer: memoryview, source: SourceFile, ranges: array[int]) -> array[int]:
    """Do what `mask_ranges` does in given memory. Returns where in `buffer` each range begins.

    The surroundings of a range lie before and behind it.
    """
    reads, starts, sizes = _widened(source, ranges)
    content = buffer[: sum(sizes)]
    source.read_ranges_into(content, reads)
    mask_displacements(content, SEARCH_FILLER, sizes)
    return starts


def _widened(source: SourceFile, ranges: array[int]) -> tuple[array[int], array[int], array[int]]:
    """Return the reads for these ranges with their surroundings, where each range begins in what is read,
    and the length of each read."""
    ends = map(add, ranges[0::2], ranges[1::2])
    offsets = array("Q", [at - LOOK_BACK if at > LOOK_BACK else 0 for at in ranges[0::2]])
    size = source.size
    sizes = array("Q", [min(end + LOOK_AHEAD, size) - at for at, end in zip(offsets, ends, strict=True)])
    reads = array("Q", ranges)
    reads[0::2], reads[1::2] = offsets, sizes
    before = map(sub, ranges[0::2], offsets)
    return reads, array("Q", map(add, accumulate(sizes, initial=0), before)), sizes


# Masking of check blocks: displacements are hidden for the comparison, sent apart, and put back.
#
# A mask has one bit for each byte of the check blocks, back to back. A set bit marks a byte that belongs to a
# displacement.

MASK_BYTES = CHECK_BLOCK_BYTES // 8
"""Bytes of the mask of one check block."""


def masked_blocks(sources: bytes, content: bytes, lengths: array[int]) -> tuple[bytes | bytearray, bytes]:
    """Return check blocks with masked displacements, and the mask.

    `sources`: what the blocks consist of, in rows of plan_reads(). `content`: the reads that it returned,
    with these `lengths` in bytes.
    """
    blocks, bits = assemble_with_bits(sources, content, displacement_bits(content, lengths))
    overwrite_marked(blocks, bits, CHECK_FILLER)
    return blocks, bits


def cut_displacements(
    sources: bytes, content: bytes, lengths: array[int], numbers: Sequence[int]
) -> tuple[bytes | bytearray, bytes, bytes]:
    """Do what `masked_blocks` does where the displacements are known.

    Returns the masked blocks, the bytes of their displacements, and 64-bit counts of these bytes per block.
    `numbers`: of the check blocks in the file.
    """
    blocks, bits = assemble_with_bits(sources, content, displacement_bits(content, lengths))
    offsets = array("Q", [number * CHECK_BLOCK_BYTES for number in numbers])
    displacements, counts = take_displacements(blocks, bits, CHECK_BLOCK_BYTES, offsets, CHECK_FILLER)
    return blocks, displacements, counts


def displacement_counts(bits: bytes) -> array[int]:
    """Return the bytes of displacements in each check block of a mask."""
    return array("Q", bit_counts(bits, MASK_BYTES))


class Displacements:
    """Displacements of some check blocks, as the source sent them, and the mask that locates them."""

    __slots__ = ("_bits", "_ends", "_offsets", "_payload", "start", "stop")

    def __init__(self, numbers: Sequence[int], bits: bytes, payload: bytes, ends: array[int]) -> None:
        """`numbers`: of the check blocks, increasing. `ends`: where each block's displacements begin in
        `payload`, then where the last ones end."""
        self.start = numbers[0] * CHECK_BLOCK_BYTES
        self.stop = (numbers[-1] + 1) * CHECK_BLOCK_BYTES
        """The range of the file from the first to the last block, in bytes."""
        self._bits = bits
        self._payload = payload
        self._ends = ends
        self._offsets = array("Q", [number * CHECK_BLOCK_BYTES for number in numbers])

    def put(self, content: bytearray, start: int) -> int:
        """Write displacements into `content`, which begins at offset `start`. Returns the bytes written."""
        first = bisect_right(self._offsets, start - CHECK_BLOCK_BYTES)
        last = bisect_left(self._offsets, start + len(content))
        return put_displacements(
            content,
            start,
            self._bits[first * MASK_BYTES : last * MASK_BYTES],
            self._payload[self._ends[first] : self._ends[last]],
            CHECK_BLOCK_BYTES,
            self._offsets[first:last],
        )


SAMPLED_BYTES = 64 << 10
"""Filters sample content of at least this many bytes before they try all of it. Most content matches no
filter; rejecting it by a sample costs an eighth."""

SAMPLES = 8
SAMPLED_ONE_IN = 8


class RangeOffsets:
    """Position in a list of ranges. Takes 24 bytes of memory per range."""

    def __init__(self, ranges: array[int]) -> None:
        """`ranges`: rows (offset, length), in bytes."""
        self._ranges = ranges
        self._ends = array("Q", accumulate(ranges[1::2]))
        self.at = 0
        """Bytes of the ranges before the position."""

    def take(self, size: int) -> array[int]:
        """Advance by `size` bytes and return their rows (offset, length).

        `size` is at least 1 and at most what is left.
        """
        start, stop = self.at, self.at + size
        first, last = bisect_right(self._ends, start), bisect_left(self._ends, stop)
        rows = self._ranges[2 * first : 2 * last + 2]
        taken = start + rows[1] - self._ends[first]
        rows[0] += taken
        rows[1] -= taken
        rows[-1] -= self._ends[last] - stop
        self.at = stop
        return rows


def sample_of(content: bytearray, offsets: array[int]) -> tuple[bytearray, array[int]]:
    """Return SAMPLES evenly spaced parts of `content` in one piece, and their rows (offset, length)."""
    step = len(content) // SAMPLES
    size = step // SAMPLED_ONE_IN
    position = RangeOffsets(offsets)
    sample, rows = bytearray(), array("Q")
    for at in range(0, SAMPLES * step, step):
        sample += content[at : at + size]
        rows += position.take(size)
        position.at += step - size
    return sample, rows


BYTES_PER_BRANCH = 200
"""Apply the filter only if it rewrites at least one displacement per 200 bytes. Code has one per 20 to 60
bytes and compresses 20 % better. Other number tables have one per 300 or more and grow by 2 to 10 %. Measured
on half megabytes of the libraries of OpenCV, Arrow and LibreOffice."""

SAMPLE_MARGIN = 3
"""A sample rules content out only if it has this many times fewer displacements than BYTES_PER_BRANCH asks
for: the rest cannot make up for it."""


def encode_branches(content: bytearray, offsets: array[int]) -> bool:
    """Make displacements in `content` absolute if that pays; otherwise leave it as it is.

    `offsets`: rows (offset in the file, length) of the pieces of `content`.
    """
    if len(content) >= SAMPLED_BYTES:
        sample, rows = sample_of(content, offsets)
        if absolute_displacements(sample, rows) * BYTES_PER_BRANCH * SAMPLE_MARGIN < len(sample):
            return False
    if absolute_displacements(content, offsets) * BYTES_PER_BRANCH >= len(content):
        return True
    relative_displacements(content, offsets)
    return False


def decode_branches(payload: bytes | bytearray | memoryview, offsets: array[int]) -> bytearray:
    """Reverse `encode_branches`; `offsets` as there."""
    content = bytearray(payload)
    relative_displacements(content, offsets)
    return content


STRIDES = (8, 24)
"""Row lengths in bytes that are tried: a library's function table has 8, its relocation table 24."""

FEWER_NONZERO = 2
"""Apply the filter only if it leaves this many times fewer nonzero bytes. Function and relocation tables of
LibreOffice, Arrow and OpenCV have 2.3 to 3.1 times fewer; they shrink to 25 to 70 % of their compressed size.
Symbol tables have at most 1.3 times fewer, and grow (measured)."""

SAMPLE_FEWER_NONZERO = 1.5
"""A sample rules a stride out if it leaves less than this many times fewer nonzero bytes."""


def encode_table(content: bytearray, offsets: array[int]) -> int:
    """Replace `content` with differences if that pays. Returns the stride in bytes, or 0.

    `offsets`: rows (offset in the file, length) of the pieces of `content`.
    """
    strides: Iterable[int] = STRIDES
    if len(content) >= SAMPLED_BYTES:
        sample, rows = sample_of(content, offsets)
        most = nonzero_bytes(sample) / SAMPLE_FEWER_NONZERO
        strides = [stride for stride in STRIDES if _differences(sample, rows, stride)[0] <= most]
    least = nonzero_bytes(content) // FEWER_NONZERO if strides else 0
    for stride in strides:
        nonzero, differences = _differences(content, offsets, stride)
        if nonzero < least:
            content[:] = differences
            return stride
    return 0


def decode_table(payload: bytes | bytearray | memoryview, offsets: array[int], stride: int) -> bytearray:
    """Reverse `encode_table`; `stride` is what it returned."""
    content = bytearray(payload)
    sum_words(content, offsets, stride)
    return content


def _differences(content: bytearray, offsets: array[int], stride: int) -> tuple[int, bytearray]:
    """Return the differences of `content`, and how many of their bytes are not 0."""
    differences = bytearray(content)
    difference_words(differences, offsets, stride)
    return nonzero_bytes(differences), differences


def encode(file: int, content: bytearray, offsets: array[int]) -> Data | Code | Table:
    """Return literals as the message that compresses best; may change `content` in place.

    `offsets`: rows (offset in the file, length) of the pieces of `content`.
    """
    if encode_branches(content, offsets):
        return Code(file, memoryview(content))
    if stride := encode_table(content, offsets):
        return Table(file, stride, memoryview(content))
    return Data(file, memoryview(content))


def decode(message: Data | Code | Table, offsets: RangeOffsets | None) -> bytes | bytearray | memoryview:
    """Return the literals of a message as the file has them, and advance `offsets` past them.

    Raises ProtocolError if `offsets` is None: no literals were requested.
    """
    if offsets is None:
        raise ProtocolError(f"literals of file {message.file} that were not asked for")
    if isinstance(message, Code):
        return decode_branches(message.payload, offsets.take(len(message.payload)))
    if isinstance(message, Table):
        return decode_table(message.payload, offsets.take(len(message.payload)), message.stride)
    offsets.at += len(message.payload)
    return message.payload
