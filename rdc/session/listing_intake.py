"""The source's listing as it comes, in parts: each directory is compared as soon as it is complete."""

from __future__ import annotations

from rdc.errors import ProtocolError, printable
from rdc.model.entries import EMPTY_LISTING
from rdc.protocol.listings import join_listing
from rdc.session.announcement import check_announced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.entries import Listing
    from rdc.protocol.messages import ListingPart
    from rdc.session.directories import Directories
    from rdc.session.own_tree import OwnTree
    from rdc.session.wanted_attributes import WantedAttributes
    from rdc.tree.manifest import Manifest

__all__ = ["ListingIntake"]


class ListingIntake:
    """Parents come before what is in them, which announces it; each directory comes once."""

    def __init__(
        self,
        wanted: Manifest,
        directories: Directories,
        own: OwnTree,
        *,
        only: bytes,
        name: bytes | None,
        attributes: WantedAttributes | None = None,
    ) -> None:
        """`wanted`: takes the entries. `only`: the one entry announced, b"" for a whole directory; `name`:
        what that is to be called here, if not the same. `attributes`: has those of what comes."""
        self._attributes = attributes
        self._wanted = wanted
        self._directories = directories
        self._own = own
        self._only = only
        self._name = name
        self._parts: list[Listing] = []
        self._listed = 0
        """Directories that are complete."""

    def take(self, part: ListingPart) -> None:
        """ProtocolError for a directory that was not announced, or out of turn."""
        if part.directory != self._listed or part.path not in self._directories.expected:
            raise ProtocolError(f"a listing of {printable(part.path)!r}, which was not announced")
        self._parts.append(part.listing)
        if not part.last:
            return
        try:
            listing = join_listing(self._parts)
        except ValueError as error:
            raise ProtocolError(str(error)) from error
        self._parts = []
        self._listed += 1
        path, first = part.path, len(self._wanted)
        listing = self._renamed(path, listing)
        made = listing if self._attributes is None else self._attributes.guarded(first, listing)
        self._wanted.add(path, made.packed())
        self._directories.compare(path, first, listing, self._held(path))

    def _held(self, path: bytes) -> Listing | None:
        announced = self._directories.expected[path]
        if announced.new:
            return EMPTY_LISTING
        return None if announced.lost else self._own.listing(path, self._directories.lent)

    def end(self) -> None:
        """ProtocolError in the middle of a directory."""
        if self._parts:
            raise ProtocolError("the listing ended inside a directory")

    def _renamed(self, path: bytes, listing: Listing) -> Listing:
        if path or not self._only:
            return listing
        check_announced(listing.names, self._only)
        if self._name is None or not listing:
            return listing
        return listing.named((self._name,))
