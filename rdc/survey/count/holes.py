"""Holes: the holes of one file, which take no space and are not counted."""

from __future__ import annotations

from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["NO_HOLES", "Holes"]


class Holes:
    """Ranges of bytes [start, end). False if there are none."""

    __slots__ = ("_ends", "_starts")

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        """`ranges`: sorted and disjoint."""
        found = list(ranges)
        self._starts = [start for start, _ in found]
        self._ends = [end for _, end in found]

    def __bool__(self) -> bool:
        return bool(self._starts)

    def cover(self, start: int, end: int) -> bool:
        """Whether the range lies wholly in one hole."""
        number = bisect_right(self._starts, start) - 1
        return number >= 0 and self._ends[number] >= end

    def uncovered(self, size: int, step: int) -> Iterator[tuple[int, int]]:
        """Yield (start, end) for the data of the first `size` bytes, in order.

        The bytes are looked at in steps of `step` from the start of the file. A step that lies wholly in one
        hole is left out. The time is that of the holes, not of the steps.
        """
        at = 0
        for hole_start, hole_end in zip(self._starts, self._ends, strict=True):
            start = -(-min(hole_start, size) // step) * step
            # A hole that reaches the end of the file covers its last step, though that is shorter.
            end = hole_end // step * step if hole_end < size else size
            if start < end:
                if at < start:
                    yield at, start
                at = end
        if at < size:
            yield at, size

    def total(self, size: int) -> int:
        """Bytes of holes within the first `size` bytes."""
        pairs = zip(self._starts, self._ends, strict=True)
        return sum([min(end, size) - min(start, size) for start, end in pairs])

    def covered(self, start: int, length: int, count: int) -> int:
        """Counts the chunks that lie wholly in holes, of `count` chunks of `length` bytes each that follow
        one another from `start`."""
        covered = 0
        for first, last in zip(self._starts, self._ends, strict=True):
            # Chunks inside this hole: from the first that begins in it to the last that ends in it.
            begin = max(0, -(-(first - start) // length))
            end = min(count, (last - start) // length)
            covered += max(0, end - begin)
        return covered

    def data(self, content: bytes, offset: int) -> bytes:
        """The parts of `content` outside of holes. `offset`: where `content` begins in the file."""
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
