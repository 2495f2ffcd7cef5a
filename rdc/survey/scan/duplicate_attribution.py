"""Attributes duplicate bytes to directories and to types of files."""

from __future__ import annotations

from rdc.limits.survey import SCAN_DIRECTORIES
from rdc.model.scan import DirectorySummary, TypeSummary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.survey.count.chunk_references import ChunkReferences
    from rdc.survey.count.places_of_chunks import ChunkLocations

__all__ = ["directories", "duplicate_shares", "types"]


def duplicate_shares(places: ChunkLocations, references: ChunkReferences) -> list[float]:
    """The duplicate bytes attributed to each place.

    A chunk of s bytes that occurs n times could save s (n-1) bytes. Each occurrence bears s (n-1)/n of them.
    So no order decides which one is the original, and all places together bear exactly the savings. If one
    chunk in 2^shift is followed, it stands for 2^shift chunks.
    """
    shares = [0.0] * len(places.directory_of)
    for size, where in references.repeated():
        share = size * (len(where) - 1) / len(where) * (1 << references.shift)
        for place in where:
            shares[place] += share
    return shares


def directories(places: ChunkLocations, shares: list[float]) -> tuple[DirectorySummary, ...]:
    """The directories with the most duplicate bytes, largest first, and all directories above them."""
    count = len(places.directories)
    files, own_bytes, own = [0] * count, [0] * count, [0.0] * count
    for place, directory in enumerate(places.directory_of):
        files[directory] += places.files[place]
        own_bytes[directory] += places.bytes[place]
        # An estimated share can exceed the bytes that exist.
        own[directory] += min(shares[place], places.bytes[place])
    total_bytes, total = own_bytes[:], own[:]
    # A directory's number is higher than its parent's. Backwards, each sum is complete before it is used.
    for number in range(count - 1, -1, -1):
        parent = places.parents[number]
        if parent >= 0:
            files[parent] += files[number]
            total_bytes[parent] += total_bytes[number]
            total[parent] += total[number]
    order = sorted(range(count), key=lambda number: (-total[number], places.directories[number]))
    chosen = set()
    for number in order[:SCAN_DIRECTORIES]:
        above = number
        while above >= 0 and above not in chosen:
            chosen.add(above)
            above = places.parents[above]
    return tuple(
        DirectorySummary(
            path=places.directories[number],
            files=files[number],
            bytes=total_bytes[number],
            duplicate_bytes=round(total[number]),
            own_bytes=own_bytes[number],
            own_duplicate_bytes=round(own[number]),
        )
        for number in order
        if number in chosen
    )


def types(places: ChunkLocations, shares: list[float]) -> tuple[TypeSummary, ...]:
    """The types with the most duplicate bytes, largest first."""
    count = len(places.suffixes)
    files, total, duplicate = [0] * count, [0] * count, [0.0] * count
    for place, kind in enumerate(places.suffix_of):
        files[kind] += places.files[place]
        total[kind] += places.bytes[place]
        duplicate[kind] += min(shares[place], places.bytes[place])
    order = sorted(range(count), key=lambda kind: (-duplicate[kind], -total[kind], places.suffixes[kind]))
    return tuple(
        TypeSummary(
            name=places.suffixes[kind].decode("utf-8", "replace"),
            files=files[kind],
            bytes=total[kind],
            duplicate_bytes=round(duplicate[kind]),
        )
        for kind in order[:SCAN_DIRECTORIES]
    )
