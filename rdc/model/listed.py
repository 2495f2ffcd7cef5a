"""Listed: one directory as its reading found it, and the entries that could not be looked at."""

from __future__ import annotations

from enum import IntEnum

from rdc.lean.records import dataclass, replace
from rdc.model.entries import Identities

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.entries import Listing, PackedInodes, PackedListing

__all__ = ["BadCall", "BadEntry", "Listed"]


class BadCall(IntEnum):
    """The step at which looking at an entry failed."""

    NAME = 0
    """Its name is longer than NAME_BYTES (ENAMETOOLONG)."""
    STAT = 1
    READ_LINK = 2
    """It is a symlink, and its target cannot be read or holds a NUL."""
    KIND = 3
    """It has a kind that no system knows (EUCLEAN)."""


@dataclass(frozen=True, slots=True)
class BadEntry:
    """An entry that is there, but could not be looked at, so that nothing else is known of it."""

    name: bytes
    errno: int
    call: BadCall
    is_directory: bool
    """Whether its directory says, without a look at it, that it is one. Filter rules ask."""


@dataclass(frozen=True, slots=True)
class Listed:
    """One directory: its entries, and what else was read there."""

    listing: PackedListing
    inodes: PackedInodes
    """The inode of each row of `listing` on this machine. A view may show an entry as something else; these
    stay those of the entry itself, or of what a followed link leads to."""
    reserved: tuple[bytes, ...] = ()
    """Reserved names (rdc.files.base.temporary_names), which are not in the listing."""
    bad: tuple[BadEntry, ...] = ()
    """By name; not in the listing."""

    def rows(self, rows: Sequence[int]) -> Listed:
        """Return these rows only; `rows` increases."""
        if len(rows) == self.listing.count:
            return self
        return replace(self, listing=self.listing.rows(rows), inodes=self.inodes.rows(rows))

    def unpacked(self) -> Listing:
        """Return the listing, unpacked, with the identity of each row."""
        listing = self.listing
        identities = Identities(listing.kinds, listing.sizes, listing.mtimes, self.inodes)
        return replace(listing.unpacked(), identities=identities)

    @property
    def is_empty(self) -> bool:
        """Whether the directory has no entry besides those with reserved names."""
        return not (self.listing.count or self.bad)
