"""The changes between two scans of the same paths, by directory and by type of file."""

from __future__ import annotations

from rdc.errors import UsageError, printable
from rdc.model.scan import DirectoryGrowth, Growth, TypeGrowth

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.survey.count.chunk_locations import ChunkLocations
    from rdc.survey.count.counters import Outcome

ROWS = 100
"""Most directories and types in a report."""

NEARLY_ALL = 0.95
"""If a directory below has at least this share of a directory's change, only the one below is listed."""


def check_same_paths(before: Sequence[bytes], now: Sequence[bytes], name: str) -> None:
    """Raise UsageError if two scans are of different paths, so that a difference would mean nothing.
    `name`: the earlier part in messages."""
    if sorted(before) != sorted(now):
        expected, found = (", ".join(map(printable, sorted(one))) for one in (now, before))
        raise UsageError(
            f"{name}: expected a scan of {expected}, found one of {found}; name a part of the same paths,"
            " typed the same way"
        )


def growth_of(before: Outcome, now: Outcome, name: str) -> Growth:
    """Return the growth from one scan to another. `name`: the earlier part in messages. Raises UsageError."""
    check_same_paths(before.paths, now.paths, name)
    return Growth(
        before_files=before.files,
        before_bytes=before.bytes,
        complete=not before.reason and not now.reason,
        directories=_directories(_bytes_below(before.locations), _bytes_below(now.locations)),
        types=_types(_bytes_by_type(before.locations), _bytes_by_type(now.locations)),
    )


def _bytes_below(locations: ChunkLocations) -> dict[bytes, int]:
    """Return the bytes of each directory with everything below it, parents first."""
    totals = [0] * len(locations.directories)
    for location, directory in enumerate(locations.directory_of):
        totals[directory] += locations.bytes[location]
    # A directory's number is higher than its parent's.
    for number in range(len(totals) - 1, -1, -1):
        if locations.parents[number] >= 0:
            totals[locations.parents[number]] += totals[number]
    return dict(zip(locations.directories, totals, strict=True))


def _bytes_by_type(locations: ChunkLocations) -> dict[bytes, int]:
    totals = dict.fromkeys(locations.suffixes, 0)
    for location, kind in enumerate(locations.suffix_of):
        totals[locations.suffixes[kind]] += locations.bytes[location]
    return totals


def _directories(before: dict[bytes, int], now: dict[bytes, int]) -> tuple[DirectoryGrowth, ...]:
    changes = {path: now.get(path, 0) - before.get(path, 0) for path in {**before, **now}}
    chosen: list[bytes] = []
    # The deeper directory comes first among equal changes, so that it keeps those above it out.
    for path in sorted(changes, key=lambda path: (-abs(changes[path]), -len(path), path)):
        if not changes[path] or len(chosen) == ROWS:
            break
        above = [one for one in chosen if path.startswith(one.rstrip(b"/") + b"/")]
        below = [one for one in chosen if one.startswith(path.rstrip(b"/") + b"/")]
        if any(_has_nearly_all(changes, one, path) for one in below):
            continue
        for one in above:
            if _has_nearly_all(changes, path, one):
                chosen.remove(one)
        chosen.append(path)
    ranked = sorted(chosen, key=lambda path: (-abs(changes[path]), path))
    return tuple(DirectoryGrowth(path, before.get(path, 0), now.get(path, 0)) for path in ranked)


def _has_nearly_all(changes: dict[bytes, int], inner: bytes, outer: bytes) -> bool:
    part, whole = changes[inner], changes[outer]
    return (part > 0) == (whole > 0) and abs(part) >= NEARLY_ALL * abs(whole)


def _types(before: dict[bytes, int], now: dict[bytes, int]) -> tuple[TypeGrowth, ...]:
    changes = {name: now.get(name, 0) - before.get(name, 0) for name in {**before, **now}}
    ranked = sorted((name for name in changes if changes[name]), key=lambda name: (-abs(changes[name]), name))
    return tuple(
        TypeGrowth(name.decode("utf-8", "replace"), before.get(name, 0), now.get(name, 0))
        for name in ranked[:ROWS]
    )
