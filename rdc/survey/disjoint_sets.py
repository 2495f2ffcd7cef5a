"""Which of many numbered things are connected, one pair after the other: union and find."""

from __future__ import annotations

__all__ = ["DisjointSets"]


class DisjointSets:
    """Numbers that were never joined are sets of their own, and take no room."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def top(self, number: int) -> int:
        """The least number of its set. Halves the paths that it walks, so that they stay short."""
        above = self._above
        while (up := above.get(number, number)) != number:
            above[number] = above.get(up, up)
            number = up
        return number

    def join(self, first: int, second: int) -> bool:
        """Makes one set of theirs; whether they were two."""
        one, other = self.top(first), self.top(second)
        if one != other:
            self._above[max(one, other)] = min(one, other)
        return one != other
