"""The destination's own tree, as it is found: walked for a manifest, or listed a directory at a time."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError
from rdc.model.attributes import AttributeKinds
from rdc.progress import Problem
from rdc.tree.manifest import Manifest, covering_root, further_digest
from rdc.tree.walk import PackedWalk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.files.confined import Root
    from rdc.model.entries import Listing, PackedInodes
    from rdc.model.kept import Kept
    from rdc.progress import Event
    from rdc.session.leftovers import Leftovers
    from rdc.session.news import News
    from rdc.session.tree_attributes import EntrySet, TreeAttributes
    from rdc.session.wanted_attributes import WantedAttributes
    from rdc.tree.filters import FilterList
    from rdc.tree.hard_links import LinkTable

__all__ = ["OwnTree"]


class _Inodes:
    """Which files lie in the directory that a walk comes to next."""

    found: PackedInodes | None = None

    def take(self, path: bytes, inodes: PackedInodes) -> None:
        self.found = inodes


class OwnTree:
    """What earlier runs left unfinished in it is noted."""

    def __init__(
        self,
        root: Root,
        filters: FilterList,
        leftovers: Leftovers,
        news: News,
        *,
        only: bytes,
        new: bool,
        links: LinkTable | None,
        dry: bool,
        kinds: AttributeKinds = AttributeKinds.NONE,
    ) -> None:
        """`only`: the one entry that is synced, b"" for all. `new`: nothing is there yet. `links`: takes the
        hard links of a walk, which then count as a difference. `kinds`: extended attributes that do so too.
        `dry`: nothing is to be changed."""
        self._kinds = kinds
        self._attributes: TreeAttributes | None = None
        self._sets: WantedAttributes | None = None
        """What the last walk read of them, unless that was too much to hold."""
        if kinds:
            from rdc.session.tree_attributes import TreeAttributes

            self._attributes = TreeAttributes(root, kinds)
        self.further = b""
        """Digest of links and attributes of the last walk, once `digest` has made it."""
        self._root = root
        self._filters = filters
        self._leftovers = leftovers
        self._news = news
        self._only = only
        self._new = new
        self._links = links
        self._dry = dry
        self.unreadable: set[bytes] = set()
        """Directories that the walk could not read. They are news only if something is to be done in them:
        others' are nobody's business."""

    def walk(self) -> Manifest:
        """All of it."""
        manifest = Manifest()
        if self._new:
            return manifest
        links, inodes = self._links, _Inodes()
        attributes = self._attributes
        if attributes is not None:
            from rdc.session.wanted_attributes import WantedAttributes

            self._sets = WantedAttributes(self._kinds)
            self._hold(attributes.begin(top=not self._only))
        walk = PackedWalk(
            self._root,
            self._filters,
            self._note,
            only=self._only or None,
            on_temporaries=self._leftovers.note,
            on_inodes=None if links is None else inodes.take,
        )
        try:
            for path, listing in walk:
                if links is not None and inodes.found is not None:
                    links.add(len(manifest), listing.kinds, inodes.found)
                if attributes is not None:
                    self._hold(attributes.read(path, len(manifest), listing))
                manifest.add(path, listing)
        except FileError:
            self.unreadable.add(b"")
        return manifest

    def digest(self, manifest: Manifest, kept: Kept) -> bytes:
        """What the source's manifest root is compared with; `manifest` is what was walked."""
        top = None if self._only else self._root.metadata(b"")
        links = None if self._links is None else self._links.digest(manifest)
        self.further = further_digest(links, None if self._attributes is None else self._attributes.digest())
        return covering_root(manifest.root(top, kept), self.further)

    def _hold(self, sets: Iterable[EntrySet]) -> None:
        if self._sets is not None and not self._sets.hold(sets):
            self._sets = None

    def hand_over(
        self, own: Manifest, wanted: Manifest, links: LinkTable | None, attributes: WantedAttributes | None
    ) -> bool:
        """Where both trees have the same `further`: what `own`, which was walked, has of links and attributes
        is told of the entries of `wanted`, which have the same paths. False where that cannot be."""
        from rdc.tree.row_map import RowMap

        rows = RowMap(own, wanted)
        found = None if self._links is None else self._links.transposed(rows)
        if (links is None) is not (found is None):
            return False
        if attributes is not None and (self._sets is None or not attributes.adopt(self._sets, rows)):
            return False
        if links is not None and found is not None:
            links.extend(found.files, found.firsts)
        return True

    def listing(self, path: bytes, on_lent: Callable[[bytes], None]) -> Listing | None:
        """One directory as it is now; None, and a problem, where it cannot be read. One that its owner may
        not read is read all the same; `on_lent` is told, for it is to get its mode back at the end."""
        stale: list[bytes] = []
        try:
            listing = self._listing(path, stale, on_lent)
        except FileError as error:
            from rdc.session.directories import writing_code

            self._news.report(Problem(writing_code(error), path, str(error)))
            return None
        if stale:
            self._leftovers.note(path, stale)
        return listing

    def _listing(self, path: bytes, stale: list[bytes], on_lent: Callable[[bytes], None]) -> Listing:
        try:
            return self._root.list(path, on_temporary=stale.append)
        except FileError as error:
            from rdc.session.rights import lend_rights

            closed = isinstance(error.__cause__, PermissionError) and not self._dry
            if not (closed and lend_rights(self._root, path)):
                raise
            on_lent(path)
            return self._root.list(path, on_temporary=stale.append)

    def _note(self, event: Event) -> None:
        """Of our own tree only failures matter."""
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self.unreadable.add(event.path)
