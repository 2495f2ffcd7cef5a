"""The tree that a sync sends."""

from __future__ import annotations

import os
from functools import reduce

from rdc.catalog.store import NoCatalog, SignatureStore
from rdc.errors import ExitCode, FileError, UsageError, printable
from rdc.files.base.paths import stands_for_reserved
from rdc.files.base.store_guard import head_at
from rdc.files.root.policies import ReadPolicy
from rdc.lean.records import Record, replace
from rdc.model.entries import Kind, Metadata, PackedListing
from rdc.model.preserved import AttributeKinds, Preserved
from rdc.model.selection import read_name
from rdc.protocol.messages import Start
from rdc.session.trees.destination_root import known_facts
from rdc.session.trees.sites import ANYWHERE, Site, entry_of, served_path
from rdc.tree.filters import FilteredTree, FilterList

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.files.root.layered_root import LayeredRoot
    from rdc.files.root.root import Root
    from rdc.model.options import ModeChanges
    from rdc.model.selection import SelectedPaths
    from rdc.model.sync import SyncOptions
    from rdc.progress import Problem
    from rdc.session.trees.source_options import SourceRemoval
    from rdc.store.snapshot_root import SnapshotRoot
    from rdc.tree.selection import Selection


class SourceTree(Record):
    """A directory's contents, or one entry of a directory."""

    root: Root
    only: bytes | None
    """The one entry, if the path had no trailing slash (rsync's rule); None for all entries."""
    changes: ModeChanges | None = None
    """The changes of the permissions that are announced; None for none."""
    served: bytes | None = None
    """The path of `root` within a served directory; None if it lies anywhere."""
    selection: Selection | None = None
    """The selected entries; None for all that `root` and `only` show."""
    problems: tuple[Problem, ...] = ()
    """Selected paths that are missing."""
    layered: LayeredRoot | None = None
    """`root`, if it shows selected paths."""
    origins: tuple[Root, ...] = ()
    """One directory above selected paths for each file system that they are on."""
    prunes: bool = False
    """True if directories that contain nothing but directories are left out."""
    published: bool = False
    """True if it is in a store on the web or in one file."""

    @classmethod
    def open(
        cls,
        path: bytes,
        site: Site = ANYWHERE,
        options: SyncOptions | None = None,
        *,
        destination: bytes | None = None,
    ) -> SourceTree:
        """Open the tree at `path`, and show its entries as `options` ask. `destination`: the path that it
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
        if b"/@" in b"/" + path and (tree := _snapshot_tree(path, site, changes, prunes=prunes)):
            pass
        elif not name:
            root = _with_store(site.open(path))
            tree = cls(root, None, changes, served_path(path, site), prunes=prunes)
        else:
            directory = os.path.dirname(path) or b"."
            served = served_path(directory, site)
            tree = cls(_with_store(site.open(directory), name), name, changes, served, prunes=prunes)
            if tree.root.kind(name) is None:
                tree.root.close()
                raise FileError(path, f"{printable(path)}: no such file or directory; check the path")
            reads = replace(tree.root.reads, only=name, lists_top=False)
            tree = replace(tree, root=tree.root.having(reads))
        if options is None:
            return tree
        return replace(tree, root=tree._asked_root(site, options, destination))

    @property
    def has_top(self) -> bool:
        """Return whether the tree's root directory itself takes part, with its metadata."""
        return self.only is None and (self.selection is None or self.selection.top_counts)

    def release(self) -> None:
        """Close all descriptors."""
        self.root.release()
        for origin in self.origins:
            origin.release()

    def showing(self, nodes: frozenset[Kind]) -> SourceTree:
        """Return the tree, with special files of these kinds shown as what they are."""
        return replace(self, root=self.root.having(replace(self.root.reads, nodes=nodes)))

    def _asked_root(self, site: Site, options: SyncOptions, destination: bytes | None) -> Root:
        """Return the root that shows entries as `options` ask."""
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
        """Return the mount boundary of walks; None for no boundary."""
        if options.one_file_system and self.layered is not None and self.selection is not None:
            return SelectedBoundary(self.layered, self.selection)
        return boundary_of(self.root, self.only or b"", one_file_system=options.one_file_system)

    def removal(self, options: SyncOptions) -> SourceRemoval | None:
        """Return the SourceRemoval of the tree; None if `options` do not ask for it.

        Call it before the tree is listed.
        """
        if not options.remove_source_files:
            return None
        if self.root.given is not None:
            shown = printable(self.root.label)
            raise UsageError(f"{shown}: a snapshot loses no files; leave out --remove-source-files")
        from rdc.session.trees.source_options import SourceRemoval

        return SourceRemoval(self.root, dry=options.dry_run)

    def announced(self, listing: PackedListing) -> PackedListing:
        """Return the entries of a directory with the permissions that are announced."""
        if self.changes is None:
            return listing
        from rdc.session.trees.source_options import changed_listing

        return changed_listing(listing, self.changes)

    def metadata(self, name: bytes, kind: Kind) -> Metadata:
        """Return the metadata that are announced of the tree's top."""
        found = self.root.metadata(name)
        if self.changes is None or kind in {Kind.SYMLINK, Kind.SPECIAL}:
            return found
        mode = self.changes.applied(found.mode, directory=kind is Kind.DIRECTORY)
        return replace(found, mode=mode)

    def start(
        self, kinds: AttributeKinds = AttributeKinds.NONE, *, catalog: SignatureStore | None = None
    ) -> Start:
        """Return the first message about the tree. Raises FileError if the tree has vanished.

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
        return Start(name, kind, self.metadata(name, kind), preserved, self.root.store_head)


def _with_store(root: Root, entry: bytes = b"") -> Root:
    """Return `root`; if it, or its only `entry`, is a store, as one that is to be copied."""
    if root.given is not None or head_at(root.fileno(), entry) is None:
        return root
    from rdc.store.copied_store import copied_store

    return copied_store(root, entry)


def _snapshot_tree(
    path: bytes, site: Site, changes: ModeChanges | None, *, prunes: bool
) -> SourceTree | None:
    """Return the tree of a path into a snapshot of a store; None for another path. Raises RdcError."""
    from rdc.store.snapshot_root import open_snapshot

    found = open_snapshot(path, site.has_directory, site.open)
    return None if found is None else _shown_tree(path, found, changes, prunes=prunes)


def open_published_tree(
    path: bytes,
    options: SyncOptions,
    *,
    destination: bytes | None,
    notes: bytes | None,
    report: Callable[[Problem], None],
) -> SourceTree | None:
    """Return the tree of a path into a store on the web or in one file; None for another path.

    `destination`, `notes`: as open_published takes them. Raises RdcError.
    """
    from rdc.progress import Problem
    from rdc.store.published import open_published, published_place

    place = published_place(path)
    if place is None:
        return None
    found = open_published(
        place,
        unsigned=options.unsigned,
        destination=destination,
        notes=notes,
        timeout=options.timeout,
        notice=lambda text: report(Problem(ExitCode.OK, b"", text)),
    )
    tree = _shown_tree(path, found, changes_of(options.chmod), prunes=options.prune_empty_dirs)
    return replace(tree, root=tree._asked_root(ANYWHERE, options, destination), published=True)


def _shown_tree(
    path: bytes, found: tuple[SnapshotRoot, bytes | None], changes: ModeChanges | None, *, prunes: bool
) -> SourceTree:
    root, only = found
    if only is not None:
        if root.kind(only) is None:
            root.release()
            raise FileError(path, f"{printable(path)}: no such file or directory; check the path")
        return SourceTree(
            root.having(replace(root.reads, only=only, lists_top=False)), only, changes, prunes=prunes
        )
    return SourceTree(root, None, changes, prunes=prunes)


def read_policy(options: SyncOptions, reads: ReadPolicy = ReadPolicy()) -> ReadPolicy:  # noqa: B008 - frozen
    """Return how a source is shown and read as `options` ask; the rest is as in `reads`."""
    return replace(
        reads,
        depth=options.depth,
        keeps_atimes=options.open_noatime,
        untimed=options.untimed,
        unmunges=options.munge_links,
        fakes=options.fake_super,
    )


def changes_of(chmod: str) -> ModeChanges | None:
    """Return what `chmod` of SyncOptions changes. Raises UsageError if it is no change of permissions."""
    if not chmod:
        return None
    from rdc.session.trees.source_options import mode_changes

    return mode_changes(chmod)


def _preserved(root: Root, kinds: AttributeKinds, catalog: SignatureStore) -> Preserved:
    """Return what the file system of `root` preserves, of extended attributes only `kinds`."""
    preserved = known_facts(root, catalog, fakes=root.reads.fakes).keeps
    if not kinds:
        return replace(preserved, attributes=AttributeKinds.NONE)
    from rdc.files.facts.xattrs import attribute_kinds_of

    kinds &= preserved.attributes & attribute_kinds_of(root, fakes=root.reads.fakes)
    return replace(preserved, attributes=kinds)


# Where trees meet: one that contains the other, and the boundary of --one-file-system.


def check_overlap(
    source: bytes,
    destination: bytes,
    filters: FilterList,
    *,
    delete: bool,
    delete_excluded: bool = False,
    one_file_system: bool = False,
    name: bytes | None = None,
) -> None:
    """Raise UsageError if DST would be copied into itself or SRC would be deleted. Both paths are local.

    Otherwise each run would copy the result of the last one, a level deeper, and a watch would never end.
    An excluded inner tree does no harm, unless `delete_excluded` removes that protection. With
    `one_file_system`, an inner tree on another file system does no harm either. `name`: the path of the
    source below the destination; None: by rsync's rule.
    """
    # long because each way in which trees can overlap is one test with its message
    if not os.path.isdir(source) or (not source.endswith(b"/") and os.path.islink(source)):
        return  # a file, or a symlink that is copied as a symlink
    try:
        top, target = os.path.realpath(source), os.path.realpath(destination)
    except OSError:
        return  # the working directory is gone; the step that fails because of that reports it
    if name is None:
        name = b"" if _content_only(source) else os.path.basename(source)
    if name:
        target = os.path.join(target, name)
    if one_file_system and None is not _device(target) != _device(top):
        return  # the walk down to the inner tree crosses a mount boundary
    if (inside := _below(top, target)) and not _left_out(name, inside, filters):
        raise UsageError(
            f"{printable(destination)} lies inside {printable(source)}: each run would copy what the last one"
            f" made; leave it out with --exclude={_pattern(name, inside)}"
        )
    one_sided = delete_excluded or (delete and filters.certain is not filters)
    if one_sided and filters and _is_same(target, top):
        raise UsageError(
            f"{printable(source)} and {printable(destination)} are one place: --delete-excluded, or a rule"
            " for one side, would remove what the filter rules leave out of it; use --delete and plain rules"
        )
    if not (delete and (inside := _below(target, top))):
        return
    if delete_excluded:
        raise UsageError(
            f"{printable(source)} lies inside {printable(destination)}: --delete-excluded would remove it; "
            f"use --delete and --exclude={_pattern(name, inside)}"
        )
    if not _left_out(name, inside, filters.certain):
        raise UsageError(
            f"{printable(source)} lies inside {printable(destination)}: --delete would remove it; "
            f"leave it out with --exclude={_pattern(name, inside)}"
        )


def check_selected(
    selected: Sequence[SelectedPaths],
    destination: bytes,
    filters: FilterList,
    options: SyncOptions,
) -> None:
    """Do as `check_overlap` does, for each selected path. Without recursion no tree is copied into itself."""
    for paths in selected if options.recursive else ():
        for text in paths.names:
            name = read_name(text)
            source = os.path.join(paths.origin, name.path)
            check_overlap(
                source,
                destination,
                filters,
                delete=options.delete,
                delete_excluded=options.delete_excluded,
                name=name.path,
            )


def _content_only(source: bytes) -> bool:
    """Return whether SRC means its contents: it ends with a slash, "." or ".."."""
    return source.endswith(b"/") or source.rpartition(b"/")[2] in (b".", b"..")


def _below(top: bytes, path: bytes) -> bytes:
    """Return `path` relative to `top`; empty if it is not strictly below."""
    top = top if top.endswith(b"/") else top + b"/"
    return path[len(top) :] if path.startswith(top) else b""


def _is_same(one: bytes, other: bytes) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def _device(path: bytes) -> int | None:
    """Return the device number of `path` or of the directory that it would be made in; None if unknown."""
    for at in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
        try:
            return os.stat(at).st_dev
        except OSError:
            continue
    return None


def _left_out(name: bytes, path: bytes, filters: FilterList) -> bool:
    """Return whether a rule excludes a directory at or above `path`, so that walks do not reach it."""
    at = name
    for part in path.split(b"/"):
        at = os.path.join(at, part)
        if filters.excluded(at, True):
            return True
    return False


def _pattern(name: bytes, path: bytes) -> str:
    return (b"/" + os.path.join(name, path) + b"/").decode("utf-8", "surrogateescape")


# The boundary of --one-file-system: where a tree leaves the file system of its top directory.


class MountBoundary:
    """Decides which directories a walk enters, and collects those beyond the boundary.

    As in rsync, a different device number means another file system. A bind mount of the same file system
    does not count; a btrfs subvolume does.
    """

    def __init__(self, root: Root, top: bytes) -> None:
        """`top`: the directory below `root` whose file system counts; b"" is `root` itself."""
        self._root = root
        self._top = top
        self._device: int | None = None
        self.beyond: list[bytes] = []
        """Directories that walks did not enter."""

    def holds(self, path: bytes) -> bool:
        """Return whether the directory at `path` is on the top's file system. Raises FileError."""
        if self._device is None:
            self._device = self._device_of(self._top)
        return self._root.identity(path).device == self._device

    def enters(self, path: bytes) -> bool:
        """Return whether a walk enters the directory at `path`. It always enters the root, which may be above
        the top."""
        if not path or self.holds(path):
            return True
        self.beyond.append(path)
        return False

    def _device_of(self, top: bytes) -> int:
        try:
            return self._root.identity(top).device
        except FileError:
            # It does not exist, as in a dry run: it would be on the root's file system.
            return self._root.identity(b"").device


class _StoredBoundary(MountBoundary):
    """The boundary of a snapshot that was put with -x, wherever it is restored."""

    def holds(self, path: bytes) -> bool:
        return not self._root.is_mount_point(path)


def boundary_of(root: Root, top: bytes, *, one_file_system: bool) -> MountBoundary | None:
    """Return the boundary of walks below `top`; None for no boundary."""
    if root.has_mount_points:
        return _StoredBoundary(root, top)
    return MountBoundary(root, top) if one_file_system else None


class SelectedBoundary(MountBoundary):
    """The boundary for selected paths, each of which has a file system of its own.

    Below a selected directory a walk stays on one file system. So it enters what is on that of the directory
    above.
    """

    def __init__(self, root: LayeredRoot, selection: Selection) -> None:
        super().__init__(root, b"")
        self._layered = root
        self._selection = selection

    def holds(self, path: bytes) -> bool:
        if self._selection.is_end(path) or self._selection.is_above(path):
            return True
        base = self._layered.base
        crossed = {
            base.identity(real).device != base.identity(real.rpartition(b"/")[0]).device
            for real in self._layered.reals(path)
        }
        if len(crossed) > 1:
            raise FileError(
                path,
                f"{printable(path)}: on another file system below one SRC, and not below another one; sync"
                " one after the other, or leave out -x",
            )
        return crossed == {False}
