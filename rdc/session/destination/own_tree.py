"""Reads the destination's own tree: walks it for a manifest, or lists single directories."""

from __future__ import annotations

from rdc.errors import ExitCode, FileError
from rdc.files.base.relative_path import join
from rdc.progress import Problem
from rdc.tree.manifest import Manifest, covering_root, further_digest
from rdc.tree.tree_identities import TreeIdentities
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.model.entries import Listed, Listing
    from rdc.model.preserved import Preserved
    from rdc.progress import Event
    from rdc.session.landing.partial_files import PartialFiles
    from rdc.session.transfer.destination import Destination
    from rdc.session.trees.owner_mapping import OwnerMapping
    from rdc.session.trees.tree_xattrs import EntrySet, TreeXattrs
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable

__all__ = ["OwnTree"]


class OwnTree:
    """The destination's tree. Reading it also notes the partial files of earlier runs."""

    def __init__(
        self,
        context: Destination,
        partial_files: PartialFiles,
        *,
        links: LinkTable | None,
        enter: Callable[[bytes], bool] | None = None,
    ) -> None:
        """`links`: takes the hard links of a walk; None if hard links do not count as a difference. `enter`:
        as in Walk."""
        self._enter = enter
        root = context.destination_root.root
        self._kinds = kinds = context.agreed.attributes
        self._attributes: TreeXattrs | None = None
        self._sets: WantedXattrs | None = None
        """The attributes of the last walk; None if they were too many to store."""
        if kinds:
            from rdc.session.trees.tree_xattrs import TreeXattrs

            self._attributes = TreeXattrs(root, kinds)
        self.identities: TreeIdentities | None = None
        """Which entries the last walk found; None: none was begun."""
        self.further = b""
        """Digest of the links and attributes of the last walk; valid after `digest`."""
        self._root = root
        self._filters = context.filters.listed
        self._partial_files = partial_files
        self._events = context.events
        self._only = context.start.only
        self._has_top = context.has_top
        self._selection = context.selection
        self._new = context.destination_root.new
        self._links = links
        self._dry = context.options.dry_run
        self.unreadable: set[bytes] = set()
        """Directories that the walk could not read. They are reported only if the run has to work in them."""
        self.reasons: dict[bytes, str] = {}
        """Why, for those below the root."""

    def walk(self) -> Manifest:
        """The manifest of the whole tree."""
        manifest = Manifest()
        self.identities = identities = TreeIdentities(manifest)
        if self._new:
            return manifest
        links = self._links
        attributes = self._attributes
        if attributes is not None:
            from rdc.session.trees.wanted_xattrs import WantedXattrs

            self._sets = WantedXattrs(self._kinds)
            self._hold(attributes.begin(top=self._has_top))
        walk = Walk(
            self._root,
            self._filters,
            self._note,
            only=self._only or None,
            on_temporaries=self._partial_files.note,
            enter=self._enter,
            selection=self._selection,
        )
        try:
            for path, listing, inodes in walk:
                if links is not None:
                    links.add(len(manifest), listing.kinds, inodes)
                if attributes is not None:
                    self._hold(attributes.read(path, len(manifest), listing))
                manifest.add(path, listing)
                identities.add(inodes)
        except FileError:
            self.unreadable.add(b"")
        return manifest

    def digest(self, manifest: Manifest, preserved: Preserved, owners: OwnerMapping | None = None) -> bytes:
        """The digest to compare with the source's. `manifest`: of the last walk. `owners`: if owners change,
        it gets the source's."""
        top = self._root.metadata(b"") if self._has_top else None
        if owners is not None and owners.changes:
            owners.unmapped(manifest)
            top = None if top is None else owners.as_at_source(top)
        links = None if self._links is None else self._links.digest(manifest)
        self.further = further_digest(links, None if self._attributes is None else self._attributes.digest())
        return covering_root(manifest.root(top, preserved.at_destination), self.further)

    def _hold(self, sets: Iterable[EntrySet]) -> None:
        """Stores attributes, unless they become too many."""
        if self._sets is not None and not self._sets.hold(sets):
            self._sets = None

    def hand_over(
        self, own: Manifest, wanted: Manifest, links: LinkTable | None, attributes: WantedXattrs | None
    ) -> bool:
        """Copies the links and attributes of the own tree to the entries of `wanted` with the same paths.

        The caller has found that `further` is equal on both sides. `own`: the manifest of the last walk.
        Returns False if copying is not possible.
        """
        from rdc.tree.row_map import RowMap

        rows = RowMap(own, wanted)
        found = None if self._links is None else self._links.transposed(rows)
        if (links is None) is not (found is None):
            return False
        if attributes is not None and (self._sets is None or not attributes.take_over(self._sets, rows)):
            return False
        if links is not None and found is not None:
            links.extend(found.files, found.firsts)
        return True

    def listing(self, path: bytes, on_borrowed: Callable[[bytes], None]) -> Listing | None:
        """The current listing of one directory; reports a problem and returns None if it cannot be read.

        If only the directory's mode keeps its owner out, the owner borrows permissions. `on_borrowed` then
        takes the path, so that the run restores the mode at the end.
        """
        try:
            listed = self._listed(path, on_borrowed)
        except FileError as error:
            from rdc.session.applying.writing_code import writing_code

            self._events.report(Problem(writing_code(error), path, str(error)))
            return None
        if listed.reserved:
            self._partial_files.note(path, list(listed.reserved))
        for bad in listed.bad:
            entry = join(path, bad.name)
            if not self._filters.excluded(entry, bad.is_directory):
                self._events.report(Problem(ExitCode.PARTIAL, entry, str(self._root.unlisted(entry, bad))))
        return listed.unpacked()

    def _listed(self, path: bytes, on_borrowed: Callable[[bytes], None]) -> Listed:
        try:
            return self._root.listed(path)
        except FileError as error:
            from rdc.session.applying.borrowed_permissions import borrow_permissions

            closed = isinstance(error.__cause__, PermissionError) and not self._dry
            if not (closed and borrow_permissions(self._root, path)):
                raise
            on_borrowed(path)
            return self._root.listed(path)

    def _note(self, event: Event) -> None:
        """Notes directories that the walk could not read."""
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self.unreadable.add(event.path)
            self.reasons[event.path] = event.message
