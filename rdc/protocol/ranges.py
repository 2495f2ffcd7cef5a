"""Byte ranges of a file as requests name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdc.limits import SIZE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Sequence


__all__ = ["Ranged", "gaps_between"]


class Ranged:
    """Increasing, disjoint byte ranges of a file, by the gaps before them and their lengths."""

    __slots__ = ()

    file: int
    gaps: tuple[int, ...]
    lengths: tuple[int, ...]

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """(offset, length) pairs."""
        found = []
        end = 0
        for gap, length in zip(self.gaps, self.lengths, strict=True):
            found.append((end + gap, length))
            end += gap + length
        return tuple(found)

    def check_ranges(self) -> str | None:
        if len(self.gaps) != len(self.lengths):
            return f"lengths: {len(self.lengths)} for {len(self.gaps)} offsets"
        if sum(self.gaps) + sum(self.lengths) > SIZE_LIMIT:
            return f"lengths: the last range ends past {SIZE_LIMIT}"
        return None


def gaps_between(ranges: Sequence[tuple[int, int]]) -> tuple[int, ...]:
    gaps = []
    end = 0
    for offset, length in ranges:
        gaps.append(offset - end)
        end = offset + length
    return tuple(gaps)
