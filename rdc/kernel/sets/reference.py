"""Common elements of sets in plain Python: the definition for overlaps.c."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["set_overlaps"]


def set_overlaps(values: ReadableBuffer, offsets: ReadableBuffer, pairs: ReadableBuffer, /) -> bytes:
    """Counts for each pair of sets the elements that both have, and those that either has.

    Sets are a column: all elements one after another (u32, native), and offsets (i64), one more than there
    are sets. Elements may repeat and have no order. `pairs`: numbers of two sets each (u32). The result has
    two u32 a pair. ValueError for buffers that are no whole numbers, offsets that decrease or exceed the
    elements, and sets that do not exist.
    """
    elements, bounds, numbers = (
        _numbers(typecode, buffer) for typecode, buffer in (("I", values), ("q", offsets), ("I", pairs))
    )
    count = len(bounds) - 1
    if count < 0 or bounds[0] < 0 or bounds[-1] > len(elements):
        raise ValueError(f"offsets: one more than sets, from 0 to at most {len(elements)}, are expected")
    if any(bounds[at] > bounds[at + 1] for at in range(count)):
        raise ValueError("offsets must not decrease")
    if len(numbers) % 2 or any(number >= count for number in numbers):
        raise ValueError(f"pairs: two numbers below {count} each are expected")
    sets = [frozenset(elements[bounds[at] : bounds[at + 1]]) for at in range(count)]
    found = array("I")
    for at in range(0, len(numbers), 2):
        one, other = sets[numbers[at]], sets[numbers[at + 1]]
        shared = len(one & other)
        found.extend((shared, len(one) + len(other) - shared))
    return found.tobytes()


def _numbers(typecode: str, buffer: ReadableBuffer) -> array[int]:
    content = bytes(memoryview(buffer).cast("B"))
    column = array(typecode)
    if len(content) % column.itemsize:
        raise ValueError(f"{len(content)} bytes are no whole numbers of {column.itemsize} bytes")
    column.frombytes(content)
    return column
