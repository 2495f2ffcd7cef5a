"""The number table filter: 4-byte numbers travel as differences from the row before, if that is shorter."""

from __future__ import annotations

from rdc.kernel import difference_words, nonzero_bytes, sum_words
from rdc.session.binaries.range_offsets import SAMPLED_BYTES, sample_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable

__all__ = ["decode_table", "encode_table"]

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
