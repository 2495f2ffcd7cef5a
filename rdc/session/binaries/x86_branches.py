"""The x86 BCJ filter: branch displacements travel as absolute addresses, which compress better."""

from __future__ import annotations

from rdc.kernel import absolute_displacements, relative_displacements
from rdc.session.binaries.range_offsets import SAMPLED_BYTES, sample_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

__all__ = ["decode_branches", "encode_branches"]

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
