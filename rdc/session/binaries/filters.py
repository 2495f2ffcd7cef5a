"""The filters for x86 code and number tables; the rest of the session imports only this module.

- `looks_like` tells whether a file is x86 code that gains from masking.
- `mask` and its variants overwrite the displacements of x86 branches before blocks are matched. Code that
  only moved is found then, because its displacements no longer differ.
- `masked_blocks`, `cut_displacements` and `Displacements` do this for check blocks, and put the right
  displacements back afterwards.
- `encode` and `decode` transform literals so that they compress better. They are inverses.

`RangeOffsets` tells where in a file the bytes of a message belong: the filters depend on it. Masking has
modules of its own, x86_masking and x86_check_blocks.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

from rdc.errors import ProtocolError
from rdc.kernel import (
    absolute_displacements,
    difference_words,
    nonzero_bytes,
    relative_displacements,
    sum_words,
)
from rdc.protocol.messages import Code, Data, Table
from rdc.session.binaries.x86_check_blocks import (
    MASK_BYTES,
    Displacements,
    cut_displacements,
    displacement_counts,
    masked_blocks,
)
from rdc.session.binaries.x86_masking import (
    LOOK_AHEAD,
    LOOK_BACK,
    looks_like,
    mask,
    mask_ranges,
    mask_ranges_into,
    masked_reader,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "Displacements",
    "LOOK_AHEAD",
    "LOOK_BACK",
    "MASK_BYTES",
    "RangeOffsets",
    "SAMPLED_BYTES",
    "cut_displacements",
    "decode",
    "decode_branches",
    "decode_table",
    "displacement_counts",
    "encode",
    "encode_branches",
    "encode_table",
    "looks_like",
    "mask",
    "mask_ranges",
    "mask_ranges_into",
    "masked_blocks",
    "masked_reader",
    "sample_of",
]

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
        self._at = 0

    def skip(self, size: int) -> None:
        """Advances by `size` bytes."""
        self._at += size

    def take(self, size: int) -> array[int]:
        """Advances by `size` bytes and returns their rows (offset, length).

        `size` is at least 1 and at most what is left.
        """
        start, stop = self._at, self._at + size
        first, last = bisect_right(self._ends, start), bisect_left(self._ends, stop)
        rows = self._ranges[2 * first : 2 * last + 2]
        taken = start + rows[1] - self._ends[first]
        rows[0] += taken
        rows[1] -= taken
        rows[-1] -= self._ends[last] - stop
        self._at = stop
        return rows


def sample_of(content: bytearray, offsets: array[int]) -> tuple[bytearray, array[int]]:
    """Returns SAMPLES evenly spaced parts of `content` in one piece, and their rows (offset, length)."""
    step = len(content) // SAMPLES
    size = step // SAMPLED_ONE_IN
    position = RangeOffsets(offsets)
    sample, rows = bytearray(), array("Q")
    for at in range(0, SAMPLES * step, step):
        sample += content[at : at + size]
        rows += position.take(size)
        position.skip(step - size)
    return sample, rows


BYTES_PER_BRANCH = 200
"""Apply the filter only if it rewrites at least one displacement per 200 bytes. Code has one per 20 to 60
bytes and compresses 20 % better. Other number tables have one per 300 or more and grow by 2 to 10 %. Measured
on half megabytes of the libraries of OpenCV, Arrow and LibreOffice."""

SAMPLE_MARGIN = 3
"""A sample rules content out only if it has this many times fewer displacements than BYTES_PER_BRANCH asks
for: the rest cannot make up for it."""


def encode_branches(content: bytearray, offsets: array[int]) -> bool:
    """Makes displacements in `content` absolute if that pays; otherwise leaves it as it is.

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
    """Reverses `encode_branches`; `offsets` as there."""
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
    """Replaces `content` with differences if that pays. Returns the stride in bytes, or 0.

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
    """Reverses `encode_table`; `stride` is what it returned."""
    content = bytearray(payload)
    sum_words(content, offsets, stride)
    return content


def _differences(content: bytearray, offsets: array[int], stride: int) -> tuple[int, bytearray]:
    """Returns the differences of `content`, and how many of their bytes are not 0."""
    differences = bytearray(content)
    difference_words(differences, offsets, stride)
    return nonzero_bytes(differences), differences


def encode(file: int, content: bytearray, offsets: array[int]) -> Data | Code | Table:
    """Returns literals as the message that compresses best; may change `content` in place.

    `offsets`: rows (offset in the file, length) of the pieces of `content`.
    """
    if encode_branches(content, offsets):
        return Code(file, memoryview(content))
    if stride := encode_table(content, offsets):
        return Table(file, stride, memoryview(content))
    return Data(file, memoryview(content))


def decode(message: Data | Code | Table, offsets: RangeOffsets | None) -> bytes | bytearray | memoryview:
    """Returns the literals of a message as the file has them, and advances `offsets` past them.

    Raises ProtocolError if `offsets` is None: no literals were requested.
    """
    if offsets is None:
        raise ProtocolError(f"literals of file {message.file} that were not asked for")
    if isinstance(message, Code):
        return decode_branches(message.payload, offsets.take(len(message.payload)))
    if isinstance(message, Table):
        return decode_table(message.payload, offsets.take(len(message.payload)), message.stride)
    offsets.skip(len(message.payload))
    return message.payload
