"""Counts what a scan should count, with plain sets and dictionaries and nothing of the survey's own."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from blake3 import blake3

from rdc.chunking import ChunkParams, chunks
from tests.reference.siphash import siphash

FINE = ChunkParams.for_mean(4096)


@dataclass
class Level:
    """Contents by how often they are there. A chunk is its whole digest (or its members'), not 64 bits."""

    seen: Counter[object] = field(default_factory=Counter)
    sizes: dict[object, int] = field(default_factory=dict)

    def add(self, name: object, size: int) -> None:
        self.seen[name] += 1
        self.sizes[name] = size

    @property
    def figures(self) -> tuple[int, int, int, int]:
        """Chunks, bytes, unique chunks, unique bytes."""
        total = sum(self.sizes[name] * count for name, count in self.seen.items())
        return sum(self.seen.values()), total, len(self.seen), sum(self.sizes.values())


@dataclass
class PlainCensus:
    files: int = 0
    bytes: int = 0
    holes_bytes: int = 0
    allocated_bytes: int = 0
    hardlinks: int = 0
    levels: dict[str, Level] = field(default_factory=dict)

    def level(self, name: str) -> Level:
        return self.levels.setdefault(name, Level())


def holes_of(path: Path) -> list[tuple[int, int]]:
    """(start, end) of each hole, by asking for every byte range that lseek calls data."""
    size = path.stat().st_size
    data: list[tuple[int, int]] = []
    with path.open("rb") as file:
        at = 0
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:
                break
            end = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            data.append((start, min(end, size)))
            at = end
    edges = [0, *(edge for part in data for edge in part), size]
    return [(a, b) for a, b in zip(edges[::2], edges[1::2], strict=True) if a < b]


def fold(items: Sequence[tuple[object, int, int]]) -> list[tuple[object, int, int]]:
    """(name, rank, size) of the groups of 2 to 6 that FORMAT.md's rule makes of items."""
    groups, c = [], 0
    while len(items) - c > 6:
        end = min(range(c + 2, c + 7), key=lambda i: (items[i - 1][1], -i))
        groups.append(items[c:end])
        c = end
    if c < len(items):
        groups.append(items[c:])
    return [
        (
            tuple(name for name, _, _ in group),
            siphash(b"rdc survey group", b"".join(rank.to_bytes(8, "little") for _, rank, _ in group)),
            sum(size for _, _, size in group),
        )
        for group in groups
    ]


def count(tops: Iterable[Path], *, fixed: Sequence[int] = ()) -> PlainCensus:
    """Count everything below `tops`, which do not overlap, in os.walk's order."""
    census = PlainCensus()
    inodes = set()
    for top in tops:
        for folder, _, names in os.walk(top):
            for name in names:
                path = Path(folder) / name
                found = path.lstat()
                if path.is_symlink() or not path.is_file():
                    continue
                if (found.st_dev, found.st_ino) in inodes:
                    census.hardlinks += 1
                    continue
                inodes.add((found.st_dev, found.st_ino))
                _count_file(census, path, fixed)
    return census


def _count_file(census: PlainCensus, path: Path, fixed: Sequence[int]) -> None:
    content, holes = path.read_bytes(), holes_of(path)
    hollow = sum(b - a for a, b in holes)
    census.files += 1
    census.bytes += len(content) - hollow
    census.holes_bytes += hollow
    census.allocated_bytes += path.stat().st_blocks * 512
    census.level("file").add(content, len(content) - hollow)
    items: list[tuple[object, int, int]] = [
        (one.digest, int.from_bytes(one.digest[:8], "big"), one.length) for one in chunks(content, FINE)
    ]
    for name in ("cdc-4096", "cdc-16384", "cdc-65536"):
        if name != "cdc-4096":
            items = fold(items)
        at = 0
        for one, _, size in items:
            if not _inside(at, at + size, holes):
                census.level(name).add(one, size)
            at += size
    for size in fixed:
        for at in range(0, len(content), size):
            block = content[at : at + size]
            if not _inside(at, at + len(block), holes):
                census.level(f"fixed-{size}").add(blake3(block).digest(), len(block))


def _inside(start: int, end: int, holes: list[tuple[int, int]]) -> bool:
    return any(a <= start and end <= b for a, b in holes)
