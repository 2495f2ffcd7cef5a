"""Finds pairs of directories that hold the same chunks, and reports the deepest pair that holds nearly
all."""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from rdc.model.scan import Overlap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.count.chunk_references import ChunkReferences

__all__ = ["overlaps"]

OVERLAPS = 50
"""Most pairs in a report."""

DIRECTORIES_PER_CHUNK = 12
"""A chunk in more directories says nothing about any two of them (a licence, an empty database page). Its
pairs would grow with the square of their number."""

MEETINGS = 1 << 20
"""Most pairs of directories that meet in chunks, counted per chunk: some seconds of work. If there are more,
one chunk in 2, 4, ... is followed."""

CANDIDATES = 1 << 18
"""Most candidate pairs kept at a time. Beyond, the weaker half is dropped."""

DEEPER_KEEPS = 0.9
"""A pair is replaced by a pair inside it that keeps this share of its bytes."""

WORTH = 4096
"""Pairs that share fewer bytes are not reported."""


def overlaps(locations: ChunkLocations, references: ChunkReferences) -> tuple[Overlap, ...]:
    """The pairs that share the most bytes of unique chunks, most first.

    The directories of two files give three candidates: these two; the two without the last names that both
    paths share (`a/x/src` and `b/x/src` give `a` and `b`); and the two directories in which the paths part.
    Among nested pairs, the deepest that keeps nearly all bytes is reported, and the pairs inside or around it
    are left out.
    """
    tree = _Tree(locations)
    references = _bounded(locations, references)
    shared: defaultdict[tuple[int, int], int] = defaultdict(int)
    for size, found in _meetings(locations, references):
        pairs: set[tuple[int, int]] = set()
        for first, second in combinations(found, 2):
            pairs.update(tree.candidates(first, second))
        for pair in pairs:
            shared[pair] += size
        if len(shared) > CANDIDATES:
            floor = sorted(shared.values())[len(shared) // 2]
            shared = defaultdict(int, {pair: size for pair, size in shared.items() if size > floor})
    chosen = _choose(tree, shared)
    unique = _unique_bytes(tree, locations, references, {number for pair in chosen for number in pair})
    scale = 1 << references.shift
    return tuple(
        Overlap(
            first=locations.directories[first],
            second=locations.directories[second],
            shared_bytes=shared[first, second] * scale,
            first_bytes=unique[first] * scale,
            second_bytes=unique[second] * scale,
        )
        for first, second in chosen
    )


def _meetings(locations: ChunkLocations, references: ChunkReferences) -> Iterator[tuple[int, list[int]]]:
    """The bytes and directories of each chunk that lies in 2 to DIRECTORIES_PER_CHUNK directories."""
    for size, where in references.repeated():
        found = sorted({locations.directory_of[location] for location in where})
        if 2 <= len(found) <= DIRECTORIES_PER_CHUNK:
            yield size, found


def _bounded(locations: ChunkLocations, references: ChunkReferences) -> ChunkReferences:
    """Follows few enough chunks that about MEETINGS pairs of directories meet in them at most."""
    meetings = sum([len(found) * (len(found) - 1) // 2 for _, found in _meetings(locations, references)])
    shift = max(0, (meetings - 1) // MEETINGS).bit_length()
    return references.thinned(references.shift + shift) if shift else references


class _Tree:
    """Directories by number, and which of them contain which."""

    def __init__(self, locations: ChunkLocations) -> None:
        self._parents = locations.parents
        self._names = [path.rpartition(b"/")[2] for path in locations.directories]
        self._depths: list[int] = []
        for parent in locations.parents:
            self._depths.append(0 if parent < 0 else self._depths[parent] + 1)
        self._known: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}

    def chain(self, number: int) -> list[int]:
        """The directory and all directories above it."""
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


def _unique_bytes(
    tree: _Tree, locations: ChunkLocations, references: ChunkReferences, wanted: set[int]
) -> dict[int, int]:
    """Bytes of the unique chunks in and below each of these directories."""
    totals = dict.fromkeys(wanted, 0)
    if not wanted:
        return totals
    holders = [
        [above for above in tree.chain(directory) if above in wanted]
        for directory in range(len(locations.directories))
    ]
    seen: dict[int, set[int]] = {number: set() for number in wanted}
    for key, size, location in zip(references.keys, references.sizes, references.locations, strict=True):
        for number in holders[locations.directory_of[location]]:
            if key not in seen[number]:
                seen[number].add(key)
                totals[number] += size
    return totals
