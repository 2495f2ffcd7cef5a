"""Shares duplicate bytes out to directories and to types of files."""

from __future__ import annotations

from rdc.limits import SCAN_DIRECTORIES
from rdc.model.scan import DirectorySummary, TypeSummary

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.survey.places import Places
    from rdc.survey.references import References

__all__ = ["directories", "duplicate_shares", "types"]


def duplicate_shares(places: Places, references: References) -> list[float]:
    """Of each place, the duplicate bytes that its chunks bear.

    Of a chunk of s bytes that is there n times, s (n-1) can be saved; each of the n bears s (n-1)/n. So no
    order decides who is the original, and all places together bear exactly what is saved. Where only one
    chunk in 2^shift is followed, each stands for 2^shift of them.
    """
    shares = [0.0] * len(places.directory_of)
    for size, where in references.repeated():
        share = size * (len(where) - 1) / len(where) * (1 << references.shift)
        for place in where:
            shares[place] += share
    return shares


def directories(places: Places, shares: list[float]) -> tuple[DirectorySummary, ...]:
    """Those that bear most, largest first, and all above them."""
    count = len(places.directories)
    files, own_bytes, own = [0] * count, [0] * count, [0.0] * count
    for place, directory in enumerate(places.directory_of):
        files[directory] += places.files[place]
        own_bytes[directory] += places.bytes[place]
        # An estimated share can exceed what is there.
        own[directory] += min(shares[place], places.bytes[place])
    total_bytes, total = own_bytes[:], own[:]
    # A directory is numbered after the one above it, so that backwards every sum is complete when it is used.
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


def types(places: Places, shares: list[float]) -> tuple[TypeSummary, ...]:
    """By suffix, those that bear most first."""
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
