"""Which names of a tree are one file, and the merge of two such trees with what both had in common. Pure.

Ties number the names that share a file with another name of their tree. Every other name is a file of its
own. Each pair of names is decided by three answers: whether the two are one file in the ancestor, at the left
and at the right. The side that differs from the ancestor decides, so no pair is ever in conflict. But all
pairs together may be no partition: a is b, b is c, and a is not c.
"""

from __future__ import annotations

from collections import Counter

from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
    from typing import TypeAlias

    from rdc.uniting.rows import Node

    Ties: TypeAlias = Mapping[bytes, int]
    """The number of the file of each name that shares it with another name; names of one file have one
    number."""

    Groups: TypeAlias = list[list[bytes]]
    """Names that are one file, sorted; each name is in one group at most."""


class Tied(Record):
    """What a plan says of hard links."""

    groups: Sequence[Sequence[bytes]]
    """The names that are one file at both sides after the run."""
    decided: frozenset[bytes]
    """All names of which that is decided. Those in no group are files of their own."""
    open: frozenset[bytes]
    """Names in a conflict about links. They stay as they are."""
    before: Ties
    """The ancestor's, by paths after the renames."""


def grouped(groups: Iterable[Collection[bytes]]) -> dict[bytes, int]:
    """Return groups as Ties, numbered in order of their first names: equal ones have equal numbers."""
    some = sorted(sorted(group) for group in groups if len(group) > 1)
    return {path: number for number, group in enumerate(some) for path in group}


def groups_of(ties: Ties, among: Container[bytes] | None = None) -> Groups:
    """Return the names of each file, as far as they are `among` those."""
    found: dict[int, list[bytes]] = {}
    for path, number in ties.items():
        if among is None or path in among:
            found.setdefault(number, []).append(path)
    return sorted(sorted(group) for group in found.values())


def retied(base: Ties, ties: Ties) -> frozenset[bytes]:
    """Return the names whose file has other names than in `base`."""
    before = {tuple(group) for group in groups_of(base)}
    now = {tuple(group) for group in groups_of(ties)}
    return frozenset(path for group in before ^ now for path in group)


class Union:
    """Sets of names that grow together."""

    def __init__(self) -> None:
        self._above: dict[bytes, bytes] = {}

    def top(self, path: bytes) -> bytes:
        """Return the name that stands for all of a set."""
        above = self._above
        top = path
        while above.get(top, top) != top:
            top = above[top]
        while above.get(path, path) != top:
            above[path], path = top, above[path]
        return top

    def join(self, paths: Sequence[bytes]) -> None:
        """Make one set of these, if there are any."""
        for path in paths:
            self._above.setdefault(path, path)
        for path in paths[1:]:
            one, other = self.top(paths[0]), self.top(path)
            self._above[max(one, other)] = min(one, other)

    def sets(self) -> Groups:
        """Return all sets."""
        found: dict[bytes, list[bytes]] = {}
        for path in self._above:
            found.setdefault(self.top(path), []).append(path)
        return sorted(sorted(group) for group in found.values())


def moved(ties: Ties, tree: Node) -> Ties:
    """Return ties by the paths that the names have in a tree after renames."""
    moves = {node.origin: node.path for node in tree.below() if node.was is not None} if ties else {}
    if not moves:
        return ties
    found: dict[bytes, int] = {}
    for path, number in ties.items():
        above, below = path, b""
        while above and above not in moves:
            above, slash, name = above.rpartition(b"/")
            below = slash + name + below
        found[moves[above] + below if above else path] = number
    return found


def refined(ties: Ties, equal: Mapping[bytes, object]) -> dict[bytes, int]:
    """Return ties among names that are equal: no others can be one file."""
    numbers: dict[object, int] = {}
    return {
        path: numbers.setdefault((number, equal[path]), len(numbers))
        for path, number in ties.items()
        if path in equal
    }


# The merge


def merged(names: Sequence[bytes], base: Ties, left: Ties, right: Ties) -> Groups | None:
    """Return which of these names are one file, by what each side changed since the ancestor; None if all
    pairs together make no partition.

    Costs no step for each pair. What is joined here is a path of pairs that are one. So the pairs make a
    partition if, and only if, there are as many of them as in the joined sets.
    """
    among = frozenset(names)
    union = Union()
    for ties, other in ((left, right), (right, left)):
        for group in groups_of(ties, among):
            if len({base.get(path, path) for path in group}) > 1:
                # Two that are one in the ancestor are both one with a third one that is not.
                union.join(group)
                continue
            alike: dict[object, list[bytes]] = {}
            for path in group:
                alike.setdefault(other.get(path, path), []).append(path)
            for some in alike.values():
                union.join(some)

    def pairs(*every: Ties) -> int:
        return _pairs(Counter(tuple([ties.get(path, path) for ties in every]) for path in names).values())

    found = union.sets()
    at_both, one_of_both = pairs(left, right), pairs(left) + pairs(right)
    in_all, in_one_and_before = pairs(base, left, right), pairs(base, left) + pairs(base, right)
    related = one_of_both - at_both - (in_one_and_before - 2 * in_all)
    return found if _pairs(map(len, found)) == related else None


def _pairs(sizes: Iterable[int]) -> int:
    return sum(size * (size - 1) // 2 for size in sizes)


def parts(names: Container[bytes], every: Iterable[Ties]) -> Groups:
    """Return the parts of the tree of which the links are decided together: no file of any of the three trees
    has names in two of them."""
    union = Union()
    for ties in every:
        for group in groups_of(ties, names):
            union.join(group)
    return [part for part in union.sets() if len(part) > 1]


# The next ancestor


def next_ties(tied: Tied, rows: Container[bytes], failed: Callable[[bytes], bool]) -> dict[bytes, int]:
    """Return the names that share a file in the next ancestor.

    `rows`: the paths of its files. `failed`: whether a step at a path was not done. Names of which
    nothing was decided or done have in common what they had before, also with the first of those that were.
    """
    union = Union()
    done = {path for path in tied.decided if path in rows and not failed(path)}
    for group in tied.groups:
        if some := [path for path in group if path in done]:
            union.join(some)
    taken: set[bytes] = set()
    for before in groups_of(tied.before, rows):
        union.join([path for path in before if path in tied.open])
        old = [path for path in before if path not in done and path not in tied.open]
        new = union.top(next((path for path in before if path in done), b""))
        union.join([new, *old] if new and new not in taken else old)
        taken.add(new)
    return grouped(union.sets())
