"""Receives the source's listing in parts and compares each directory as soon as it is complete."""

from __future__ import annotations

from rdc.errors import ProtocolError, printable
from rdc.model.entries import EMPTY_LISTING, Listing
from rdc.protocol.messages.field_types import join_listing
from rdc.session.trees.announced_entries import check_announced
from rdc.session.trees.made_modes import with_made_modes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.preserved import Preserved
    from rdc.protocol.messages import ListingPart
    from rdc.session.destination.compared_directories import ComparedDirectories, ListedTree
    from rdc.session.trees.directory_links import DirectoryLinks
    from rdc.session.trees.owner_mapping import OwnerMapping
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.manifest import Manifest

__all__ = ["ListingIntake"]


class ListingIntake:
    """Takes listings. Each directory comes once, after the parent that announces it."""

    def __init__(
        self,
        wanted: Manifest,
        directories: ComparedDirectories,
        own: ListedTree,
        *,
        preserved: Preserved,
        only: bytes,
        name: bytes | None,
        attributes: WantedXattrs | None = None,
        owners: OwnerMapping | None = None,
        dirlinks: DirectoryLinks | None = None,
    ) -> None:
        """`wanted`: takes the entries. `preserved`: what both sides preserve. `only`: the one entry to sync,
        b"" for a whole directory. `name`: its name at the destination, if that differs. `attributes`: the
        announced extended attributes. `owners`: what owners become; None for the same numbers.
        `dirlinks`: takes links for directories; None: no links."""
        self._owners = owners
        self._dirlinks = dirlinks
        self._attributes = attributes
        self._preserved = preserved
        self._wanted = wanted
        self._directories = directories
        self._own = own
        self._only = only
        self._name = name
        self._parts: list[Listing] = []
        self._listed = 0
        """Number of complete directories."""

    def take(self, part: ListingPart) -> None:
        """Takes one part. Raises ProtocolError for a directory that was not announced or is out of order."""
        if part.directory != self._listed or self._directories.announced(part.path) is None:
            raise ProtocolError(f"a listing of '{printable(part.path)}', which was not announced")
        self._parts.append(part.listing)
        if not part.last:
            return
        try:
            listing = self._preserved.listing(join_listing(self._parts))
        except ValueError as error:
            raise ProtocolError(str(error)) from error
        listing = with_made_modes(listing, self._preserved)
        self._parts = []
        self._listed += 1
        path, first = part.path, len(self._wanted)
        if self._owners is not None:
            listing = self._owners.listing(listing)
        listing = self._renamed(path, listing)
        made = listing if self._attributes is None else self._attributes.guarded(first, listing)
        self._wanted.add(path, made.packed())
        existing = self._existing(path)
        if self._dirlinks is not None and existing is not None:
            existing = self._dirlinks.existing(path, listing, existing)
        self._directories.compare(path, first, listing, existing)

    def _existing(self, path: bytes) -> Listing | None:
        """The destination's listing of a directory; None if it cannot be read or is lost."""
        announced = self._directories.announced(path)
        if announced is not None and announced.new:
            return EMPTY_LISTING
        if announced is None or announced.lost:
            return None
        return self._own.listing(path, self._directories.restore_permissions_later)

    def end(self) -> None:
        """Notes the end of the listing. Raises ProtocolError if a directory is incomplete."""
        if self._parts:
            raise ProtocolError("the listing ended inside a directory")

    def _renamed(self, path: bytes, listing: Listing) -> Listing:
        """`listing` with the destination's name of a single renamed entry."""
        if path or not self._only:
            return listing
        check_announced(listing.names, self._only)
        if self._name is None or not listing:
            return listing
        return listing.named((self._name,))
