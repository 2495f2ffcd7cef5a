"""Finds what alternate directories have of an entry of the source, by the rules of rsync(1), --link-dest.

An entry of the same kind is a base. One that also has the same content, as far as size and mtime tell, need
not be fetched. One with the same metadata, too, can stand for the new entry.
"""

from __future__ import annotations

from bisect import bisect_left
from enum import IntEnum

from rdc.lean.records import dataclass
from rdc.model.entries import DEVICES, Kind
from rdc.plan.compare import Difference, row_difference

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.model.entries import Listing
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions

__all__ = ["AlternateMatch", "Likeness", "best_match"]


class Likeness(IntEnum):
    """How much an entry of an alternate directory has in common with the source's."""

    KIND = 1
    CONTENT = 2
    """Equal size and mtime, an equal link target, or an equal device number. Any two directories, fifos or
    sockets."""
    ALL = 3
    """The metadata are equal as well."""


@dataclass(frozen=True, slots=True)
class AlternateMatch:
    """The entry that has most in common with the source's; among equals the first."""

    likeness: Likeness
    number: int
    """The number of its alternate directory."""
    row: int
    """Its row in the listing there."""
    difference: Difference

    @property
    def stands_for_all(self) -> bool:
        return self.likeness is Likeness.ALL


def best_match(
    wanted: Listing,
    row: int,
    listings: Sequence[Listing],
    *,
    preserved: Preserved,
    options: SyncOptions,
    same_attributes: Callable[[int], bool] | None = None,
) -> AlternateMatch | None:
    """Returns the best match of the source's entry in `row` among the listings of the alternate directories.

    `same_attributes`: whether the entry in the directory of this number has the extended attributes that
    count; None if none count. None is returned if no directory has an entry of that name and kind.
    """
    name, kind = wanted.names[row], wanted.kinds[row]
    best: AlternateMatch | None = None
    for number, listing in enumerate(listings):
        at = bisect_left(listing.names, name)
        if at == len(listing) or listing.names[at] != name or listing.kinds[at] != kind:
            continue
        found = row_difference(wanted, row, listing, at, preserved)
        likeness = Likeness.KIND
        if _same_content(wanted, row, listing, at, found, options):
            likeness = Likeness.CONTENT
            if not found and (same_attributes is None or same_attributes(number)):
                likeness = Likeness.ALL
        if best is None or likeness > best.likeness:
            best = AlternateMatch(likeness, number, at, found)
        if likeness is Likeness.ALL:
            break
    return best


def _same_content(
    wanted: Listing, row: int, listing: Listing, at: int, found: Difference, options: SyncOptions
) -> bool:
    kind = wanted.kinds[row]
    if kind == Kind.SYMLINK:
        return wanted.target(row) == listing.target(at)
    if kind in DEVICES:
        return wanted.sizes[row] == listing.sizes[at]
    if kind != Kind.FILE:
        return True
    if found & Difference.SIZE:
        return False
    if options.rewrites:
        return False
    if options.checksum:
        return not wanted.sizes[row]
    return options.size_only or not found & Difference.TIME
