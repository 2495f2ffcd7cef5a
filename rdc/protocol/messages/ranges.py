"""Byte ranges of a file in a request."""

from __future__ import annotations

from array import array
from itertools import accumulate, chain
from operator import add, sub

from rdc.limits.wire import SIZE_LIMIT

__all__ = ["Ranged", "columns_of"]


class Ranged:
    """Increasing, disjoint byte ranges of a file, as the gaps before them and their lengths."""

    __slots__ = ()

    file: int
    gaps: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def end(self) -> int:
        """Offset after the last range, in bytes."""
        return sum(self.gaps) + sum(self.lengths)

    @property
    def rows(self) -> array[int]:
        """Two numbers per range: offset and length."""
        found = array("Q", bytes(16 * len(self.lengths)))
        found[1::2] = lengths = array("Q", self.lengths)
        found[0::2] = array("Q", map(sub, accumulate(map(add, self.gaps, self.lengths)), lengths))
        return found

    def check_ranges(self) -> str | None:
        if len(self.gaps) != len(self.lengths):
            return f"lengths: {len(self.lengths)} for {len(self.gaps)} offsets"
        if self.end > SIZE_LIMIT:
            return f"lengths: the last range ends past {SIZE_LIMIT}"
        return None


def columns_of(rows: array[int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The gaps and lengths of `rows`. A rebuilt library has tens of thousands of ranges, so this avoids a
    loop."""
    offsets, lengths = rows[0::2], rows[1::2]
    return tuple(map(sub, offsets, chain((0,), map(add, offsets, lengths)))), tuple(lengths)
