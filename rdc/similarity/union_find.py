"""UnionFind: sets of connected numbers, built pair by pair."""

from __future__ import annotations

__all__ = ["UnionFind"]


class UnionFind:
    """Disjoint sets of numbers. A number that was never joined is a set of its own and takes no memory."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def top(self, number: int) -> int:
        """The smallest number of its set. Path halving keeps later searches short."""
        above = self._above
        while (up := above.get(number, number)) != number:
            above[number] = above.get(up, up)
            number = up
        return number

    def join(self, first: int, second: int) -> bool:
        """Unites the sets of two numbers. Returns whether they were different sets."""
        one, other = self.top(first), self.top(second)
        if one != other:
            self._above[max(one, other)] = min(one, other)
        return one != other
