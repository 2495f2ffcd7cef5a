"""Compares one directory as both sides list it: what to create, change, look into, and what is extra."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import TYPE_CHECKING

from rdc.model.entries import Kind

if TYPE_CHECKING:
    from rdc.model.entries import Listing, Metadata

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
    """In name order; entries that need nothing are not in it."""
    extra: tuple[int, ...]
    """Rows of the held listing that the wanted one does not have."""


def compare(wanted: Listing, held: Listing | None, *, owner: bool, checksum: bool) -> Comparison:
    """What turns directory `held` into `wanted`. Special files of the source are passed over and never extra.

    `owner`: uid and gid count. `checksum`: equal size and mtime do not settle a file's content.
    """
    if held is None:
        rows = (i for i, kind in enumerate(wanted.kinds) if kind != Kind.SPECIAL)
        return Comparison(tuple(Decision(Change.CREATE, i, -1, Difference.NONE) for i in rows), ())
    if not checksum and _equal(wanted, held, owner=owner):
        # Column comparison settles an unchanged directory without a step per entry.
        return Comparison((), ())
    links, held_links = wanted.links(), held.links()
    decisions = []
    places = {name: row for row, name in enumerate(held.names)}
    for row, name in enumerate(wanted.names):
        held_row = places.pop(name, -1)
        kind = wanted.kinds[row]
        if kind == Kind.SPECIAL:
            continue
        if held_row < 0:
            decisions.append(Decision(Change.CREATE, row, -1, Difference.NONE))
            continue
        if held.kinds[held_row] != kind:
            decisions.append(Decision(Change.REPLACE, row, held_row, Difference.NONE))
            continue
        differing = difference(kind, wanted.metadata(row), held.metadata(held_row), owner=owner)
        if wanted.sizes[row] != held.sizes[held_row]:
            differing |= Difference.SIZE
        if kind == Kind.SYMLINK:
            same = links[row] == held_links[held_row]
            change = Change.METADATA if same else Change.CONTENT
        elif kind == Kind.FILE:
            if differing & (Difference.SIZE | (Difference.NONE if checksum else Difference.TIME)):
                change = Change.CONTENT
                differing |= Difference.CHECKSUM if checksum else Difference.NONE
            else:
                change = Change.CHECK if checksum else Change.METADATA
        else:
            change = Change.METADATA
        if differing or change is not Change.METADATA:
            decisions.append(Decision(change, row, held_row, differing))
    return Comparison(tuple(decisions), tuple(sorted(places.values())))


def _equal(a: Listing, b: Listing, *, owner: bool) -> bool:
    return (
        a.names == b.names
        and a.kinds == b.kinds
        and a.sizes == b.sizes
        and a.mtimes == b.mtimes
        and a.modes == b.modes
        and a.targets == b.targets
        and (not owner or (a.uids == b.uids and a.gids == b.gids))
    )


def difference(kind: int, wanted: Metadata, held: Metadata, *, owner: bool) -> Difference:
    """Which metadata differ between two entries of one kind."""
    found = Difference.NONE
    if wanted.mtime_ns != held.mtime_ns:
        found |= Difference.TIME
    if wanted.mode != held.mode and kind != Kind.SYMLINK:  # Linux keeps no mode of a symlink
        found |= Difference.PERMISSIONS
    if owner and wanted.uid != held.uid:
        found |= Difference.OWNER
    if owner and wanted.gid != held.gid:
        found |= Difference.GROUP
    return found
