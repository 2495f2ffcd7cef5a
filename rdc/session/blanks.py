"""Files read as machine code without the targets that it names by their distance."""

from __future__ import annotations

from rdc.kernel import blank_targets, nonzero_bytes, target_mask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.source import SourceFile

__all__ = ["CLAIMED", "LOOK_AHEAD", "LOOK_BACK", "SOUGHT", "blanked", "is_code", "shown"]

SOUGHT, CLAIMED = 0x80, 0x7F
"""What a target's bytes are, where blocks are looked for and where claims are made. A block may seem to be
found because of a byte that is really the first of these; it is not the second then, and the claim is wrong.
Otherwise both sides take the same bytes for targets."""

LOOK_BACK = 40
LOOK_AHEAD = 19
"""Bytes before and behind a byte that say whether it is of a target: what is further away does not matter."""

SAMPLE_BYTES = 4096
SAMPLES = 64
"""Looked at to say whether a file is code: 256 KB, in a few hundred microseconds."""

TARGET_BYTES = 2
TARGETS_ONE_IN = 110
"""Bytes of a file for each target, at most, if it is code, where so many bytes that are not 0 are counted as
one: code that is still to be linked, as kernel modules are, has zeros in their places, so that nothing is
different where it moved. Libraries have one in 30 to 110, kernel modules in 90 to 220, text, tables and
compressed data in 500 to 4,000 (measured)."""


def blanked(source: SourceFile, blank: int, offset: int, length: int) -> memoryview:
    """These bytes of the file, its targets overwritten, as a look at all of it would find them."""
    start, size = _surroundings(source, offset, length)
    content = memoryview(bytearray(size))
    source.read_into(content, start)
    blank_targets(content, blank)
    return content[offset - start : offset - start + length]


def shown(source: SourceFile, offset: int, length: int) -> tuple[bytes, bytes]:
    """These bytes as they are, and a mask, FF for each byte of a target."""
    start, size = _surroundings(source, offset, length)
    held = source.pread(start, size)
    here = slice(offset - start, offset - start + length)
    return held[here], target_mask(held)[here]


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


def _surroundings(source: SourceFile, offset: int, length: int) -> tuple[int, int]:
    """Offset and length of what is to be read."""
    start = max(0, offset - LOOK_BACK)
    return start, min(source.size, offset + length + LOOK_AHEAD) - start
