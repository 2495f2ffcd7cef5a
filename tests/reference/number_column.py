"""Columns of whole numbers from buffers, for the definitions of this folder."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["number_column"]


def number_column(typecode: str, buffer: ReadableBuffer) -> array[int]:
    """The numbers in a buffer, native. Raises ValueError for an incomplete number."""
    content = bytes(memoryview(buffer).cast("B"))
    column = array(typecode)
    if len(content) % column.itemsize:
        raise ValueError(f"{len(content)} bytes are no whole numbers of {column.itemsize} bytes")
    column.frombytes(content)
    return column
