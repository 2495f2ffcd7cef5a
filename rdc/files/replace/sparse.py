"""Finds the parts of a buffer that must be written to a new file; blocks of zeros become holes."""

from __future__ import annotations

from rdc.files.root.root import HOLE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = [
    "HOLE_BYTES",
    "data_and_holes",
    "data_spans",
    "is_zeros",
    "long_data_spans",
    "may_have_holes",
    "zero_spans",
]

_ZEROS = bytes(HOLE_BYTES)


def is_zeros(buffer: ReadableBuffer) -> bool:
    """Return whether the buffer holds nothing but zeros."""
    view = memoryview(buffer).cast("B")
    # Converted to bytes, because bytes compare in one step and memoryviews item by item.
    return not view or (not view[0] and not view[-1] and bytes(view) == bytes(len(view)))


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


def long_data_spans(buffer: ReadableBuffer, least: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) in `buffer`, in order, for the parts to be written, without long runs of zeros.

    The buffer is looked at in steps of `least` bytes, so a run of twice that is always found, and a shorter
    one than `least` never. A step of data costs two looks at single bytes. A run need not lie on blocks: the
    rest of a block is written, and the file system fills it with zeros.
    """
    view = memoryview(buffer).cast("B")
    size, zeros, begun, after_zeros = len(view), bytes(least), -1, False
    for start in range(0, size, least):
        stop = min(start + least, size)
        whole = stop - start == least or after_zeros
        after_zeros = (
            whole and not (view[start] or view[stop - 1]) and bytes(view[start:stop]) == zeros[: stop - start]
        )
        if after_zeros:
            if begun >= 0:
                yield begun, start
            begun = -1
        elif begun < 0:
            begun = start
    if begun >= 0:
        yield begun, size


def may_have_holes(view: memoryview, least: int) -> bool:
    """Return whether something may be left out of these bytes: a cheap look that sees that most buffers, such
    as text, have no hole. `least`: as in `data_and_holes`; 0 if nothing is left out."""
    if least != HOLE_BYTES:
        # Some step of `least` bytes begins with a zero.
        return 0 < least <= len(view) and 0 in bytes(view[::least])
    # Blocks are those of the file, so the first and the last bytes may be parts of some.
    return bool(view) and (not view[0] or not view[-1] or _ZEROS in bytes(view))


def data_and_holes(
    buffer: ReadableBuffer, offset: int, least: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return what of `buffer`, for `offset` of a file, is to be written and what is not, as (start, stop).

    `least`: bytes of the shortest run of zeros that is left out; HOLE_BYTES for all blocks of zeros.
    """
    some = data_spans(buffer, offset) if least == HOLE_BYTES else long_data_spans(buffer, least)
    data = list(some)
    ends = [0, *(stop for _, stop in data)]
    starts = [*(start for start, _ in data), memoryview(buffer).nbytes]
    return data, [(end, start) for end, start in zip(ends, starts, strict=True) if start > end]


def zero_spans(buffer: ReadableBuffer, offset: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) in `buffer`, in order, for its whole blocks of zeros at `offset` of a file."""
    at = -offset % HOLE_BYTES
    end = memoryview(buffer).nbytes
    end -= (offset + end) % HOLE_BYTES
    for start, stop in (*data_spans(buffer, offset), (end, end)):
        if at < start <= end:
            yield at, start
        at = max(at, stop)
