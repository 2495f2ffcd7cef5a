"""The tree that a sync sends."""

from __future__ import annotations

import os
from functools import reduce

from rdc.catalog.store import NoCatalog, SignatureStore
from rdc.errors import ExitCode, FileError, printable
from rdc.files.base.paths import stands_for_reserved
from rdc.files.root.policies import ReadPolicy
from rdc.lean.records import dataclass, replace
from rdc.model.entries import Kind, Metadata, PackedListing
from rdc.model.preserved import AttributeKinds, Preserved
from rdc.protocol.messages import Start
from rdc.session.trees.announced_entries import entry_of
from rdc.session.trees.destination_root import known_facts
from rdc.session.trees.sites import ANYWHERE, served_path
from rdc.tree.filters import FilteredTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.root.layered_root import LayeredRoot
    from rdc.files.root.root import Root
    from rdc.model.options import ModeChanges
    from rdc.model.sync import SyncOptions
    from rdc.progress import Problem
    from rdc.session.trees.nested_trees import MountBoundary
    from rdc.session.trees.sites import Site
    from rdc.session.trees.source_options import SourceRemoval
    from rdc.tree.selection import Selection


@dataclass(frozen=True, slots=True)
class SourceTree:
    """A directory's contents, or one entry of a directory."""

    root: Root
    only: bytes | None
    """The one entry, if the path had no trailing slash (rsync's rule); None for all entries."""
    changes: ModeChanges | None = None
    """What changes the permissions that are announced; None for nothing."""
    served: bytes | None = None
    """The path of `root` within a served directory; None if it lies anywhere."""
    selection: Selection | None = None
    """What takes part; None for all that `root` and `only` show."""
    problems: tuple[Problem, ...] = ()
    """Selected paths that are missing."""
    layered: LayeredRoot | None = None
    """`root`, if it shows selected paths."""
    origins: tuple[Root, ...] = ()
    """One directory above selected paths for each file system that they are on."""
    prunes: bool = False
    """Whether directories take no part that hold nothing but directories."""

    @classmethod
    def open(
        cls,
        path: bytes,
        site: Site = ANYWHERE,
        options: SyncOptions | None = None,
        *,
        destination: bytes | None = None,
    ) -> SourceTree:
        """Opens the tree at `path`, and shows its entries as `options` ask. `destination`: the path that it
        is synced to, if that is on this machine.

        Raises FileError if nothing is there, UsageError if `chmod` of the options is no change of
        permissions.
        """
        changes = changes_of("" if options is None else options.chmod)
        prunes = options is not None and options.prune_empty_dirs
        name = entry_of(path)
        if name and stands_for_reserved(name):
            raise FileError(
                path, f"{printable(path)}: expected a path, found a name that rdc keeps for itself"
            )
        if not name:
            tree = cls(site.open(path), None, changes, served_path(path, site), prunes=prunes)
        else:
            directory = os.path.dirname(path) or b"."
            served = served_path(directory, site)
            tree = cls(site.open(directory), name, changes, served, prunes=prunes)
            if tree.root.kind(name) is None:
                tree.root.close()
                raise FileError(path, f"{printable(path)}: nothing there to sync from; check the path")
            reads = replace(tree.root.reads, only=name, lists_top=False)
            tree = replace(tree, root=tree.root.having(reads))
        if options is None:
            return tree
        return replace(tree, root=tree._asked_root(site, options, destination))

    @property
    def has_top(self) -> bool:
        """Whether the tree's root directory itself takes part, with its metadata."""
        return self.only is None and (self.selection is None or self.selection.top_counts)

    def release(self) -> None:
        """Closes all descriptors."""
        self.root.release()
        for origin in self.origins:
            origin.release()

    def showing(self, nodes: frozenset[Kind]) -> SourceTree:
        """The tree, with special files of these kinds shown as what they are."""
        return replace(self, root=self.root.having(replace(self.root.reads, nodes=nodes)))

    def _asked_root(self, site: Site, options: SyncOptions, destination: bytes | None) -> Root:
        """The root that shows entries as `options` ask."""
        root = self.root.having(read_policy(options, self.root.reads))
        if options.follows is None:
            return root
        from rdc.session.trees.source_options import follow_links

        return follow_links(root, self.only, options.follows, site, destination)

    @property
    def filtered(self) -> FilteredTree:
        """The tree as filter rules are about it."""
        return FilteredTree(self.root, self.only or b"", self.served, self.selection)

    def boundary(self, options: SyncOptions) -> MountBoundary | None:
        """The mount boundary of walks; None for no boundary."""
        if not options.one_file_system:
            return None
        from rdc.session.trees.nested_trees import MountBoundary, SelectedBoundary

        if self.layered is not None and self.selection is not None:
            return SelectedBoundary(self.layered, self.selection)
        return MountBoundary(self.root, self.only or b"")

    def removal(self, options: SyncOptions) -> SourceRemoval | None:
        """Returns the SourceRemoval of the tree; None if `options` do not ask for it.

        Call it before the tree is listed.
        """
        if not options.remove_source_files:
            return None
        from rdc.session.trees.source_options import SourceRemoval

        return SourceRemoval(self.root, dry=options.dry_run)

    def announced(self, listing: PackedListing) -> PackedListing:
        """The entries of a directory with the permissions that are announced."""
        if self.changes is None:
            return listing
        from rdc.session.trees.source_options import changed_listing

        return changed_listing(listing, self.changes)

    def metadata(self, name: bytes, kind: Kind) -> Metadata:
        """The metadata that are announced of the tree's top."""
        found = self.root.metadata(name)
        if self.changes is None or kind in {Kind.SYMLINK, Kind.SPECIAL}:
            return found
        mode = self.changes.applied(found.mode, directory=kind is Kind.DIRECTORY)
        return replace(found, mode=mode)

    def start(
        self, kinds: AttributeKinds = AttributeKinds.NONE, *, catalog: SignatureStore | None = None
    ) -> Start:
        """The first message about the tree. Raises FileError if the tree has vanished.

        `kinds`: the extended attributes that the user asked for. `catalog`: remembers what was learned of
        file systems; None: their types decide.
        """
        name = b"" if self.only is None else self.only
        kind = self.root.kind(name)
        if kind is None:
            raise FileError(name, f"{printable(name)}: vanished before it was synced", code=ExitCode.VANISHED)
        store = NoCatalog() if catalog is None else catalog
        first, *others = [_preserved(root, kinds, store) for root in self.origins or (self.root,)]
        preserved = reduce(Preserved.also, others, first)
        return Start(name, kind, self.metadata(name, kind), preserved)


def read_policy(options: SyncOptions, reads: ReadPolicy = ReadPolicy()) -> ReadPolicy:  # noqa: B008 - frozen
    """How a source is shown and read as `options` ask; the rest is as in `reads`."""
    return replace(
        reads,
        depth=options.depth,
        keeps_atimes=options.open_noatime,
        untimed=options.untimed,
        unmunges=options.munge_links,
        fakes=options.fake_super,
    )


def changes_of(chmod: str) -> ModeChanges | None:
    """What `chmod` of SyncOptions changes. Raises UsageError if it is no change of permissions."""
    if not chmod:
        return None
    from rdc.session.trees.source_options import mode_changes

    return mode_changes(chmod)


def _preserved(root: Root, kinds: AttributeKinds, catalog: SignatureStore) -> Preserved:
    """What the file system of `root` preserves, of extended attributes only `kinds`."""
    preserved = known_facts(root, catalog).keeps
    if not kinds:
        return replace(preserved, attributes=AttributeKinds.NONE)
    from rdc.files.facts.xattrs import attribute_kinds_of

    kinds &= preserved.attributes & attribute_kinds_of(root, fakes=root.reads.fakes)
    return replace(preserved, attributes=kinds)
