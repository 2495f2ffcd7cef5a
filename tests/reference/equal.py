"""Rows of a column with equal values in plain Python: the definition for equal_rows.c."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["equal_rows"]


def equal_rows(column: ReadableBuffer, width: int, /) -> tuple[bytes, bytes]:
    """Returns the rows of `column`, `width` bytes each, whose values occur more than once.

    The result is two columns of little-endian 32-bit numbers: these rows, ordered by value (compared as
    bytes) and row, and the number of rows of each of these values. ValueError for an incomplete row or too
    many rows.
    """
    packed = bytes(column)
    if width < 1 or len(packed) % width or len(packed) // width >= 1 << 32:
        raise ValueError(
            f"equal rows: a column of at most 2^32 - 1 rows of {width} bytes (found {len(packed)} bytes)"
        )
    rows_by_value: dict[bytes, list[int]] = {}
    for row in range(len(packed) // width):
        rows_by_value.setdefault(packed[row * width : row * width + width], []).append(row)
    groups = [rows for _, rows in sorted(rows_by_value.items()) if len(rows) > 1]
    return (
        b"".join(row.to_bytes(4, "little") for rows in groups for row in rows),
        b"".join(len(rows).to_bytes(4, "little") for rows in groups),
    )
