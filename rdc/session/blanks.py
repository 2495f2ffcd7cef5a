"""Files read as machine code without the targets that it names by their distance."""

from __future__ import annotations

from array import array
from itertools import accumulate
from operator import add, sub

from rdc.kernel import blank_targets, nonzero_bytes
from rdc.kernel.pieces import put_tiles, tile_reads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.files.source import SourceFile

__all__ = [
    "CLAIMED",
    "LOOK_AHEAD",
    "LOOK_BACK",
    "SOUGHT",
    "blanked_into",
    "blanked_ranges",
    "blanking",
    "is_code",
]

SOUGHT, CLAIMED = 0x80, 0x7F
"""What a target's bytes are, where blocks are looked for and where claims are made. A block may seem to be
found because of a byte that is really the first of these; it is not the second then, and the claim is wrong.
Otherwise both sides take the same bytes for targets."""

LOOK_BACK = 40
LOOK_AHEAD = 19
"""Bytes before and behind a byte that say whether it is of a target: what is further away does not matter."""

CLOSE_BYTES = 1 << 10
"""Bytes between two ranges that cost less to read, and to look for targets in, than another read costs."""

SAMPLE_BYTES = 4096
SAMPLES = 64
"""Looked at to say whether a file is code: 256 KB, in a few hundred microseconds."""

TARGET_BYTES = 2
TARGETS_ONE_IN = 110
"""Bytes of a file for each target, at most, if it is code, where so many bytes that are not 0 are counted as
one: code that is still to be linked, as kernel modules are, has zeros in their places, so that nothing is
different where it moved. Libraries have one in 30 to 110, kernel modules in 90 to 220, text, tables and
compressed data in 500 to 4,000 (measured)."""


def blanking(source: SourceFile, blank: int) -> Callable[[int, int], memoryview]:
    """Gives bytes of the file by offset and length, its targets overwritten, as a look at all of it would
    find them; in the same memory: what one call gave is gone with the next."""
    held = memoryview(bytearray())

    def read(offset: int, length: int) -> memoryview:
        nonlocal held
        start, size = _surroundings(source, offset, length)
        if len(held) < size:
            held = memoryview(bytearray(size))
        source.read_into(held[:size], start)
        blank_targets(held[:size], blank)
        return held[offset - start : offset - start + length]

    return read


def blanked_ranges(source: SourceFile, blank: int, rows: array[int]) -> bytearray:
    """Ranges of the file, offset and length by turns, in any order, as above, one behind another."""
    tiles = array("Q", bytes(12 * len(rows)))
    tiles[1::3], tiles[2::3] = rows[0::2], rows[1::2]
    _, reads, sources = tile_reads(tiles, CLOSE_BYTES, LOOK_BACK, LOOK_AHEAD, array("Q", (source.size,)))
    wider = array("Q", reads)
    del wider[0::3]  # all of one base
    held = bytearray(sum(wider[1::2]))
    source.read_ranges_into(memoryview(held), wider)
    blank_targets(held, blank, wider[1::2])
    return put_tiles(sources, held, b"")


def blanked_into(buffer: memoryview, source: SourceFile, blank: int, rows: array[int]) -> array[int]:
    """Ranges of the file, offset and length by turns, as above, one behind another in memory that is there.
    What surrounds them lies between them: where each begins in it."""
    reads, starts, sizes = _reads(source, rows)
    held = buffer[: sum(sizes)]
    source.read_ranges_into(held, reads)
    blank_targets(held, blank, sizes)
    return starts


def is_code(source: SourceFile) -> bool:
    """Whether most of the file may be such code."""
    if source.size < SAMPLE_BYTES:
        return False
    places = range(0, source.size - SAMPLE_BYTES + 1, max(SAMPLE_BYTES, source.size // SAMPLES))
    told = 0
    for place in places:
        found = source.pread(place, SAMPLE_BYTES)
        if 0 not in found:
            continue  # text
        sample = bytearray(found)
        told += nonzero_bytes(sample)
        blank_targets(sample, 0)
        told -= nonzero_bytes(sample)
    return told * TARGETS_ONE_IN >= len(places) * SAMPLE_BYTES * TARGET_BYTES


def _reads(source: SourceFile, rows: array[int]) -> tuple[array[int], array[int], array[int]]:
    """What is to be read for these ranges, where in that they begin, and how long each part of it is."""
    ends = map(add, rows[0::2], rows[1::2])
    offsets = array("Q", [at - LOOK_BACK if at > LOOK_BACK else 0 for at in rows[0::2]])
    most = source.size
    sizes = array("Q", [min(end + LOOK_AHEAD, most) - at for at, end in zip(offsets, ends, strict=True)])
    reads = array("Q", rows)
    reads[0::2], reads[1::2] = offsets, sizes
    before = map(sub, rows[0::2], offsets)
    return reads, array("Q", map(add, accumulate(sizes, initial=0), before)), sizes


def _surroundings(source: SourceFile, offset: int, length: int) -> tuple[int, int]:
    """Offset and length of what is to be read."""
    start = max(0, offset - LOOK_BACK)
    return start, min(source.size, offset + length + LOOK_AHEAD) - start
