"""Pairs of directories that hold the same chunks, each named as deep as the overlap goes."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from rdc.model.scan import Overlap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.survey.places import Places
    from rdc.survey.references import References

__all__ = ["overlaps"]

OVERLAPS = 50
"""Pairs reported at most."""

DIRECTORIES_PER_CHUNK = 12
"""A chunk in more directories than this says nothing about any two of them (a licence, an empty page of a
database), and its pairs would grow with their square."""

MEETINGS = 1 << 20
"""Pairs of directories met in chunks, each chunk's by itself, at most: some seconds. Of more, one chunk in 2,
4, ... is followed, as past the limit of all references."""

CANDIDATES = 1 << 18
"""Pairs of directories watched at a time; the weakest half is dropped past it."""

DEEPER_KEEPS = 0.9
"""A pair gives way to one inside it that still has this share of its bytes."""

WORTH = 4096
"""Shared bytes below which a pair is not worth a line."""


def overlaps(places: Places, references: References) -> tuple[Overlap, ...]:
    """The pairs that share most bytes of unique chunks, most first.

    Candidates for two files' directories: these two; the two without the names in which their paths end
    alike (`a/x/src` and `b/x/src` speak for `a` and `b`); and where their paths part. Of pairs inside one
    another the deepest is taken that keeps nearly all; what it contains, and what contains it, is left out.
    """
    tree = _Tree(places)
    references = _bounded(places, references)
    shared: defaultdict[tuple[int, int], int] = defaultdict(int)
    for size, found in _meetings(places, references):
        pairs: set[tuple[int, int]] = set()
        for first, second in combinations(found, 2):
            pairs.update(tree.candidates(first, second))
        for pair in pairs:
            shared[pair] += size
        if len(shared) > CANDIDATES:
            floor = sorted(shared.values())[len(shared) // 2]
            shared = defaultdict(int, {pair: size for pair, size in shared.items() if size > floor})
    chosen = _choose(tree, shared)
    unique = _unique_bytes(tree, places, references, {number for pair in chosen for number in pair})
    scale = 1 << references.shift
    return tuple(
        Overlap(
            first=places.directories[first],
            second=places.directories[second],
            shared_bytes=shared[first, second] * scale,
            first_bytes=unique[first] * scale,
            second_bytes=unique[second] * scale,
        )
        for first, second in chosen
    )


def _meetings(places: Places, references: References) -> Iterator[tuple[int, list[int]]]:
    """Of each chunk that says something its bytes and the directories that it is in."""
    for size, where in references.repeated():
        found = sorted({places.directory_of[place] for place in where})
        if 2 <= len(found) <= DIRECTORIES_PER_CHUNK:
            yield size, found


def _bounded(places: Places, references: References) -> References:
    """So many of the chunks that at most MEETINGS pairs of directories meet in them, about."""
    meetings = sum([len(found) * (len(found) - 1) // 2 for _, found in _meetings(places, references)])
    shift = max(0, (meetings - 1) // MEETINGS).bit_length()
    return references.thinned(references.shift + shift) if shift else references


class _Tree:
    """Directories by number, and how they lie to each other."""

    def __init__(self, places: Places) -> None:
        self._parents = places.parents
        self._names = [path.rpartition(b"/")[2] for path in places.directories]
        self._depths: list[int] = []
        for parent in places.parents:
            self._depths.append(0 if parent < 0 else self._depths[parent] + 1)
        self._known: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}

    def chain(self, number: int) -> list[int]:
        """The directory and all above it."""
        above = []
        while number >= 0:
            above.append(number)
            number = self._parents[number]
        return above

    def contains(self, outer: int, inner: int) -> bool:
        while inner >= 0 and self._depths[inner] > self._depths[outer]:
            inner = self._parents[inner]
        return inner == outer

    def candidates(self, first: int, second: int) -> tuple[tuple[int, int], ...]:
        known = self._known.get((first, second))
        if known is None:
            if len(self._known) >= CANDIDATES:
                self._known.clear()
            known = self._known[first, second] = self._candidates(first, second)
        return known

    def _candidates(self, first: int, second: int) -> tuple[tuple[int, int], ...]:
        if self.contains(first, second) or self.contains(second, first):
            return ()
        a, b = first, second
        parents, names = self._parents, self._names
        while names[a] == names[b] and parents[a] >= 0 and parents[b] >= 0 and parents[a] != parents[b]:
            a, b = parents[a], parents[b]
        found = {(first, second), (min(a, b), max(a, b))}
        above = self.chain(first)
        own = set(above)
        x = second
        while parents[x] >= 0 and parents[x] not in own:
            x = parents[x]
        y = above[above.index(parents[x]) - 1] if parents[x] >= 0 else above[-1]
        if x != y:
            found.add((min(x, y), max(x, y)))
        return tuple(found)


def _inside(tree: _Tree, inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    a, b = inner
    x, y = outer
    return (tree.contains(x, a) and tree.contains(y, b)) or (tree.contains(x, b) and tree.contains(y, a))


def _choose(tree: _Tree, shared: dict[tuple[int, int], int]) -> list[tuple[int, int]]:
    ranked = sorted(shared, key=lambda pair: (-shared[pair], pair))[: 40 * OVERLAPS]
    chosen: list[tuple[int, int]] = []
    for pair in ranked:
        if len(chosen) == OVERLAPS or shared[pair] < WORTH:
            break
        if any(_inside(tree, pair, taken) or _inside(tree, taken, pair) for taken in chosen):
            continue
        deepest = pair
        for other in ranked:
            if (
                other != deepest
                and shared[other] >= DEEPER_KEEPS * shared[pair]
                and _inside(tree, other, deepest)
            ):
                deepest = other
        chosen.append(deepest)
    return sorted(chosen, key=lambda pair: (-shared[pair], pair))


def _unique_bytes(tree: _Tree, places: Places, references: References, wanted: set[int]) -> dict[int, int]:
    """Bytes of the unique chunks in each of these directories and below."""
    totals = dict.fromkeys(wanted, 0)
    if not wanted:
        return totals
    holders = [
        [above for above in tree.chain(directory) if above in wanted]
        for directory in range(len(places.directories))
    ]
    seen: dict[int, set[int]] = {number: set() for number in wanted}
    for key, size, place in zip(references.keys, references.sizes, references.places, strict=True):
        for number in holders[places.directory_of[place]]:
            if key not in seen[number]:
                seen[number].add(key)
                totals[number] += size
    return totals
