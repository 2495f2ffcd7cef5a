"""Makes the report of a scan from its outcome: duplicate bytes by directory and by type of file, and
pairs of directories that hold the same chunks.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import combinations

from rdc.errors import ExitCode
from rdc.limits import SCAN_DIRECTORIES
from rdc.model.scan import (
    Attribution,
    Coverage,
    DirectorySummary,
    LevelSummary,
    Overlap,
    ScanReport,
    TypeSummary,
)
from rdc.survey.count.counters import FILE_LEVEL, FOLLOWED, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.survey.count.chunk_counter import CompressionSample, Figures
    from rdc.survey.count.chunk_locations import ChunkLocations, ChunkReferences


FRACTION_BITS = 32
"""Binary places of a share. Whole numbers add up to the same sum in every order, as floats do not."""


def duplicate_shares(locations: ChunkLocations, references: ChunkReferences) -> list[int]:
    """Return the duplicate bytes attributed to each location, in units of 2^-FRACTION_BITS bytes.

    A chunk of s bytes that occurs n times could save s (n-1) bytes. Each occurrence bears s (n-1)/n of them.
    So no order decides which one is the original, and all locations together bear exactly the savings. If one
    chunk in 2^shift is followed, it stands for 2^shift chunks.
    """
    shares = [0] * len(locations.directory_of)
    for size, where in references.repeated():
        share = (size * (len(where) - 1) << FRACTION_BITS + references.shift) // len(where)
        for location in where:
            shares[location] += share
    return shares


def _whole(share: int) -> int:
    return round(share / (1 << FRACTION_BITS))


def directories(locations: ChunkLocations, shares: list[int]) -> tuple[DirectorySummary, ...]:
    """Return the directories with the most duplicate bytes, largest first, those with the most bytes, and all
    directories above them."""
    count = len(locations.directories)
    files, own_bytes, own = [0] * count, [0] * count, [0] * count
    for location, directory in enumerate(locations.directory_of):
        files[directory] += locations.files[location]
        own_bytes[directory] += locations.bytes[location]
        # An estimated share can exceed the bytes that exist.
        own[directory] += min(shares[location], locations.bytes[location] << FRACTION_BITS)
    total_bytes, total = own_bytes[:], own[:]
    # A directory's number is higher than its parent's. Backwards, each sum is complete before it is used.
    for number in range(count - 1, -1, -1):
        parent = locations.parents[number]
        if parent >= 0:
            files[parent] += files[number]
            total_bytes[parent] += total_bytes[number]
            total[parent] += total[number]
    order = sorted(range(count), key=lambda number: (-total[number], locations.directories[number]))
    chosen = set()
    largest = sorted(range(count), key=lambda number: (-total_bytes[number], locations.directories[number]))
    for number in (*order[:SCAN_DIRECTORIES], *largest[:SCAN_DIRECTORIES]):
        above = number
        while above >= 0 and above not in chosen:
            chosen.add(above)
            above = locations.parents[above]
    return tuple(
        DirectorySummary(
            path_bytes=locations.directories[number],
            files=files[number],
            bytes=total_bytes[number],
            duplicate_bytes=_whole(total[number]),
            own_bytes=own_bytes[number],
            own_duplicate_bytes=_whole(own[number]),
        )
        for number in order
        if number in chosen
    )


def types(locations: ChunkLocations, shares: list[int]) -> tuple[TypeSummary, ...]:
    """Return the types with the most duplicate bytes, largest first."""
    count = len(locations.suffixes)
    files, total, duplicate = [0] * count, [0] * count, [0] * count
    for location, kind in enumerate(locations.suffix_of):
        files[kind] += locations.files[location]
        total[kind] += locations.bytes[location]
        duplicate[kind] += min(shares[location], locations.bytes[location] << FRACTION_BITS)
    order = sorted(range(count), key=lambda kind: (-duplicate[kind], -total[kind], locations.suffixes[kind]))
    return tuple(
        TypeSummary(
            name=locations.suffixes[kind].decode("utf-8", "replace"),
            files=files[kind],
            bytes=total[kind],
            duplicate_bytes=_whole(duplicate[kind]),
        )
        for kind in order[:SCAN_DIRECTORIES]
    )


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
    """Return the pairs that share the most bytes of unique chunks, most first.

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
    """Yield the bytes and directories of each chunk that lies in 2 to DIRECTORIES_PER_CHUNK directories."""
    for size, where in references.repeated():
        found = sorted({locations.directory_of[location] for location in where})
        if 2 <= len(found) <= DIRECTORIES_PER_CHUNK:
            yield size, found


def _bounded(locations: ChunkLocations, references: ChunkReferences) -> ChunkReferences:
    """Follow few enough chunks that about MEETINGS pairs of directories meet in them at most."""
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
        """Return the directory and all directories above it."""
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
    """Return the bytes of the unique chunks in and below each of these directories."""
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


def report_of(outcome: Outcome) -> ScanReport:
    """Return the report. The outcome is not changed and can grow further."""
    counters = outcome.counters
    figures = {name: counter.figures() for name, counter in counters.levels.items()}
    by_file = figures[FILE_LEVEL]
    shares = duplicate_shares(counters.locations, counters.references)
    samples = counters.compression_of(outcome.found_bytes)
    complete = not outcome.reason
    return ScanReport(
        paths_bytes=tuple(outcome.paths),
        files=outcome.files,
        bytes=outcome.bytes,
        allocated_bytes=outcome.allocated_bytes,
        hardlinks=outcome.hardlinks,
        holes_bytes=outcome.holes_bytes,
        already_shared_bytes=outcome.already_shared_bytes,
        duplicate_groups=by_file.groups,
        duplicate_bytes=by_file.bytes - by_file.unique_bytes,
        levels=tuple(_level(name, one, samples.get(name)) for name, one in figures.items()),
        directories=directories(counters.locations, shares),
        types=types(counters.locations, shares),
        overlaps=overlaps(counters.locations, counters.references),
        similar=counters.resembling.groups(),
        errors=tuple(outcome.problems),
        coverage=Coverage(
            complete=complete,
            reason=outcome.reason,
            found_files=outcome.found_files,
            found_bytes=outcome.found_bytes,
            known_bytes=outcome.known_bytes,
        ),
        attribution=Attribution(FOLLOWED, 1 / (1 << counters.references.shift)),
        more_errors=outcome.more_problems,
        exit=ExitCode.INTERRUPTED if outcome.interrupted else outcome.code,
        identical=counters.identical.groups(),
        ages=counters.ages.summaries(),
    )


def _level(name: str, figures: Figures, sample: CompressionSample | None) -> LevelSummary:
    compressed = None if sample is None else sample.figures(figures)
    return LevelSummary(
        name=name,
        mean_bytes=figures.bytes / figures.chunks if figures.chunks else 0.0,
        chunks=figures.chunks,
        bytes=figures.bytes,
        unique_chunks=figures.unique_chunks,
        unique_bytes=figures.unique_bytes,
        exact=figures.exact,
        low=figures.low,
        high=figures.high,
        compressed_bytes=None if compressed is None else compressed.bytes,
        compressed_low=None if compressed is None else compressed.low,
        compressed_high=None if compressed is None else compressed.high,
        sizes=figures.sizes,
        copies=figures.copies,
    )
