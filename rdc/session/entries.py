"""What the source has listed, by ordinal: paths and metadata for answers that name only a number."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rdc.tree.walk import join

if TYPE_CHECKING:
    from rdc.model.entries import Listing, Metadata

__all__ = ["Entries", "Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One listed entry."""

    directory: bytes
    listing: Listing
    row: int

    @property
    def path(self) -> bytes:
        return join(self.directory, self.listing.names[self.row])

    @property
    def kind(self) -> int:
        return self.listing.kinds[self.row]

    @property
    def size(self) -> int:
        return self.listing.sizes[self.row]

    @property
    def metadata(self) -> Metadata:
        return self.listing.metadata(self.row)


class Entries:
    """Listings by their first ordinals; an entry is found by bisection, not kept as an object."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._directories: list[bytes] = []
        self._listings: list[Listing] = []
        self.count = 0

    def add(self, directory: bytes, listing: Listing) -> int:
        """Takes the next directory; returns the ordinal of its first entry."""
        first = self.count
        if listing:
            self._firsts.append(first)
            self._directories.append(directory)
            self._listings.append(listing)
            self.count += len(listing)
        return first

    def find(self, ordinal: int) -> Entry | None:
        """The entry of that number; None when it was never listed."""
        if not 0 <= ordinal < self.count:
            return None
        index = bisect_right(self._firsts, ordinal) - 1
        return Entry(self._directories[index], self._listings[index], ordinal - self._firsts[index])

    def __getitem__(self, ordinal: int) -> Entry:
        entry = self.find(ordinal)
        if entry is None:
            raise KeyError(ordinal)
        return entry
