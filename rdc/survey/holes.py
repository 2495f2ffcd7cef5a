"""The holes of one file: what of a range lies in them takes no space and is not counted."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["NO_HOLES", "Holes"]


class Holes:
    """All ranges are [start, end) in bytes; false where there is no hole."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        """In order, apart from each other."""
        found = list(ranges)
        self._starts = [start for start, _ in found]
        self._ends = [end for _, end in found]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def cover(self, start: int, end: int) -> bool:
        """Whether the range lies wholly in one of them."""
        number = bisect_right(self._starts, start) - 1
        return number >= 0 and self._ends[number] >= end

    def total(self, size: int) -> int:
        """Bytes that holes take of the first `size`."""
        pairs = zip(self._starts, self._ends, strict=True)
        return sum([min(end, size) - min(start, size) for start, end in pairs])

    def covered(self, start: int, length: int, count: int) -> int:
        """How many of the `count` chunks of `length` bytes each that follow each other from `start` on lie
        wholly in holes."""
        covered = 0
        for first, last in zip(self._starts, self._ends, strict=True):
            # Those inside this hole: from the first that begins in it to the last that ends.
            begin = max(0, -(-(first - start) // length))
            end = min(count, (last - start) // length)
            covered += max(0, end - begin)
        return covered

    def data(self, content: bytes, offset: int) -> bytes:
        """What of `content`, which begins at `offset`, is in no hole."""
        end = offset + len(content)
        number = max(bisect_right(self._starts, offset) - 1, 0)
        parts, at = [], offset
        for hole in range(number, len(self._starts)):
            if self._starts[hole] >= end:
                break
            parts.append(content[at - offset : max(at, self._starts[hole]) - offset])
            at = max(at, self._ends[hole])
        if not parts:
            return content
        parts.append(content[at - offset :])
        return b"".join(parts)


NO_HOLES = Holes(())
