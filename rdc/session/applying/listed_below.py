"""ListedBelow: what extraneous directories had in them when the destination was listed.

A comparison by listing knows that a directory is extraneous, not what is below it. Whatever is deleted there
later is compared with what was listed here. So such a directory is listed when it is found, with everything
below it, unless a walk of the whole tree has it already.
"""

from __future__ import annotations

from bisect import bisect_left

from rdc.errors import ExitCode, FileError
from rdc.model.entries import EMPTY_LISTING
from rdc.progress import Problem
from rdc.tree.filters import FilterList
from rdc.tree.manifest import Manifest
from rdc.tree.tree_identities import TreeIdentities
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rdc.files.root.root import Root
    from rdc.model.entries import Identity, Listing
    from rdc.progress import Event
    from rdc.session.trees.mount_boundary import MountBoundary

__all__ = ["ListedBelow"]


class ListedBelow:
    """Listings of directories by path. No filter rule counts in them: deletion asks the rules itself."""

    def __init__(self, root: Root, boundary: MountBoundary | None = None) -> None:
        """`boundary`: nothing beyond it is listed."""
        self._root = root
        self._boundary = boundary
        self._manifest = Manifest()
        self._identities = TreeIdentities(self._manifest)
        self._walked: Manifest | None = None
        self._listed: set[bytes] = set()
        """Directories that were listed and have no entries."""
        self._unread: set[bytes] = set()
        """Directories that could not be listed."""

    def take_walk(self, manifest: Manifest, identities: TreeIdentities, unread: Collection[bytes]) -> None:
        """Take a walk of the whole tree: from now on nothing is listed again. `unread`: directories that it
        could not read."""
        self._manifest = self._walked = manifest
        self._identities = identities
        self._unread = set(unread)

    def note(self, path: bytes) -> None:
        """List the directory at `path` and everything below it, unless that was done."""
        if self._walked is not None or path in self._unread or self.listing(path) is not None:
            return
        enter = None if self._boundary is None else self._boundary.holds
        walk = Walk(
            self._root,
            FilterList(()),
            self._note_unread,
            start=path,
            enter=enter,
            on_temporaries=lambda *_: None,
            on_special=lambda _: None,
        )
        try:
            for directory, listing, inodes in walk:
                if listing.count:
                    self._manifest.add(directory, listing)
                    self._identities.add(inodes)
                else:
                    self._listed.add(directory)
        except FileError:
            self._unread.add(path)

    def _note_unread(self, event: Event, /) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._unread.add(event.path)

    def listing(self, path: bytes) -> Listing | None:
        """Return the listing of a directory, with the identities of its entries. None: it was not listed."""
        number = self._manifest.number(path)
        if number is not None:
            return self._identities.listing(number)
        if path in self._unread or (self._walked is None and path not in self._listed):
            return None
        return EMPTY_LISTING

    def identity(self, path: bytes) -> Identity | None:
        """Return what was listed at a path; None: nothing, or its directory was not listed."""
        above, _, name = path.rpartition(b"/")
        listing = self.listing(above)
        if listing is None or listing.identities is None:
            return None
        row = bisect_left(listing.names, name)
        return listing.identities.of(row) if listing.names[row : row + 1] == (name,) else None
