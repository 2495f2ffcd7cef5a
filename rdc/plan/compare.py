"""Compares one directory as both sides list it: what to create, change, look into, and what is extra."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag
from typing import TYPE_CHECKING

from rdc.model.entries import Kind

if TYPE_CHECKING:
    from rdc.model.entries import Listing

__all__ = ["Change", "Comparison", "Decision", "Difference", "compare"]


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
        difference = _difference(wanted, row, held, held_row, owner=owner)
        if kind == Kind.SYMLINK:
            same = wanted.target(row) == held.target(held_row)
            change = Change.METADATA if same else Change.CONTENT
        elif kind == Kind.FILE:
            if difference & (Difference.SIZE | (Difference.NONE if checksum else Difference.TIME)):
                change = Change.CONTENT
            else:
                change = Change.CHECK if checksum else Change.METADATA
        else:
            change = Change.METADATA
        if difference or change is not Change.METADATA:
            decisions.append(Decision(change, row, held_row, difference))
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


def _difference(a: Listing, i: int, b: Listing, j: int, *, owner: bool) -> Difference:
    difference = Difference.NONE
    if a.sizes[i] != b.sizes[j]:
        difference |= Difference.SIZE
    if a.mtimes[i] != b.mtimes[j]:
        difference |= Difference.TIME
    if a.modes[i] != b.modes[j] and a.kinds[i] != Kind.SYMLINK:  # Linux keeps no mode of a symlink
        difference |= Difference.PERMISSIONS
    if owner and a.uids[i] != b.uids[j]:
        difference |= Difference.OWNER
    if owner and a.gids[i] != b.gids[j]:
        difference |= Difference.GROUP
    return difference
