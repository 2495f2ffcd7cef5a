"""Finds the parts of a buffer that must be written to a new file; blocks of zeros become holes."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = ["HOLE_BYTES", "data_spans", "has_hole", "zero_spans"]

HOLE_BYTES = 4096
"""The block size of most file systems. A shorter hole saves nothing, and a larger step would miss some holes.
"""

_ZEROS = bytes(HOLE_BYTES)


def has_hole(buffer: ReadableBuffer) -> bool:
    """Return whether the buffer contains HOLE_BYTES zeros in a row, at any alignment."""
    return _ZEROS in bytes(memoryview(buffer))


def data_spans(buffer: ReadableBuffer, offset: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) in `buffer`, in order, for the parts to be written at `offset` of a file.

    Blocks are aligned to the file. A block of which the buffer holds only the head or tail is skipped if that
    part is zeros; another buffer decides the rest. So every block of zeros becomes a hole, however the
    content is split into buffers.
    """
    view = memoryview(buffer).cast("B")
    size = len(view)
    begun = -1
    start, stop = 0, min(size, HOLE_BYTES - offset % HOLE_BYTES)
    while start < size:
        # Converted to bytes, because bytes compare in one step and memoryviews item by item.
        if bytes(view[start:stop]) == _ZEROS[: stop - start]:
            if begun >= 0:
                yield begun, start
            begun = -1
        elif begun < 0:
            begun = start
        start, stop = stop, min(size, stop + HOLE_BYTES)
    if begun >= 0:
        yield begun, size


def zero_spans(buffer: ReadableBuffer, offset: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) in `buffer`, in order, for its whole blocks of zeros at `offset` of a file."""
    at = -offset % HOLE_BYTES
    end = memoryview(buffer).nbytes
    end -= (offset + end) % HOLE_BYTES
    for start, stop in (*data_spans(buffer, offset), (end, end)):
        if at < start <= end:
            yield at, start
        at = max(at, stop)
