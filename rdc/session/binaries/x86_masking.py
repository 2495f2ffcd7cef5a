"""Masking of x86 code: displacements of branches are overwritten with filler before blocks are matched."""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import add, sub

from rdc.kernel import assemble, mask_displacements, nonzero_bytes, plan_reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.root.source_file import SourceFile

__all__ = [
    "CHECK_FILLER",
    "LOOK_AHEAD",
    "LOOK_BACK",
    "SEARCH_FILLER",
    "looks_like",
    "mask",
    "mask_ranges",
    "mask_ranges_into",
    "masked_reader",
]

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
    """Tells whether most of the file seems to be linked x86 code. Raises FileError if it cannot be read."""
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
    """Masks a whole file in memory for the block search."""
    mask_displacements(content, SEARCH_FILLER)


def masked_reader(source: SourceFile) -> Callable[[int, int], memoryview]:
    """Returns a function that reads (offset, length) and masks as `mask` would mask the whole file.

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
    """Reads ranges back to back, masked as `mask` would mask the whole file.

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
    """Does what `mask_ranges` does in given memory. Returns where in `buffer` each range begins.

    The surroundings of a range lie before and behind it.
    """
    reads, starts, sizes = _widened(source, ranges)
    content = buffer[: sum(sizes)]
    source.read_ranges_into(content, reads)
    mask_displacements(content, SEARCH_FILLER, sizes)
    return starts


def _widened(source: SourceFile, ranges: array[int]) -> tuple[array[int], array[int], array[int]]:
    """Returns the reads for these ranges with their surroundings, where each range begins in what is read,
    and the length of each read."""
    ends = map(add, ranges[0::2], ranges[1::2])
    offsets = array("Q", [at - LOOK_BACK if at > LOOK_BACK else 0 for at in ranges[0::2]])
    size = source.size
    sizes = array("Q", [min(end + LOOK_AHEAD, size) - at for at, end in zip(offsets, ends, strict=True)])
    reads = array("Q", ranges)
    reads[0::2], reads[1::2] = offsets, sizes
    before = map(sub, ranges[0::2], offsets)
    return reads, array("Q", map(add, accumulate(sizes, initial=0), before)), sizes
