"""What must hold for the rows of a pack's directory, in plain Python: the definition for frame_columns.c."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["frames_are_sound"]

STORED, PACKED, DELTA = range(3)
WIDTHS = (1, 4, 4, 4, 2, 1, 2)
"""Bytes of kind, stored bytes, bytes, chunks, generation, depth and bases of a frame."""


def _numbers(column: ReadableBuffer, width: int) -> list[int]:
    data = bytes(memoryview(column).cast("B"))
    if len(data) % width:
        raise ValueError("columns have whole rows")
    return [int.from_bytes(data[at : at + width], "little") for at in range(0, len(data), width)]


def frames_are_sound(
    columns: tuple[ReadableBuffer, ...], bases: int, stored: int, most: tuple[int, int, int], /
) -> bool:
    """Return whether a reader may take these frames.

    `columns`: seven with a row for each frame, of WIDTHS bytes, then the length of each chunk in 4 bytes.
    `bases`, `stored`: the number of bases and of stored bytes of all frames. `most`: bytes of a frame,
    decoded and stored, its depth, and the number of its bases.
    """
    size_most, depth_most, bases_most = most
    *frames, lengths = [_numbers(column, width) for column, width in zip(columns, (*WIDTHS, 4), strict=True)]
    if len({len(column) for column in frames}) != 1:
        raise ValueError("columns have a row for each frame")
    first = 0
    for kind, packed, size, chunks, generation, depth, below in zip(*frames, strict=True):
        own, first = lengths[first : first + chunks], first + chunks
        if not (
            kind in (STORED, PACKED, DELTA)
            and 0 < packed <= size_most
            and 0 < size <= size_most
            and depth <= depth_most
            and below <= bases_most
            and bool(below) == bool(depth) == bool(generation) == (kind == DELTA)
            and (kind != STORED or packed == size)
            and len(own) == chunks
            and all(own)
            and sum(own) == size
        ):
            return False
    return first == len(lengths) and sum(frames[6]) == bases and sum(frames[1]) == stored
