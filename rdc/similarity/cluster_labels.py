"""Clusters: the connected components of pairs, each named by its smallest member."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from rdc.lean.records import dataclass
from rdc.similarity.union_find import UnionFind

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["Clusters", "clusters"]


@dataclass(frozen=True, slots=True)
class Clusters:
    """Members of pairs and the cluster of each. Equal pairs in any order give equal bytes."""

    members: array[int]
    """All numbers of the pairs in increasing order, typecode 'Q'."""
    labels: array[int]
    """The smallest number of each member's cluster, typecode 'Q'."""

    def __len__(self) -> int:
        """The number of clusters."""
        return sum([member == label for member, label in zip(self.members, self.labels, strict=True)])

    def __iter__(self) -> Iterator[array[int]]:
        """The members of each cluster in increasing order. Clusters come in the order of their labels."""
        groups: dict[int, array[int]] = {}
        for member, label in zip(self.members, self.labels, strict=True):
            groups.setdefault(label, array("Q")).append(member)
        return iter(groups.values())

    def label(self, number: int) -> int:
        """The smallest number of its cluster; a number of no pair is a cluster of its own."""
        at = bisect_left(self.members, number)
        known = at < len(self.members) and self.members[at] == number
        return self.labels[at] if known else number


def clusters(pairs: Iterable[tuple[int, int]]) -> Clusters:
    """Connects the two numbers of each pair, 0 to 2^64 - 1.

    Neither order nor repetition of pairs counts, so clusters of parts and of the whole agree. Takes about 200
    bytes a number. Raises ValueError for other numbers.

    >>> from rdc.similarity import clusters
    >>> found = clusters([(7, 3), (9, 8), (3, 5)])
    >>> [list(cluster) for cluster in found], found.label(7)
    ([[3, 5, 7], [8, 9]], 3)
    """
    sets = UnionFind()
    numbers: set[int] = set()
    for first, second in pairs:
        sets.join(first, second)
        numbers.update((first, second))
    try:
        members = array("Q", sorted(numbers))
    except (OverflowError, TypeError) as problem:
        raise ValueError(f"members of pairs: numbers from 0 to 2^64 - 1 are expected ({problem})") from None
    return Clusters(members, array("Q", map(sets.top, members)))
