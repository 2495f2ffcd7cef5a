"""Which bytes have to be written to a new file in which nothing was written yet: zeros are there already."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = ["HOLE_BYTES", "data_spans", "has_hole"]

HOLE_BYTES = 4096
"""The block of most file systems: a shorter hole saves nothing, and a larger step would overlook some."""

_ZEROS = bytes(HOLE_BYTES)


def has_hole(buffer: ReadableBuffer) -> bool:
    """Whether there may be a hole in what the buffer holds, wherever it is put."""
    return _ZEROS in bytes(memoryview(buffer))


def data_spans(buffer: ReadableBuffer, offset: int) -> Iterator[tuple[int, int]]:
    """(start, stop) in `buffer`, in order, of what is to be written of it at `offset` of a file.

    Blocks are those of the file. One that the buffer only has the head or the tail of is skipped as well if
    that is zeros: the rest of it is decided with the buffer that has it. So every block of zeros becomes a
    hole, however the content is cut into buffers.
    """
    view = memoryview(buffer).cast("B")
    size = len(view)
    begun = -1
    start, stop = 0, min(size, HOLE_BYTES - offset % HOLE_BYTES)
    while start < size:
        # Of bytes, not of the view: those are compared in one step.
        if bytes(view[start:stop]) == _ZEROS[: stop - start]:
            if begun >= 0:
                yield begun, start
            begun = -1
        elif begun < 0:
            begun = start
        start, stop = stop, min(size, stop + HOLE_BYTES)
    if begun >= 0:
        yield begun, size
