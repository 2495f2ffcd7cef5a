"""Attributes duplicate bytes to directories and to types of files."""

from __future__ import annotations

from rdc.limits.searches import SCAN_DIRECTORIES
from rdc.model.scan import DirectorySummary, TypeSummary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.count.chunk_references import ChunkReferences

__all__ = ["directories", "duplicate_shares", "types"]


FRACTION_BITS = 32
"""Binary places of a share. Whole numbers add up to the same sum in every order, as floats do not."""


def duplicate_shares(locations: ChunkLocations, references: ChunkReferences) -> list[int]:
    """The duplicate bytes attributed to each location, in units of 2^-FRACTION_BITS bytes.

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
    """The directories with the most duplicate bytes, largest first, and all directories above them."""
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
    for number in order[:SCAN_DIRECTORIES]:
        above = number
        while above >= 0 and above not in chosen:
            chosen.add(above)
            above = locations.parents[above]
    return tuple(
        DirectorySummary(
            path=locations.directories[number],
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
    """The types with the most duplicate bytes, largest first."""
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
