"""Compares one directory as both sides list it: what to create, change, look into, and what is extra."""

from __future__ import annotations

from enum import Enum, IntFlag
from itertools import compress
from operator import ne

from rdc.model.entries import Kind
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rdc.model.entries import Listing, Metadata
    from rdc.model.kept import Kept

__all__ = ["Change", "Comparison", "Decision", "Difference", "compare", "difference"]


class Change(Enum):
    CREATE = "create"
    """The destination has nothing of that name."""
    CONTENT = "content"
    """Same kind; the content differs or may differ (for a symlink: another target)."""
    METADATA = "metadata"
    """Same kind and content by the quick check; only metadata differs."""
    REPLACE = "replace"
    """The destination has another kind of entry in that place."""
    CHECK = "check"
    """Same by the quick check; asked to compare content."""


class Difference(IntFlag):
    """Which columns differ; the letters of rsync's itemized output."""

    NONE = 0
    CHECKSUM = 1
    SIZE = 2
    TIME = 4
    PERMISSIONS = 8
    OWNER = 16
    GROUP = 32


@dataclass(frozen=True, slots=True)
class Decision:
    """One entry that is not settled: its row in each listing (-1: none there)."""

    change: Change
    row: int
    held_row: int
    difference: Difference


@dataclass(frozen=True, slots=True)
class Comparison:
    decisions: tuple[Decision, ...]
    """In name order; entries that need nothing are not in it, nor are those of the columns below."""
    extra: tuple[int, ...]
    """Rows of the held listing that the wanted one does not have."""
    touched: tuple[int, ...] = ()
    """Files that differ in nothing but their mtime: Change.CONTENT each (with `checksum` Change.CHECK) and
    Difference.TIME. In a tree that was touched they are most, and an object for each would be most of the
    work."""
    checked: tuple[int, ...] = ()
    """Files that do not differ and whose content is compared: Change.CHECK each."""

    def __bool__(self) -> bool:
        """Something is to be done, what is extra aside."""
        return bool(self.decisions or self.touched or self.checked)


def compare(
    wanted: Listing,
    held: Listing | None,
    *,
    kept: Kept,
    checksum: bool,
    doubtful: Collection[int] = frozenset(),
) -> Comparison:
    """What turns directory `held` into `wanted`. Special files of the source are passed over and never extra.

    `kept`: what counts. `checksum`: equal size and mtime do not settle a file's content; nor do they
    that of the rows in `doubtful`.
    Whole columns are compared first: entries that are the same take no step of their own.
    """
    if held is None:
        rows = (i for i, kind in enumerate(wanted.kinds) if kind != Kind.SPECIAL)
        return Comparison(tuple(Decision(Change.CREATE, i, -1, Difference.NONE) for i in rows), ())
    pairs: Sequence[tuple[int, int]]
    extra: list[int] = []
    times: list[int] = []
    if wanted.names != held.names:
        places = {name: row for row, name in enumerate(held.names)}
        pairs = [(row, places.pop(name, -1)) for row, name in enumerate(wanted.names)]
        extra = sorted(places.values())
    elif checksum:
        pairs = [(row, row) for row in range(len(wanted))]
    else:
        differing, times = _differing_rows(wanted, held, kept), _differing(wanted.mtimes, held.mtimes)
        if differing or doubtful or kept.granularity > 1:
            differing, times = sorted({*differing, *times, *doubtful}), []
        pairs = [(row, row) for row in differing]
    pairs, alike, touched = _files_apart(wanted, held, pairs, kept)
    if times:
        # All that differs: of a tree that was touched most files.
        touched = [row for row in times if wanted.kinds[row] == Kind.FILE]
        pairs = [(row, row) for row in times if wanted.kinds[row] != Kind.FILE]
    checked = alike if checksum else [row for row in alike if row in doubtful] if doubtful else []
    links, held_links = wanted.links(), held.links()
    decisions = []
    for row, held_row in pairs:
        kind = wanted.kinds[row]
        if kind == Kind.SPECIAL:
            continue
        if held_row < 0:
            decisions.append(Decision(Change.CREATE, row, -1, Difference.NONE))
            continue
        if held.kinds[held_row] != kind:
            decisions.append(Decision(Change.REPLACE, row, held_row, Difference.NONE))
            continue
        bits = _difference_of_rows(wanted, row, held, held_row, kept)
        if kind == Kind.SYMLINK:
            same = links[row] == held_links[held_row]
            change = Change.METADATA if same else Change.CONTENT
        elif kind == Kind.FILE:
            if bits & (_SIZE if checksum else _SIZE | _TIME):
                change = Change.CONTENT
                bits |= _CHECKSUM if checksum else 0
            else:
                change = Change.CHECK if checksum or row in doubtful else Change.METADATA
        else:
            change = Change.METADATA
        if bits or change is not Change.METADATA:
            decisions.append(Decision(change, row, held_row, _DIFFERENCES[bits]))
    return Comparison(tuple(decisions), tuple(extra), tuple(touched), tuple(checked))


def _files_apart(
    a: Listing, b: Listing, pairs: Sequence[tuple[int, int]], kept: Kept
) -> tuple[list[tuple[int, int]], list[int], list[int]]:
    """Takes out of `pairs` the files that do not differ and those of which only the mtime does; their rows in
    `a`."""
    others: list[tuple[int, int]] = []
    alike: list[int] = []
    touched: list[int] = []
    file, exact = int(Kind.FILE), kept.granularity == 1
    kinds, sizes, mtimes, modes = a.kinds, a.sizes, a.mtimes, a.modes
    for pair in pairs:
        row, other = pair
        if (
            other < 0
            or not kinds[row] == b.kinds[other] == file
            or sizes[row] != b.sizes[other]
            or (kept.modes and modes[row] != b.modes[other])
            or (kept.owner and (a.uids[row] != b.uids[other] or a.gids[row] != b.gids[other]))
        ):
            others.append(pair)
        elif mtimes[row] == b.mtimes[other] or (
            not exact and kept.mtime(mtimes[row]) == kept.mtime(b.mtimes[other])
        ):
            alike.append(row)
        else:
            touched.append(row)
    return others, alike, touched


def _differing_rows(a: Listing, b: Listing, kept: Kept) -> list[int]:
    """The rows in which two listings of the same names differ, mtimes aside."""
    rows: set[int] = set()
    columns: list[tuple[Sequence[int], Sequence[int]]] = [
        (a.kinds, b.kinds),
        (a.sizes, b.sizes),
        *([(a.modes, b.modes)] if kept.modes else []),
        *([(a.uids, b.uids), (a.gids, b.gids)] if kept.owner else []),
    ]
    for ours, theirs in columns:
        rows.update(_differing(ours, theirs))
    if a.targets != b.targets:
        rows.update(a.rows_of(Kind.SYMLINK))
    return sorted(rows)


def _differing(ours: Sequence[int], theirs: Sequence[int]) -> list[int]:
    return [] if ours == theirs else list(compress(range(len(ours)), map(ne, ours, theirs)))


_CHECKSUM, _SIZE, _TIME = int(Difference.CHECKSUM), int(Difference.SIZE), int(Difference.TIME)
_PERMISSIONS, _OWNER, _GROUP = int(Difference.PERMISSIONS), int(Difference.OWNER), int(Difference.GROUP)

# Flags are put together as integers: IntFlag's own operators take a microsecond each.
_DIFFERENCES = tuple(map(Difference, range(1 << len(Difference))))


def _difference_of_rows(a: Listing, row: int, b: Listing, other: int, kept: Kept) -> int:
    bits = 0
    if a.mtimes[row] != b.mtimes[other] and kept.mtime(a.mtimes[row]) != kept.mtime(b.mtimes[other]):
        bits = _TIME
    if a.sizes[row] != b.sizes[other]:
        bits |= _SIZE
    # Linux keeps no mode of a symlink.
    if kept.modes and a.modes[row] != b.modes[other] and a.kinds[row] != Kind.SYMLINK:
        bits |= _PERMISSIONS
    if kept.owner:
        if a.uids[row] != b.uids[other]:
            bits |= _OWNER
        if a.gids[row] != b.gids[other]:
            bits |= _GROUP
    return bits


def difference(kind: int, wanted: Metadata, held: Metadata, *, kept: Kept) -> Difference:
    """Which metadata differ between two entries of one kind."""
    found = Difference.NONE
    if kept.mtime(wanted.mtime_ns) != kept.mtime(held.mtime_ns):
        found |= Difference.TIME
    if kept.modes and wanted.mode != held.mode and kind != Kind.SYMLINK:
        found |= Difference.PERMISSIONS
    if kept.owner and wanted.uid != held.uid:
        found |= Difference.OWNER
    if kept.owner and wanted.gid != held.gid:
        found |= Difference.GROUP
    return found
