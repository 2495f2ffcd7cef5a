"""Selected rows of a column in plain Python: the definition for select_rows.c."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["put_rows", "take_rows"]


def take_rows(column: ReadableBuffer, width: int, rows: ReadableBuffer, /) -> bytes:
    """Returns these rows of a column of `width` bytes per row, one after another.

    `rows`: native 64-bit numbers. ValueError for a row that the column does not have, or for an incomplete
    row.
    """
    packed = bytes(column)
    return b"".join([packed[width * row : width * (row + 1)] for row in _numbers(packed, width, rows)])


def put_rows(column: WriteableBuffer, width: int, rows: ReadableBuffer, values: ReadableBuffer, /) -> None:
    """Sets these rows to `values`, one each. If a row is named twice, the later value wins.

    ValueError as for `take_rows`, or for more or fewer values than rows; nothing is set then.
    """
    with memoryview(column).cast("B") as view:
        packed = bytes(values)
        numbers = _numbers(bytes(view), width, rows)
        if len(packed) != width * len(numbers):
            raise _misfit()
        for number, row in enumerate(numbers):
            view[width * row : width * (row + 1)] = packed[width * number : width * (number + 1)]


def _numbers(column: bytes, width: int, rows: ReadableBuffer) -> array[int]:
    packed = bytes(rows)
    if width < 1 or len(column) % width or len(packed) % 8:
        raise _misfit()
    numbers = array("Q", packed)
    if any(row >= len(column) // width for row in numbers):
        raise _misfit()
    return numbers


def _misfit() -> ValueError:
    return ValueError("chosen rows: a column of whole rows, and numbers of some that it has")
