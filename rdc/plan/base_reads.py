"""Splits reads of several bases into the reads of each base."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False

if TYPE_CHECKING:
    from array import array

__all__ = ["by_base"]


def by_base(reads: array[int]) -> list[tuple[int, array[int]]]:
    """Returns each base's number with its offsets and lengths, alternating. `reads` has the kernel's rows
    (base, offset, length), ordered by base."""
    found: list[tuple[int, array[int]]] = []
    bases = reads[0::3]
    first = 0
    while first < len(bases):
        base = bases[first]
        stop = bisect_right(bases, base, first)
        rows = reads[3 * first : 3 * stop]
        del rows[0::3]
        found.append((base, rows))
        first = stop
    return found
