"""What has been listed so far: listings must follow one another without gaps, and their totals must agree."""

from __future__ import annotations

from rdc.model.entries import Kind
from rdc.protocol.messages import ListingEnd, ListingPart, Manifest
from rdc.protocol.states import Illegal

__all__ = ["Census"]


class Census:
    def __init__(self) -> None:
        self.directories = 0
        """Directories whose listing has begun."""
        self.entries = 0
        self.files = 0
        self.bytes = 0
        self._topped = False
        self._offered = 0
        self._unfinished: ListingPart | None = None
        """The last part, when its directory goes on."""

    def offer(self, manifest: Manifest) -> None:
        """A manifest stands for a listing: its entries may be asked for."""
        self._offered = manifest.entries

    @property
    def known(self) -> int:
        """Entries that may be asked for."""
        return max(self.entries, self._offered)

    def top(self) -> None:
        """The root itself: Illegal a second time or after a listing."""
        if self._topped or self.directories:
            raise Illegal("the root was described already, or a listing came before")
        self._topped = True

    def add(self, part: ListingPart) -> None:
        """Raises Illegal unless `part` goes on where the listing stands."""
        if part.first != self.entries:
            raise Illegal(f"a listing's first entry is {part.first}, expected {self.entries}")
        before = self._unfinished
        if before is None:
            if part.directory != self.directories:
                raise Illegal(f"a listing of directory {part.directory}, expected {self.directories}")
            self.directories += 1
        elif (part.directory, part.path) != (before.directory, before.path):
            raise Illegal(f"the listing of directory {before.directory} is not complete")
        elif part.listing and part.listing.names[0] <= before.listing.names[-1]:
            raise Illegal(f"names of directory {part.directory} do not increase from part to part")
        self.entries += len(part.listing)
        self.files += part.listing.kinds.count(Kind.FILE)
        self.bytes += sum(part.listing.sizes)
        self._unfinished = None if part.last else part

    def end(self, totals: ListingEnd) -> None:
        if self._unfinished is not None:
            raise Illegal(f"the listing of directory {self._unfinished.directory} is not complete")
        stated = (totals.directories, totals.entries, totals.files, totals.bytes)
        counted = (self.directories, self.entries, self.files, self.bytes)
        if stated != counted:
            raise Illegal(f"(directories, entries, files, bytes) stated {stated}, listed {counted}")
