"""Opens the directory that the destination's tree goes into, and says what is known of it before."""

from __future__ import annotations

import os
from functools import partial

from rdc.errors import ExitCode, FileError, RdcError, UsageError, printable
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import LONG_HOLE_BYTES, Root, WritePolicy
from rdc.lean.records import dataclass, replace
from rdc.model.entries import DEVICES, Kind
from rdc.model.preserved import ALL_MODES, AttributeKinds, Preserved
from rdc.session.trees.sites import ANYWHERE, Site, parent_of, served_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.store import SignatureStore
    from rdc.model.options import Backup
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.session.trees.alternate_directories import AlternateDirectories
    from rdc.session.trees.directory_links import DirectoryLinks

__all__ = [
    "ANYWHERE",
    "DestinationRoot",
    "Site",
    "asked_attributes",
    "asked_metadata",
    "keeps",
    "open_destination",
    "unkept_attributes",
    "wants_listing",
]


def keeps_owner(options: SyncOptions) -> bool:
    """Whether this side, as the destination, sets uid and gid."""
    return os.geteuid() == 0 or options.super_user if options.owner is None else options.owner


def asked_attributes(options: SyncOptions) -> AttributeKinds:
    """The kinds of extended attributes that the options ask to preserve."""
    found = AttributeKinds.ACL if options.acls else AttributeKinds.NONE
    found |= AttributeKinds.ACCESS_TIME if options.atimes else AttributeKinds.NONE
    return found | AttributeKinds.USER | AttributeKinds.ROOT if options.xattrs else found


def asked_metadata(options: SyncOptions) -> Preserved:
    """What the options ask this side, as the destination, to preserve."""
    modes = ALL_MODES if options.perms else 0
    untimed = frozenset() if options.times else frozenset((Kind.FILE, Kind.DIRECTORY, Kind.SYMLINK))
    return Preserved(
        keeps_owner(options) or (options.fake_super and options.owner is not False),
        modes=modes,
        attributes=asked_attributes(options),
        group=options.group,
        directory_modes=modes,
        untimed=untimed,
    )


def unkept_attributes(options: SyncOptions, preserved: Preserved) -> str | None:
    """The message for attributes that the user asked for and one side cannot preserve; None if there are
    none."""
    lost = asked_attributes(options) & ~preserved.attributes
    kinds = (
        (AttributeKinds.ACL, "ACLs"),
        (AttributeKinds.USER, "extended attributes"),
        (AttributeKinds.ACCESS_TIME, "access times"),
    )
    names = " and ".join([name for kind, name in kinds if kind in lost])
    return f"{names} are not synced: the file system at one end keeps none" if names else None


def keeps(path: bytes, options: SyncOptions, site: Site = ANYWHERE, *, catalog: SignatureStore) -> Preserved:
    """What this side can preserve of entries at `path`, before the session makes anything there.

    If nothing is at `path`, nothing will be compared, and the directory above decides; with --mkpath, the
    nearest one that exists. With --owner, owners are set whatever the file system can store. `catalog`:
    remembers what was learned of file systems.
    """
    preserved = asked_metadata(options)
    if not site.has_directory(path):
        path = parent_of(path)
        if options.mkpath:
            path = _existing(path, site)
    try:
        root = site.open(path)
    except RdcError:
        return preserved
    try:
        from rdc.session.trees.destination_storage import known_facts

        found = known_facts(root, catalog).keeps
        kinds = AttributeKinds.NONE
        if preserved.attributes:
            from rdc.files.facts.apply_xattrs import attribute_kinds_of

            kinds = attribute_kinds_of(root, fakes=options.fake_super)
            if not preserved.owner or options.fake_super:
                # Setting a capability is as powerful as setting an owner, so both need the same permission.
                kinds &= ~AttributeKinds.ROOT
    finally:
        root.close()
    owner = found.owner or bool(options.owner)
    return preserved.also(replace(found, owner=owner, attributes=found.attributes & kinds))


def wants_listing(path: bytes, options: SyncOptions, site: Site = ANYWHERE) -> bool:
    """Whether to ask for the source's whole listing at once.

    That pays if all entries are new. It is necessary where each entry is looked at: manifests do not cover
    contents, and equal parts of them are not compared.
    """
    return options.visits_all or site.is_bare(path)


@dataclass(frozen=True, slots=True)
class DestinationRoot:
    """The place that the tree goes to."""

    root: Root
    name: bytes | None
    """The name of a single entry at the destination; None: the source's name."""
    new: bool
    """This run makes the directory, so it is empty. In a dry run `root` is an existing directory above
    it."""
    served: bytes | None = None
    """The path of `root` within a served directory; None if it lies anywhere."""
    alternates: AlternateDirectories | None = None
    """The alternate directories; None: the run has none."""
    dirlinks: DirectoryLinks | None = None
    """Takes symlinks for directories where the source has some; None: there are none."""

    def release(self) -> None:
        """Closes all descriptors."""
        self.root.release()
        if self.alternates is not None:
            self.alternates.release()


def open_destination(
    path: bytes,
    start: Start,
    options: SyncOptions,
    described: Preserved,
    site: Site = ANYWHERE,
    *,
    has_top: bool = True,
    knows_nodes: bool = True,
    munges: bool = False,
) -> DestinationRoot:
    """Opens the place that `path` means for the tree that `start` announces, by rsync's rules.
    `described`: what this side can preserve there. `has_top`: the tree's root directory takes part itself.
    `knows_nodes`: the far side knows special files by their kinds. `munges`: new symlinks lead nowhere.

    A directory is made if its parent exists, or with --mkpath. A single file goes into a directory at `path`.
    If there is no directory and `path` does not end with a slash, the file gets `path` itself. Raises
    RdcError (exit code 11) if the destination cannot be used.
    """
    try:
        destination_root = _open(path, start, options, site, has_top=has_top)
    except FileError as error:
        raise RdcError(str(error), code=ExitCode.FILE_IO) from error
    here = path if destination_root.name is None else os.path.dirname(path)
    if site is not ANYWHERE:
        destination_root = replace(destination_root, served=served_path(here, site))
    root = destination_root.root.having(_read_policy(start, options, knows_nodes=knows_nodes, munges=munges))
    sheds_acls = AttributeKinds.ACL in described.both(start.kept).attributes
    writes = _write_policy(
        root.writes, options, sheds_acls=sheds_acls, knows_nodes=knows_nodes, munges=munges
    )
    if options.fake_super:
        from rdc.files.root.faked_root import FakedRoot

        faked = FakedRoot(os.dup(root.fileno()), root.label, root.reads, writes)
        root.release()
        root = faked
    else:
        root = root.having(writes=writes)
    dirlinks = None
    if options.keep_dirlinks:
        from rdc.session.trees.directory_links import follow_directory_links

        dirlinks = follow_directory_links(root)
        root = dirlinks.root
    # Each keeper writes as the root that it is given: what is kept to be undone comes before parts of files
    # and backups, which it is told of.
    root = _keeping_undo(root, options)
    root = _writing_elsewhere(root, here, options, site)
    if options.backup is not None and not (options.dry_run and destination_root.new):
        root = _keeping_backups(root, here, options.backup, options, site)
    destination_root = replace(destination_root, root=root, dirlinks=dirlinks)
    if options.alternates is not None:
        from rdc.session.trees.alternate_directories import open_alternates
        from rdc.session.trees.named_directories import check_named, open_named

        option = options.alternates.option
        for directory in options.alternates.directories:
            check_named(option, directory)
        opened = open_alternates(
            options.alternates, options, lambda directory: open_named(option, directory, here, site)
        )
        return replace(destination_root, alternates=opened)
    return destination_root


def _read_policy(start: Start, options: SyncOptions, *, knows_nodes: bool, munges: bool) -> ReadPolicy:
    """How a destination is shown and read."""
    return ReadPolicy(
        only=start.only or None,
        fakes=options.fake_super,
        untimed=options.untimed,
        munges=munges,
        nodes=options.nodes if knows_nodes else frozenset(),
        keeps_atimes=options.open_noatime or options.atimes,
        depth=options.depth,
    )


def _write_policy(
    writes: WritePolicy, options: SyncOptions, *, sheds_acls: bool, knows_nodes: bool, munges: bool
) -> WritePolicy:
    """How a destination is written; the rest is as in `writes`. Special files are those that this process may
    make: devices are made by root alone, as in rsync."""
    makes_devices = os.geteuid() == 0 or options.super_user or options.fake_super
    nodes = options.nodes if makes_devices else options.nodes - DEVICES
    return replace(
        writes,
        nodes=nodes if knows_nodes else frozenset(),
        munges=munges,
        sparse=options.sparse,
        long_holes=0 if options.allocate else LONG_HOLE_BYTES,
        allocates=options.allocate,
        overwrites=options.overwrites,
        sheds_acls=sheds_acls,
        singly=options.fake_super or (options.delay_updates and not options.dry_run),
    )


def _writing_elsewhere(root: Root, path: bytes, options: SyncOptions, site: Site) -> Root:
    """Returns `root` as it keeps temporaries and parts of files where the options say. Raises UsageError,
    RdcError."""
    if options.temp_dir and not options.dry_run:
        root = _writing_first_to(root, path, options.temp_dir, site)
    if options.partial_dir and not options.dry_run:
        root = _keeping_partials(root, path, options.partial_dir, site)
    return root


def _writing_first_to(root: Root, path: bytes, directory: bytes, site: Site) -> Root:
    """Returns `root` as it writes new content in another directory first. No link is followed to one within
    DST: its peers might have made it."""
    from rdc.session.trees.named_directories import check_named, check_opened, open_named

    option = "--temp-dir"
    check_named(option, directory)
    try:
        within = os.path.normpath(directory)
        if within.startswith((b"/", b"../")) or within in (b".", b".."):
            distant, distant_path = open_named(option, directory, path, site, writable=True), None
        else:
            distant, distant_path = Root(os.dup(root.directory(within).fd), root.shown(within)), within
            check_opened(option, distant)
    except FileError as error:
        raise RdcError(str(error), code=ExitCode.FILE_IO) from error
    return root.having(writes=replace(root.writes, distant=distant, distant_path=distant_path, singly=True))


def _keeping_partials(root: Root, path: bytes, directory: bytes, site: Site) -> Root:
    """Returns `root` as it keeps the parts of unfinished files in another directory. Raises UsageError,
    RdcError."""
    from rdc.files.replace.partial_directory import PartialDirectory
    from rdc.session.trees.named_directories import check_named, open_named

    check_named("--partial-dir", directory)
    if not directory.startswith(b"/"):
        if directory in (b".", b"..") or b"/" in directory:
            text = f"--partial-dir={printable(directory)}: expected one name, or an absolute path"
            raise UsageError(text)
        return root.having(writes=replace(root.writes, partials=PartialDirectory(root, name=directory)))
    try:
        top = open_named("--partial-dir", directory, path, site, create=True, writable=True)
    except FileError as error:
        raise RdcError(str(error), code=ExitCode.FILE_IO) from error
    return root.having(writes=replace(root.writes, partials=PartialDirectory(root, top=top)))


def _keeping_undo(root: Root, options: SyncOptions) -> Root:
    """Returns `root` as it keeps what undoing the run needs, if that is asked for."""
    if options.keep_undo is None or options.dry_run:
        return root
    from rdc.undoing.keeper import SyncUndo

    undo = SyncUndo(root, options.keep_undo, fsync=options.fsync)
    return root.having(writes=replace(root.writes, undo=undo))


def _keeping_backups(root: Root, path: bytes, backup: Backup, options: SyncOptions, site: Site) -> Root:
    """Returns `root` as it keeps backups. The backup directory is made when the first entry is kept."""
    from rdc.files.names.backups import Backups

    if backup.directory is None:
        backups = Backups(root, backup.suffix, fsync=options.fsync)
        return root.having(writes=replace(root.writes, backups=backups))
    from rdc.session.trees.named_directories import check_above, check_named, check_opened

    check_named("--backup-dir", backup.directory)
    directory = os.path.join(path, backup.directory)
    try:
        check_above("--backup-dir", directory, site)
        top = site.open(directory, writable=not options.dry_run) if site.has_directory(directory) else None
        if top is not None:
            check_opened("--backup-dir", top)
        make_top = partial(_make_path, directory, site, 0o700)
        backups = Backups(root, backup.suffix, fsync=options.fsync, top=top, make_top=make_top)
    except FileError as error:
        raise RdcError(str(error), code=ExitCode.FILE_IO) from error
    return root.having(writes=replace(root.writes, backups=backups))


def _make_path(path: bytes, site: Site, mode: int) -> Root:
    """Makes a directory and what is missing above it, all with `mode` less the umask."""
    end = path.find(b"/", 1)
    while end >= 0:
        if not site.has_directory(path[:end]):
            site.open(path[:end], create=True, mode=mode).release()
        end = path.find(b"/", end + 1)
    return site.open(path, create=True, writable=True, mode=mode)


def _existing(path: bytes, site: Site) -> bytes:
    """`path`, or the nearest path above it with anything there. It may be no directory."""
    while not site.has(path) and (above := parent_of(path)) != path:
        path = above
    return path


def _open(path: bytes, start: Start, options: SyncOptions, site: Site, *, has_top: bool) -> DestinationRoot:
    dry_run, parent = options.dry_run, parent_of(path)
    makes_parents = options.mkpath and not site.has(parent)
    if makes_parents and not dry_run:
        _make_path(parent, site, 0o777).release()
    single_file = start.only and start.entry is not Kind.DIRECTORY
    if single_file and not path.endswith(b"/") and not site.has_directory(path):
        if dry_run and makes_parents:
            # An entry of this name in the existing directory is another one: nothing is compared with it.
            return DestinationRoot(site.open(_existing(parent, site)), os.path.basename(path), True)
        return DestinationRoot(site.open(parent, writable=not dry_run), os.path.basename(path), False)
    new = not site.has(path)
    if dry_run and new:
        return DestinationRoot(site.open(_existing(parent, site) if makes_parents else parent), None, True)
    # The synced directory gets the source's mode at the end; until then only its owner may use it.
    mode = 0o700 if has_top and not start.only else 0o777
    return DestinationRoot(site.open(path, create=not dry_run, writable=not dry_run, mode=mode), None, new)
