"""Pairs of neighbours in groups in plain Python: the definition for pairs.c."""

from __future__ import annotations

from array import array

from tests.reference.number_column import number_column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["missing_pairs", "neighbour_pairs", "ranked_numbers", "sorted_pairs"]


def neighbour_pairs(
    members: ReadableBuffer, counts: ReadableBuffer, window: int, first: int, stop: int, /
) -> bytes:
    """Pairs each of some members with the `window` that follow it in its group: u64, the member times 2^32
    plus the other one.

    `members`: those of one group after another; `counts`: how many each group has (u32, native). Only the
    members at the positions `first` to before `stop` come first in a pair. ValueError for buffers that are no
    whole numbers, counts of another number of members, and a negative window or position.
    """
    numbers, sizes = number_column("I", members), number_column("I", counts)
    if sum(sizes) != len(numbers):
        raise ValueError(f"counts: {len(numbers)} members are expected")
    if min(window, first, stop) < 0:
        raise ValueError("window, first, stop: 0 or more is expected")
    pairs, start = array("Q"), 0
    for size in sizes:
        for at in range(max(start, first), min(start + size, stop)):
            for other in numbers[at + 1 : min(at + 1 + window, start + size)]:
                pairs.append(numbers[at] << 32 | other)
        start += size
    return pairs.tobytes()


def sorted_pairs(pairs: ReadableBuffer, /) -> bytes:
    """The different numbers of a column (u64, native) in order. ValueError for an incomplete number."""
    return array("Q", sorted(set(number_column("Q", pairs)))).tobytes()


def missing_pairs(pairs: ReadableBuffer, known: ReadableBuffer, /) -> bytes:
    """Return the numbers of a column in order that another column in order lacks: u64, native. ValueError for
    an incomplete number."""
    others = set(number_column("Q", known))
    return array("Q", [pair for pair in number_column("Q", pairs) if pair not in others]).tobytes()


def ranked_numbers(numbers: ReadableBuffer, /) -> tuple[bytes, bytes]:
    """The different numbers of a column in order, and for each number of the column which of them it is: u32,
    native. ValueError for an incomplete number, and for more than 2^32 - 1."""
    column = number_column("I", numbers)
    if len(column) > 0xFFFFFFFF:
        raise ValueError(f"at most {0xFFFFFFFF} numbers are expected")
    different = array("I", sorted(set(column)))
    order = {number: rank for rank, number in enumerate(different)}
    return different.tobytes(), array("I", map(order.__getitem__, column)).tobytes()
