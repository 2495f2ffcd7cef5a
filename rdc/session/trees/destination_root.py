"""Opens the directory that the destination's tree goes into, and says what is known of it before.

Directories that an option names beside DST pass a gate here: where temporaries, parts and backups go,
and alternates. Whoever may write below a directory may name any other one in it by such an option:

1. It lies within what is served. Below that no link is followed.
2. No component stands for a reserved name, in any letter case.
3. It is no directory that only rdc works in, and lies in none, whatever its path says.

What may be done in it is decided by those who work there, by the rights that the session has at DST:
nothing is removed or replaced there but what rdc provably made (rdc/files/FILES.md).
"""

from __future__ import annotations

import errno
import os
from functools import partial

from rdc.errors import ExitCode, FileError, RdcError, TrustError, UsageError, printable
from rdc.files.base.metadata import Shortfall
from rdc.files.base.paths import lies_in_own_directory, refused_component
from rdc.files.facts.file_systems import facts_by_type, learn_facts, mount_key
from rdc.files.root.policies import ReadPolicy
from rdc.files.root.root import LONG_HOLE_BYTES, Root, WritePolicy
from rdc.lean.records import Record, replace
from rdc.model.entries import DEVICES, Kind
from rdc.model.preserved import ALL_KEPT, ALL_MODES, AttributeKinds, FileSystemFacts, Preserved
from rdc.progress import Problem
from rdc.session.trees.sites import ANYWHERE, Site, parent_of, served_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.store import SignatureStore
    from rdc.model.options import Backup
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.session.trees.destination_options import AlternateDirectories, DirectoryLinks


def known_facts(root: Root, catalog: SignatureStore, *, fakes: bool = False) -> FileSystemFacts:
    """Return what an earlier run learned of the file system of `root`, or what its type makes one assume.
    `fakes`: entries stand for others, as with --fake-super."""
    if root.given is not None:
        return root.given.facts
    try:
        found = catalog.facts_of(mount_key(root.fileno()))
    except OSError:
        found = None
    facts = facts_by_type(root) if found is None else found
    return _behind_attributes(facts) if fakes else facts


def _behind_attributes(facts: FileSystemFacts) -> FileSystemFacts:
    """Return what a file system keeps of entries that stand for others: an attribute has their owners and
    modes, and a regular file stands for a link or special file. Times are those of the file system."""
    keeps = facts.keeps
    untimed = keeps.untimed - {Kind.SYMLINK} | (
        {Kind.SYMLINK} if Kind.FILE in keeps.untimed else frozenset[Kind]()
    )
    kept = replace(
        ALL_KEPT, granularity=keeps.granularity, untimed=frozenset(untimed), attributes=keeps.attributes
    )
    return replace(facts, keeps=kept)


class DestinationStorage:
    """The file system of one destination during one run."""

    def __init__(
        self,
        root: Root,
        catalog: SignatureStore,
        report: Callable[[Problem], None],
        options: SyncOptions,
        asked: Preserved,
    ) -> None:
        """`asked`: what the options ask to preserve. `root` has agreed on what both ends preserve."""
        self._root = root
        self._catalog = catalog
        self._tell = report
        self._asked = asked
        self._tries = not (options.dry_run or root.append_only)
        self._before = root.storage.facts
        self._kept = 0
        self._learned: FileSystemFacts | None = None
        self.doubts_times = False
        """Times are kept, against what was remembered. So no run has set those of the files that are there,
        and one that is near a source's is so by chance: contents are compared, in this run."""

    @property
    def preserved(self) -> Preserved:
        """Return what both ends preserve, as far as is known by now."""
        return self._root.storage.preserved

    def before_writing(self, directory: bytes) -> bool:
        """Find out what the file system keeps, once a run, before anything is written in a directory.

        Returns whether less is preserved than was assumed, so that a comparison has to be made again.
        """
        storage = self._root.storage
        if storage.is_learned or not self._tries:
            return False
        learned = learn_facts(self._root, directory, owners=self._asked.owner and os.geteuid() == 0)
        before, untimed = storage.preserved, storage.facts.keeps.untimed
        if learned is None:
            self._root.rely_on(storage.facts, learned=True)
            return False
        self._learned = learned.facts
        facts = _behind_attributes(learned.facts) if self._root.reads.fakes else learned.facts
        # A trial syncs nothing. The first refusal of a run shows.
        self._root.rely_on(replace(facts, syncs=storage.facts.syncs), learned=True)
        self.doubts_times = Kind.FILE in untimed - facts.keeps.untimed
        self._report_lost(facts.keeps, learned.refusals.get)
        return storage.preserved != before

    def _report_lost(self, keeps: Preserved, refused: Callable[[Shortfall], int | None]) -> None:
        """Report what the options ask for and the file system does not keep, unless that was known."""
        known, asked = self._before.keeps, self._asked
        lost: list[str] = []
        errors: list[int] = []

        def lose(text: str, *causes: Shortfall) -> None:
            lost.append(text)
            errors.extend(number for number in map(refused, causes) if number is not None)

        if asked.owner and known.owner and not keeps.owner:
            lose("owners")
            lose("groups")
        modes = keeps.modes & keeps.directory_modes
        if asked.keeps_all_modes and modes != ALL_MODES and known.modes & known.directory_modes != modes:
            some = "" if not modes & 0o777 else f" (all but {modes:04o})"
            lose(f"permissions{some}", Shortfall.MODE)
        untimed = keeps.untimed - known.untimed - asked.untimed
        names = {Kind.FILE: "files", Kind.DIRECTORY: "directories", Kind.SYMLINK: "symlinks"}
        if Kind.SYMLINK in keeps.unmade:
            untimed -= {Kind.SYMLINK}
        if untimed:
            of = _joined([name for kind, name in names.items() if kind in untimed])
            lose(f"modification times of {of}", Shortfall.TIME)
        if not lost:
            return
        what = _joined(lost)
        text = f"{printable(self._root.label)}: its file system does not keep {what}; that is not compared"
        if Kind.FILE in untimed:
            text += ", but the contents of files whose times differ are"
        code = ExitCode.PARTIAL if errors else ExitCode.OK
        text += f" ({os.strerror(errors[0])}, {errno.errorcode.get(errors[0], errors[0])})" if errors else ""
        self._tell(Problem(code, b"", text))

    def note_kept(self, count: int) -> None:
        """Note entries that are not deleted, since the source's file system has none of their kind."""
        self._kept += count

    def finish(self) -> None:
        """Remember what was learned, and report what failed for some entries, a line for each kind."""
        storage, label = self._root.storage, printable(self._root.label)
        if self._kept:
            text = f"{label}: {self._kept} symlinks or special files stay: the source's file system has none"
            self._tell(Problem(ExitCode.OK, b"", text))
            self._kept = 0
        if storage.unsynced and storage.facts.syncs:
            name = errno.errorcode.get(storage.unsynced, storage.unsynced)
            text = f"{label}: its file system does not sync ({name}): a power cut may cost what a run wrote"
            self._tell(Problem(ExitCode.OK, b"", text))
            self._root.rely_on(replace(storage.facts, syncs=False), learned=storage.is_learned)
        storage.unsynced = 0
        self.remember()
        for what, found in self._root.storage.shortfalls.items():
            reason = f"{os.strerror(found.error)} ({errno.errorcode.get(found.error, found.error)})"
            path = printable(self._root.shown(found.path))
            if what in (Shortfall.SYMLINK, Shortfall.NODE):
                many = f"{found.count} {what.value}{'s' if found.count > 1 else ''}"
                why = f": {reason}" if found.error else ""
                text = f"{many} could not be made, such as {path}{why}; the file system has none"
            else:
                entries = "an entry" if found.count == 1 else f"{found.count} entries"
                text = f"{what.value} of {entries} could not be set, such as {path}: {reason}"
            self._tell(Problem(ExitCode.PARTIAL, found.path, text))
        self._root.storage.shortfalls.clear()

    def remember(self) -> None:
        """Remember what this run learned, if that is not what the type says, or another was remembered."""
        storage = self._root.storage
        if not storage.is_learned:
            return
        facts = storage.facts
        if self._root.reads.fakes:
            if self._learned is None:
                return
            facts = replace(self._learned, syncs=facts.syncs)
        try:
            key = mount_key(self._root.fileno())
        except (OSError, FileError):
            return
        if facts != facts_by_type(self._root) or self._catalog.facts_of(key) is not None:
            self._catalog.remember_facts(key, facts)


def _joined(words: list[str]) -> str:
    """Return the words as a list in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def check_named(option: str, text: bytes) -> None:
    """Raise UsageError if a component of the path `text` that `option` names stands for a reserved name."""
    component = refused_component(text)
    if component is not None:
        raise UsageError(
            f"{option}={printable(text)}: expected a directory of yours, found a name that rdc keeps for"
            f" itself ({printable(component)}); name another one"
        )


def check_opened(option: str, root: Root) -> None:
    """Raise TrustError, and release `root`, if it is a directory that only rdc works in, or lies in one."""
    if lies_in_own_directory(root.fileno()):
        shown = printable(root.label)
        root.release()
        raise TrustError(f"{option}: {shown} lies in a directory that rdc keeps for itself; name another one")


def open_named(
    option: str, directory: bytes, at: bytes, site: Site, *, create: bool = False, writable: bool = False
) -> Root:
    """Open the directory that `option` names, relative to the one at the path `at`. `create`: a missing last
    component is made, with mode 0700. Raises RdcError."""
    check_named(option, directory)
    path = site.beside(at, directory)
    if create:
        check_above(option, path, site)
    root = site.open(path, create=create, writable=writable, mode=0o700)
    check_opened(option, root)
    return root


def check_above(option: str, path: bytes, site: Site) -> None:
    """Raise TrustError if a directory that is made at `path` would lie in one that only rdc works in."""
    while not site.has_directory(path):
        above = os.path.dirname(path.rstrip(b"/")) or b"."
        if above == path:
            return
        path = above
    root = site.open(path)
    check_opened(option, root)
    root.release()


def keeps_owner(options: SyncOptions) -> bool:
    """Return whether this side, as the destination, sets uid and gid."""
    return os.geteuid() == 0 or options.super_user if options.owner is None else options.owner


def asked_attributes(options: SyncOptions) -> AttributeKinds:
    """Return the kinds of extended attributes that the options ask to preserve."""
    found = AttributeKinds.ACL if options.acls else AttributeKinds.NONE
    found |= AttributeKinds.ACCESS_TIME if options.atimes else AttributeKinds.NONE
    return found | AttributeKinds.USER | AttributeKinds.ROOT if options.xattrs else found


def asked_metadata(options: SyncOptions) -> Preserved:
    """Return what the options ask this side, as the destination, to preserve."""
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
    """Return the message for attributes that the user asked for and one side cannot preserve; None if there
    are none."""
    lost = asked_attributes(options) & ~preserved.attributes
    kinds = (
        (AttributeKinds.ACL, "ACLs"),
        (AttributeKinds.USER, "extended attributes"),
        (AttributeKinds.ACCESS_TIME, "access times"),
    )
    names = " and ".join([name for kind, name in kinds if kind in lost])
    return f"{names} are not synced: the file system at one end keeps none" if names else None


def keeps(path: bytes, options: SyncOptions, site: Site = ANYWHERE, *, catalog: SignatureStore) -> Preserved:
    """Return what this side can preserve of entries at `path`, before the session makes anything there.

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
        found = known_facts(root, catalog, fakes=options.fake_super).keeps
        kinds = AttributeKinds.NONE
        if preserved.attributes:
            from rdc.files.facts.xattrs import attribute_kinds_of

            kinds = attribute_kinds_of(root, fakes=options.fake_super)
            if not preserved.owner or options.fake_super:
                # Setting a capability is as powerful as setting an owner, so both need the same permission.
                kinds &= ~AttributeKinds.ROOT
    finally:
        root.close()
    owner = found.owner or bool(options.owner)
    return preserved.also(replace(found, owner=owner, attributes=found.attributes & kinds))


def wants_listing(path: bytes, options: SyncOptions, site: Site = ANYWHERE) -> bool:
    """Return whether to ask for the source's whole listing at once.

    That pays if all entries are new. It is necessary where each entry is looked at: manifests do not cover
    contents, and equal parts of them are not compared.
    """
    return options.visits_all or site.is_bare(path)


class DestinationRoot(Record):
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
        """Close all descriptors."""
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
    """Open the place that `path` means for the tree that `start` announces, by rsync's rules.
    `described`: what this side can preserve there. `has_top`: the tree's root directory takes part itself.
    `knows_nodes`: the remote side knows special files by their kinds. `munges`: new symlinks lead nowhere.

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
    if start.store is not None and not options.dry_run:
        writes = replace(writes, singly=True)  # what lists waits for the packs
    if options.fake_super:
        from rdc.files.root.faked_root import FakedRoot

        faked = FakedRoot(os.dup(root.fileno()), root.label, root.reads, writes)
        root.release()
        root = faked
    else:
        root = root.having(writes=writes)
    dirlinks = None
    if options.keep_dirlinks:
        from rdc.session.trees.destination_options import follow_directory_links

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
        from rdc.session.trees.destination_options import open_alternates

        option = options.alternates.option
        for directory in options.alternates.directories:
            check_named(option, directory)
        opened = open_alternates(
            options.alternates, options, lambda directory: open_named(option, directory, here, site)
        )
        return replace(destination_root, alternates=opened)
    return destination_root


def _read_policy(start: Start, options: SyncOptions, *, knows_nodes: bool, munges: bool) -> ReadPolicy:
    """Return how a destination is shown and read."""
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
    """Return how a destination is written; the rest is as in `writes`. Special files are those that this
    process may make: devices are made by root alone, as in rsync."""
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
    """Return `root` as it keeps temporaries and parts of files where the options say. Raises UsageError,
    RdcError."""
    if options.temp_dir and not options.dry_run:
        root = _writing_first_to(root, path, options.temp_dir, site)
    if options.partial_dir and not options.dry_run:
        root = _keeping_partials(root, path, options.partial_dir, site)
    return root


def _writing_first_to(root: Root, path: bytes, directory: bytes, site: Site) -> Root:
    """Return `root` as it writes new content in another directory first. No link is followed to one within
    DST: its peers might have made it."""
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
    """Return `root` as it keeps the parts of unfinished files in another directory. Raises UsageError,
    RdcError."""
    from rdc.files.replace.partial_directory import PartialDirectory

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
    """Return `root` as it keeps what undoing the run needs, if that is asked for."""
    if options.keep_undo is None or options.dry_run:
        return root
    from rdc.undoing.keeper import SyncUndo

    undo = SyncUndo(root, options.keep_undo, fsync=options.is_durable)
    return root.having(writes=replace(root.writes, undo=undo))


def _keeping_backups(root: Root, path: bytes, backup: Backup, options: SyncOptions, site: Site) -> Root:
    """Return `root` as it keeps backups. The backup directory is made when the first entry is kept."""
    from rdc.files.names.backups import Backups

    if backup.directory is None:
        backups = Backups(root, backup.suffix, fsync=options.is_durable)
        return root.having(writes=replace(root.writes, backups=backups))
    check_named("--backup-dir", backup.directory)
    directory = os.path.join(path, backup.directory)
    try:
        check_above("--backup-dir", directory, site)
        top = site.open(directory, writable=not options.dry_run) if site.has_directory(directory) else None
        if top is not None:
            check_opened("--backup-dir", top)
        make_top = partial(_make_path, directory, site, 0o700)
        backups = Backups(root, backup.suffix, fsync=options.is_durable, top=top, make_top=make_top)
    except FileError as error:
        raise RdcError(str(error), code=ExitCode.FILE_IO) from error
    return root.having(writes=replace(root.writes, backups=backups))


def _make_path(path: bytes, site: Site, mode: int) -> Root:
    """Make a directory and what is missing above it, all with `mode` less the umask."""
    end = path.find(b"/", 1)
    while end >= 0:
        if not site.has_directory(path[:end]):
            site.open(path[:end], create=True, mode=mode).release()
        end = path.find(b"/", end + 1)
    return site.open(path, create=True, writable=True, mode=mode)


def _existing(path: bytes, site: Site) -> bytes:
    """Return `path`, or the nearest path above it with anything there. It may be no directory."""
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
