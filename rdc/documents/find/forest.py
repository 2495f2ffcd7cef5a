"""Forest: connected positions, eight bytes each."""

from __future__ import annotations

from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Forest"]


class Forest:
    """Disjoint sets of the positions 0 to count - 1. Each set is named by its least position.

    The sets depend on the pairs that were joined, not on their order.
    """

    def __init__(self, count: int) -> None:
        self._above = array("I", range(count))
        self._next: array[int] | None = None

    def top(self, position: int) -> int:
        """The least position of its set. Path halving keeps later searches short."""
        above = self._above
        while (up := above[position]) != position:
            above[position] = above[up]
            position = up
        return position

    def join(self, first: int, second: int) -> None:
        """Unites the sets of two positions."""
        one, other = self.top(first), self.top(second)
        if one != other:
            self._above[max(one, other)] = min(one, other)
            self._next = None

    def is_top(self, position: int) -> bool:
        """Whether it is the least of its set."""
        return self._above[position] == position

    def members(self, top: int) -> Iterator[int]:
        """The positions of a set, in order."""
        chain = self._chains()
        position = top
        yield position
        while (position := chain[position]) != top:
            yield position

    def _chains(self) -> array[int]:
        """The next position of each set, and the least after the last."""
        if self._next is None:
            above = self._above
            chain = self._next = array("I", range(len(above)))
            for position in range(len(above) - 1, -1, -1):
                if above[position] != position:
                    top = self.top(position)
                    chain[position], chain[top] = chain[top], position
        return self._next
