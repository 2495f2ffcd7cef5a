"""Some rows of a column, one behind another, as plain loops: the truth for chosen_rows.c."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["put_rows", "take_rows"]


def take_rows(column: ReadableBuffer, width: int, rows: ReadableBuffer, /) -> bytes:
    """These rows of a column, `width` bytes each.

    `rows`: native 64-bit numbers. ValueError for a row that the column does not have, or a column that is not
    whole rows.
    """
    packed = bytes(column)
    return b"".join([packed[width * row : width * (row + 1)] for row in _numbers(packed, width, rows)])


def put_rows(column: WriteableBuffer, width: int, rows: ReadableBuffer, values: ReadableBuffer, /) -> None:
    """Sets these rows to `values`, one each; of a row that is named twice the later one stays.

    ValueError, and nothing is set, as for `take_rows`, and where there are more or fewer values.
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
