"""Masking of check blocks: displacements are hidden for the comparison, sent apart, and put back.

A mask has one bit for each byte of the check blocks, back to back. A set bit marks a byte that belongs to a
displacement.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from rdc.kernel import (
    assemble_with_bits,
    bit_counts,
    displacement_bits,
    overwrite_marked,
    put_displacements,
    take_displacements,
)
from rdc.protocol.messages.field_types import CHECK_BLOCK_BYTES
from rdc.session.binaries.x86_masking import CHECK_FILLER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["MASK_BYTES", "Displacements", "cut_displacements", "displacement_counts", "masked_blocks"]

MASK_BYTES = CHECK_BLOCK_BYTES // 8
"""Bytes of the mask of one check block."""


def masked_blocks(sources: bytes, content: bytes, lengths: array[int]) -> tuple[bytes | bytearray, bytes]:
    """Returns check blocks with masked displacements, and the mask.

    `sources`: what the blocks consist of, in rows of plan_reads(). `content`: the reads that it returned,
    with these `lengths` in bytes.
    """
    blocks, bits = assemble_with_bits(sources, content, displacement_bits(content, lengths))
    overwrite_marked(blocks, bits, CHECK_FILLER)
    return blocks, bits


def cut_displacements(
    sources: bytes, content: bytes, lengths: array[int], numbers: Sequence[int]
) -> tuple[bytes | bytearray, bytes, bytes]:
    """Does what `masked_blocks` does where the displacements are known.

    Returns the masked blocks, the bytes of their displacements, and 64-bit counts of these bytes per block.
    `numbers`: of the check blocks in the file.
    """
    blocks, bits = assemble_with_bits(sources, content, displacement_bits(content, lengths))
    offsets = array("Q", [number * CHECK_BLOCK_BYTES for number in numbers])
    displacements, counts = take_displacements(blocks, bits, CHECK_BLOCK_BYTES, offsets, CHECK_FILLER)
    return blocks, displacements, counts


def displacement_counts(bits: bytes) -> array[int]:
    """Returns the bytes of displacements in each check block of a mask."""
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
        """Writes displacements into `content`, which begins at offset `start`. Returns the bytes written."""
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
