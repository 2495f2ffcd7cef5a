"""Columns of numbers in any buffer, as arguments of the functions for similarity.

A buffer says what its items are. A column of another type is a TypeError, since its bytes would give samples
that mean nothing.
"""

from __future__ import annotations

import sys
from array import array
from enum import Enum
from itertools import pairwise

from rdc.lean.checks import check_argument, found_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Buffer

__all__ = [
    "SAMPLES_MOST",
    "Items",
    "check_column",
    "check_text",
    "check_whole",
    "numbers_of",
    "spans_of",
]

SAMPLES_MOST = 1 << 16
"""Samples of a set, and bands or groups of them."""


class Items(Enum):
    """What the items of a column are: codes of their formats, and a name. All have eight bytes."""

    UNSIGNED = ("QLN", "64-bit unsigned numbers", "array('Q') or a numpy array of uint64")
    SIGNED = ("qln", "64-bit signed numbers", "array('q') or a numpy array of int64")
    DOUBLES = ("d", "64-bit floating-point numbers", "array('d') or a numpy array of float64")


_BYTES = "Bbc"
"""Formats of bytes: those of bytes objects, of Arrow's buffers and of ctypes."""

_OTHER_ORDERS = {"little": ">!", "big": "<"}[sys.byteorder]


def check_column(function: str, name: str, value: Buffer, items: Items) -> None:
    """Raise TypeError unless `value` is a contiguous buffer of such items in the byte order of this machine.

    Bytes are taken as packed items. An array of 8-bit numbers is not bytes.
    """
    expected = f"{function}.{name}: expected {items.value[1]}, such as {items.value[2]}"
    with _view(expected, value) as view:
        order, code = _format_of(view)
        if code in _BYTES and view.itemsize == 1:
            if _is_array(view.obj):
                raise TypeError(f"{expected}, found an array of 8-bit numbers")
            return
        if code not in items.value[0] or view.itemsize != 8:
            raise TypeError(f"{expected}, found {view.format!r} of {view.itemsize} bytes")
        if order in _OTHER_ORDERS:
            raise TypeError(f"{expected}, found another byte order than this machine has ({view.format!r})")


def check_text(function: str, name: str, value: Buffer) -> None:
    """Raise TypeError unless `value` is a contiguous buffer of bytes."""
    expected = f"{function}.{name}: expected bytes"
    with _view(expected, value) as view:
        _, code = _format_of(view)
        if code not in _BYTES or view.itemsize != 1:
            raise TypeError(f"{expected}, found {view.format!r} of {view.itemsize} bytes")


def check_whole(owner: str, data: object, width: int, *, least: int = 0) -> None:
    """Raise TypeError unless `data` is bytes, and ValueError unless they are whole items of `width` bytes, at
    least `least` of them."""
    check_argument(owner, "data", data, bytes)
    if isinstance(data, bytes) and (len(data) % width or len(data) < least * width):
        raise ValueError(
            f"{owner}: expected whole items of {width} bytes, {least} or more, found {len(data)} bytes"
        )


def numbers_of(typecode: str, buffer: Buffer, name: str) -> array[int]:
    """Return the 64-bit numbers of a column. Raises ValueError for an incomplete one."""
    content = bytes(memoryview(buffer).cast("B"))
    if len(content) % 8:
        raise ValueError(f"{name}: {len(content)} bytes are no whole 64-bit numbers")
    return array(typecode, content)


def spans_of(size: int, offsets: Buffer) -> Iterator[tuple[int, int]]:
    """Yield where each row of a column of `size` items begins and ends. Raises ValueError, before the first
    row, for offsets that are no whole numbers, decrease or exceed the column."""
    bounds = numbers_of("q", offsets, "offsets")
    if not bounds or bounds[0] < 0 or bounds[-1] > size:
        raise ValueError(f"offsets: one more than rows, from 0 to at most {size}, are expected")
    for first, stop in pairwise(bounds):
        if stop < first:
            raise ValueError(f"offsets: {stop} follows {first}; they must not decrease")
    yield from pairwise(bounds)


def _view(expected: str, value: Buffer) -> memoryview:
    try:
        view = memoryview(value)
    except (TypeError, BufferError):
        raise TypeError(f"{expected}, found {found_type(value)}") from None
    if not view.c_contiguous:
        view.release()
        raise TypeError(f"{expected}, found a buffer with gaps; copy it first")
    return view


def _format_of(view: memoryview) -> tuple[str, str]:
    """Return the mark of the byte order, '@' without one, and the code of the items."""
    text = view.format or "B"
    return (text[0], text[1:]) if text[0] in "@=<>!" else ("@", text)


def _is_array(owner: object) -> bool:
    """Whether the owner of a buffer says that its items are numbers of 8 bits, as arrays of Python and numpy
    do."""
    return getattr(owner, "itemsize", 0) == 1
