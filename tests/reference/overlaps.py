"""The resemblance of sets in plain Python: the definition for overlaps.c."""

from __future__ import annotations

from array import array

from tests.reference.number_column import number_column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["set_resemblances"]


def set_resemblances(
    values: WriteableBuffer, offsets: ReadableBuffer, pairs: ReadableBuffer, threshold: float, /
) -> bytes:
    """The Jaccard resemblance of each pair of sets: the elements in both, divided by those in either.

    Sets are a column: all elements one after another (u32, native), and offsets (i64), one more than there
    are sets. Elements may repeat and have no order; the C form sorts those of sets in pairs. `pairs`: numbers
    of two sets each (u32). The result has an f64 a pair: 0 if it is below the threshold, 1 for two empty
    sets. ValueError for buffers that are no whole numbers, offsets that decrease or exceed the elements, sets
    that do not exist, and a threshold that is not 0 to 1.
    """
    elements, bounds, numbers = (
        number_column(typecode, buffer) for typecode, buffer in (("I", values), ("q", offsets), ("I", pairs))
    )
    count = len(bounds) - 1
    if count < 0 or bounds[0] < 0 or bounds[-1] > len(elements):
        raise ValueError(f"offsets: one more than sets, from 0 to at most {len(elements)}, are expected")
    if any(bounds[at] > bounds[at + 1] for at in range(count)):
        raise ValueError("offsets must not decrease")
    if len(numbers) % 2 or any(number >= count for number in numbers):
        raise ValueError(f"pairs: two numbers below {count} each are expected")
    if not 0 <= threshold <= 1:
        raise ValueError("threshold: 0 to 1 is expected")
    sets = [frozenset(elements[bounds[at] : bounds[at + 1]]) for at in range(count)]
    found = array("d")
    for at in range(0, len(numbers), 2):
        one, other = sets[numbers[at]], sets[numbers[at + 1]]
        shared = len(one & other)
        either = len(one) + len(other) - shared
        resemblance = shared / either if either else 1.0
        found.append(resemblance if resemblance >= threshold else 0.0)
    return found.tobytes()
