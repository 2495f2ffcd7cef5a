"""The changes of one directory's entries: which are allowed, and how each is made."""

from __future__ import annotations

import stat
from collections import OrderedDict
from contextlib import suppress
from operator import attrgetter

from rdc.errors import ExitCode, FileError, ProtocolError, printable
from rdc.files.base.metadata import Shortfall, read_acl
from rdc.files.base.paths import join, refused_rows
from rdc.files.base.taking_names import is_refused
from rdc.lean.records import Record, replace
from rdc.model.entries import DEVICES, LINKED, NODES, Identity, Kind, Listing, Metadata, PackedInodes
from rdc.model.options import leads_outside
from rdc.plan.compare import (
    Change,
    Comparison,
    Decision,
    Difference,
    itemize,
    name_clashes,
    time_limits,
    unchanged_code,
    with_clamped_times,
    with_equal_times,
)
from rdc.progress import ItemChanged, Problem
from rdc.session.destination.deletion import BlockedEntries, ExtraneousEntries, Unarrived, writing_code
from rdc.session.transfer.destination import Destination, refused_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence, Set

    from rdc.files.root.root import Root
    from rdc.model.preserved import Preserved
    from rdc.model.sync import SyncOptions
    from rdc.session.runtime.commands import EventRelay
    from rdc.session.transfer.transfers import Transfers
    from rdc.session.trees.destination_options import SkippedEntries
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Manifest


class ApplyingContext(Record):
    """A destination while it changes, and the parts that take each kind of change."""

    at: Destination
    transfers: Transfers
    extraneous: ExtraneousEntries
    """Collects the entries that the source does not have."""
    unarrived: Unarrived
    """Knows which new entries did not arrive."""
    blocked: BlockedEntries
    """Takes entries with a directory in their place."""
    links: LinkTable | None
    """The source's hard links, which grow as directories arrive. Nothing else is done for a file that becomes
    a hard link. None: hard links are not preserved."""
    xattrs: WantedXattrs | None
    """Learns which entries differ in anything but attributes. None: attributes are not preserved."""
    skipped: SkippedEntries | None
    """Collects the entries that options and reserved names leave alone. None: nobody asks."""


def report_unchanged(
    directory: ComparedDirectory, comparison: Comparison, options: SyncOptions, events: EventRelay
) -> None:
    """Report the entries in which `comparison`, of the directory's listings, found no difference.

    An entry that an option skips is not among them, as in rsync.
    """
    listing = directory.listing
    busy = {decision.row for decision in comparison.decisions}
    busy.update(comparison.touched, comparison.checked)
    targets = listing.links()
    for row, kind in enumerate(listing.kinds):
        is_directory = kind == Kind.DIRECTORY
        skipped = (options.ignore_existing and not is_directory) or (
            kind == Kind.FILE and options.is_left_for_size(listing.sizes[row])
        )
        if options.safe_links and row in targets:
            skipped = skipped or leads_outside(targets[row], join(directory.path, listing.names[row]))
        if row not in busy and not skipped and kind != Kind.SPECIAL:
            path = join(directory.path, listing.names[row])
            code = unchanged_code(kind)
            events.report(ItemChanged(code, path + b"/" if is_directory else path, targets.get(row)))


# Finds the hard links that exist already, a directory at a time. In most runs most of them do.

OPENED_DIRECTORIES = 16
"""Directories whose listings stay in memory. Files come in walk order, and the first names of neighbouring
files mostly lie in one directory, too."""


class _Opened(Record):
    """A directory as the source has it and as the destination has it."""

    first: int
    """Its first row in the manifest."""
    wanted: Listing
    existing: Listing
    inodes: PackedInodes
    rows: Mapping[bytes, int] | None
    """Rows in `existing` by name. None: both listings have the same names, so rows are equal."""

    def row(self, row: int) -> int | None:
        """Return the row in `existing` of a manifest row; None if there is no such entry."""
        at = row - self.first
        return at if self.rows is None else self.rows.get(self.wanted.names[at])


class ExistingLinks:
    """Compares a table of hard links with the destination."""

    def __init__(self, root: Root, entries: Manifest, preserved: Preserved) -> None:
        self._root = root
        self._entries = entries
        self._preserved = preserved
        self._opened: OrderedDict[int, _Opened | None] = OrderedDict()

    def missing(self, table: LinkTable) -> Iterator[tuple[int, int]]:
        """Yield the pairs (file, first name) that are not hard links to the wanted file.

        Size and mtime decide whether the file is the wanted one. Raises ProtocolError for entries that are
        neither files nor special files, or of two kinds.
        """
        kinds = self._entries.kinds
        if table.files[-1] >= len(kinds):
            raise ProtocolError(f"a hard link at entry {table.files[-1]}, which was not listed")
        number = 0
        for directory, files in self._entries.runs(table.files):
            here = self._directory(directory)
            for file in files:
                first = table.firsts[number]
                number += 1
                if kinds[file] != kinds[first] or kinds[file] not in LINKED:
                    raise ProtocolError(
                        f"a hard link between entries {first} and {file}, which are no two files of a kind"
                    )
                there = self._directory(self._entries.directory_of(first))
                if here is None or there is None or not self._same(here, file, there, first):
                    yield file, first

    def _same(self, here: _Opened, file: int, there: _Opened, first: int) -> bool:
        """Return whether two names are one file at the destination, with the wanted size and mtime."""
        row, other = here.row(file), there.row(first)
        if row is None or other is None or here.inodes.identity(row) != there.inodes.identity(other):
            return False
        at, wanted, existing = first - there.first, there.wanted, there.existing
        alike = wanted.kinds[at] == existing.kinds[other] and wanted.sizes[at] == existing.sizes[other]
        return alike and (
            not self._preserved.is_timed(wanted.kinds[at])
            or self._preserved.same_time(wanted.mtimes[at], existing.mtimes[other])
        )

    def _directory(self, number: int) -> _Opened | None:
        """Return the directory with this manifest number; None if it cannot be read."""
        if number in self._opened:
            self._opened.move_to_end(number)
            return self._opened[number]
        found = self._opened[number] = self._open(number)
        if len(self._opened) > OPENED_DIRECTORIES:
            self._opened.popitem(last=False)
        return found

    def _open(self, number: int) -> _Opened | None:
        try:
            found = self._root.listed(self._entries.directories[number])
        except FileError:
            return None
        wanted, existing = self._entries.listing(number), found.listing.unpacked()
        alike = wanted.names == existing.names
        rows = None if alike else {name: row for row, name in enumerate(existing.names)}
        return _Opened(self._entries.firsts[number], wanted, existing, found.inodes, rows)


# Finds entries that cannot both be at the destination, because its file system takes their names for one.
#
# None of them is made, changed or removed. Otherwise one would take the place of the other, and two
# directories would become one.


class Clash(Record):
    """Names that are one for the destination's file system."""

    names: tuple[bytes, ...]
    """In the order of the source; then those that only the destination has."""
    rows: tuple[int, ...]
    """Rows of the source's listing."""
    kept: tuple[int, ...]
    """Rows of the destination's listing that the source does not have."""

    def refusal(self, name: bytes, label: bytes, *, names_all: bool = True) -> str:
        """Say why `name`, shown as `label`, is left alone. `names_all`: names that only the destination has
        are told."""
        told = self.names if names_all else self.names[: len(self.rows)]
        others = " and ".join(f"'{_distinct(other, name)}'" for other in told if other != name)
        others = others or "another entry"
        return (
            f"{printable(label)}: cannot be here beside {others}: expected names of their own, found that "
            "this file system takes them for one; rename one of them, then run again"
        )


def clashes(
    root: Root,
    path: bytes,
    listing: Listing,
    existing: Listing,
    extra: Sequence[int],
    alike: Sequence[Sequence[int]],
    *,
    dry_run: bool,
) -> list[Clash]:
    """Return the clashes of a directory. `extra`: rows of what the source does not have. `alike`: groups of
    rows of the source's listing, and then of `extra`, whose names may be one.

    A dry run asks only about names that are there, because it writes nothing.
    """
    count, there = len(listing), frozenset(existing.names)

    def name_of(row: int) -> bytes:
        return listing.names[row] if row < count else existing.names[extra[row - count]]

    found = []
    for rows in alike:
        listed = [row for row in rows if name_of(row) in there]
        new = [row for row in rows if name_of(row) not in there]
        for group in _groups(root, path, listed, new, name_of, dry_run=dry_run):
            clash = Clash(
                tuple(name_of(row) for row in group),
                tuple(row for row in group if row < count),
                tuple(extra[row - count] for row in group if row >= count),
            )
            if clash.rows:
                found.append(clash)
    return found


def _groups(
    root: Root,
    path: bytes,
    listed: Sequence[int],
    new: Sequence[int],
    name_of: Callable[[int], bytes],
    *,
    dry_run: bool,
) -> list[list[int]]:
    """Return the rows in groups of two or more that are one. `listed`: what the directory lists under its
    very name, so each has its own. `new`: the others."""
    from rdc.files.names.entry_names import inode_at, names_that_are_one  # few directories need it

    inodes = {inode_at(root, path, name_of(row)): row for row in reversed(listed)}
    groups: dict[int, list[int]] = {}
    absent = []
    for row in new:
        inode = inode_at(root, path, name_of(row))
        if inode is None:
            absent.append(row)
        elif listed:
            # Some file systems give each spelling an inode number of its own.
            groups.setdefault(inodes.get(inode, listed[0]), []).append(row)
    found = [sorted([row, *others]) for row, others in groups.items()]
    if len(absent) > 1 and not dry_run:
        names = [name_of(row) for row in absent]
        found += [[absent[at] for at in group] for group in names_that_are_one(root, path, names)]
    return found


def _distinct(name: bytes, other: bytes) -> str:
    """Return `name` for a message, as bytes if it looks like `other`."""
    from unicodedata import normalize

    one, two = (normalize("NFKC", text.decode("utf-8", "replace")) for text in (name, other))
    return repr(name)[2:-1] if one == two else printable(name)


class ComparedDirectory(Record):
    """One directory under comparison."""

    path: bytes
    first: int
    """Row of its first entry in the source's manifest."""
    listing: Listing
    """The entry at the source."""
    existing: Listing
    """The entry at the destination."""

    def with_equal_times(self, options: SyncOptions) -> ComparedDirectory:
        """Return this directory with the times that --modify-window takes for the existing ones."""
        listing = with_equal_times(self.listing, self.existing, options)
        return self if listing is self.listing else replace(self, listing=listing)

    def with_clamped_times(
        self, root: Root, preserved: Preserved
    ) -> tuple[ComparedDirectory, frozenset[int]]:
        """Return this directory with the times that both file systems can hold, and the rows of the files
        whose content has to be compared for that."""
        clamped = with_clamped_times(
            self.listing, self.existing, lambda: time_limits(root.file_system_type(self.path)), preserved
        )
        if clamped.wanted is self.listing:
            return self, clamped.files
        return replace(self, listing=clamped.wanted), clamped.files


class AllowedChanges:
    """Decides which differences of a directory a run may act on."""

    def __init__(self, context: ApplyingContext) -> None:
        self._root = context.at.root
        self._options = context.at.options
        self._extraneous = context.extraneous
        self._events = context.at.events
        self._storage = context.at.storage
        self._links = context.links
        self._skipped = context.skipped
        self._narrows = context.at.options.narrows
        self._uses_content = context.at.uses_content

    def narrow(self, directory: ComparedDirectory, comparison: Comparison) -> tuple[Comparison, Set[int]]:
        """Remove the changes that options, reserved or clashing names, hard links or an append-only root
        forbid.

        Also returns the rows of directories that are lost by that.
        """
        path, first, listing = directory.path, directory.first, directory.listing
        lost: Set[int] = frozenset()
        if not NODES.isdisjoint(listing.kinds):
            comparison = self._without_forbidden_nodes(directory, comparison)
        if self._narrows:
            comparison, lost = self._without_skipped(directory, comparison)
        if reserved := refused_rows(listing.names):
            refused = self._refuse_reserved(path, first, listing, reserved)
            comparison, lost = without_rows(comparison, refused), lost | refused
        # Names that both sides have do not clash: the file system keeps them apart.
        makes = min(map(attrgetter("existing_row"), comparison.decisions), default=0) < 0
        if makes and (
            alike := name_clashes(
                (*listing.names, *map(directory.existing.names.__getitem__, comparison.extra))
            )
        ):
            comparison, clashing = self._without_clashes(directory, comparison, alike)
            lost = lost | clashing
        if self._links is not None:
            comparison = self._without_links(comparison, first, listing, self._links)
        if self._root.append_only:
            comparison, blocked = self._only_new(path, listing, comparison)
            lost = lost | blocked
        return comparison, lost

    def _without_skipped(
        self, directory: ComparedDirectory, comparison: Comparison
    ) -> tuple[Comparison, Set[int]]:
        """Remove the changes that options such as --update and --existing skip; see `narrow`."""
        from rdc.plan.skip_options import narrow

        narrowed = narrow(
            comparison,
            directory.listing,
            directory.existing,
            options=self._options,
            preserved=self._storage.preserved,
            path=directory.path,
        )
        if narrowed.skipped:
            self._extraneous.note_difference()
        if self._skipped is not None:
            self._skipped.add(directory.first + row for row in narrowed.left)
        return narrowed.comparison, narrowed.without

    def _without_forbidden_nodes(self, directory: ComparedDirectory, comparison: Comparison) -> Comparison:
        """Report the fifos, sockets and devices that this side does not make, and remove their changes."""
        listing, made = directory.listing, self._root.writes.nodes
        rows = {row for row, kind in enumerate(listing.kinds) if kind in NODES and kind not in made}
        for row in sorted(rows):
            entry = join(directory.path, listing.names[row])
            what = "device" if listing.kinds[row] in DEVICES else "fifo or socket"
            text = f"{printable(entry)}: skipped, no {what} is made on the receiving side"
            self._events.report(Problem(ExitCode.OK, entry, text))
        if rows and self._skipped is not None:
            self._skipped.add(directory.first + row for row in rows)
        return without_rows(comparison, rows) if rows else comparison

    def _refuse_reserved(
        self, path: bytes, first: int, listing: Listing, rows: Sequence[int]
    ) -> frozenset[int]:
        """Report the entries in `rows`, whose names rdc reserves, and return the rows.

        Nothing is made, changed or linked under such a name or below such a directory.
        """
        for row in rows:
            entry = join(path, listing.names[row])
            self._events.report(Problem(ExitCode.PARTIAL, entry, refused_name(entry)))
        if self._skipped is not None:
            self._skipped.add(first + row for row in rows)
        return frozenset(rows)

    def _without_clashes(
        self, directory: ComparedDirectory, comparison: Comparison, alike: Sequence[Sequence[int]]
    ) -> tuple[Comparison, Set[int]]:
        """Report the entries whose names are one here, and return what remains and their rows.

        `alike`: groups of rows that may be; those of `comparison.extra` count on after the source's.
        """
        clashing = clashes(
            self._root,
            directory.path,
            directory.listing,
            directory.existing,
            comparison.extra,
            alike,
            dry_run=self._options.dry_run,
        )
        refused = frozenset(row for clash in clashing for row in clash.rows)
        kept = {row for clash in clashing for row in clash.kept}
        for clash in clashing:
            for row in clash.rows:
                name = directory.listing.names[row]
                entry = join(directory.path, name)
                said = clash.refusal(name, self._root.shown(entry), names_all=self._uses_content)
                self._events.report(Problem(ExitCode.PARTIAL, entry, said))
        if self._skipped is not None:
            self._skipped.add(directory.first + row for row in refused)
        extra = tuple(row for row in comparison.extra if row not in kept)
        return without_rows(replace(comparison, extra=extra), refused), refused

    def _without_links(
        self, comparison: Comparison, first: int, listing: Listing, links: LinkTable
    ) -> Comparison:
        """Remove the changes of files that become hard links to another file."""
        skipped = self._skipped
        rows = {
            links.files[at] - first
            for at in links.between(first, first + len(listing))
            if skipped is None or skipped.is_linked(links.files[at], links.firsts[at])
        }
        return without_rows(comparison, rows) if rows else comparison

    def _only_new(self, path: bytes, listing: Listing, comparison: Comparison) -> tuple[Comparison, Set[int]]:
        """Below an append-only root: the changes that are allowed, and the rows of directories that an entry
        of another kind blocks. Each entry that differs and stays is reported once.

        A directory's mtime does not count as a difference here: each new entry changes it, and rdc does not
        set it.
        """
        possible, blocked = [], set()
        refused = set(comparison.touched)
        for decision in comparison.decisions:
            is_directory = listing.kinds[decision.row] == Kind.DIRECTORY
            if decision.change in (Change.CREATE, Change.CHECK):
                possible.append(decision)
            elif not (is_directory and decision.difference == Difference.TIME):
                refused.add(decision.row)
                if is_directory and decision.change is Change.REPLACE:
                    blocked.add(decision.row)
        for row in sorted(refused):
            self.refuse(join(path, listing.names[row]))
        return Comparison(tuple(possible), comparison.extra, (), comparison.checked), blocked

    def refuse(self, path: bytes) -> None:
        """Report that the append-only root does not let the entry at `path` change."""
        error = self._root.append_only_refusal(path, "change it")
        self._events.report(Problem(error.code, path, str(error)))


def without_rows(comparison: Comparison, rows: Set[int]) -> Comparison:
    """Remove the changes of these rows of the source's listing."""
    return Comparison(
        tuple(decision for decision in comparison.decisions if decision.row not in rows),
        comparison.extra,
        tuple(row for row in comparison.touched if row not in rows),
        tuple(row for row in comparison.checked if row not in rows),
    )


# Narrows the permissions of directories before anything lands in them; see CONSISTENCY.md.

_ACCESS = int(Difference.PERMISSIONS | Difference.OWNER | Difference.GROUP)
"""The differences that change who may use an entry."""


class DirectoryPermissions:
    """The permissions that directories have while a run works in them.

    Row numbers are rows of the source's manifest; row -1 is the root directory of the tree.
    """

    def __init__(
        self, root: Root, events: EventRelay, xattrs: WantedXattrs | None, *, owner: bool, dry_run: bool
    ) -> None:
        """`owner`: the run sets owners and groups. `xattrs`: the extended attributes that the source
        announced; None if the run does not preserve any."""
        self._root = root
        self._events = events
        self._xattrs = xattrs
        self._owner = owner
        self._dry_run = dry_run

    def make_directory(self, path: bytes, metadata: Metadata, *, replaces: Identity | None) -> bool:
        """Make a directory that only its owner may use until its contents are there; False on failure.

        `replaces`: the entry of another kind that was listed in its place.
        """
        try:
            if replaces is not None:
                self._root.replace_with_directory(path, 0o700, expected=replaces)
                made = False  # another program may have made it meanwhile
            else:
                made = self._root.make_directory(path, 0o700)
            if not made:
                self._close(path, replace(metadata, mode=stat.S_IRWXU))
        except FileError as error:
            self._events.report(Problem(writing_code(error), path, str(error)))
            return False
        return True

    def _close(self, path: bytes, metadata: Metadata) -> None:
        """Remove every permission of group and others of a directory that is to be as if it was made now."""
        if not self._root.append_only:
            with suppress(FileError):
                self._root.narrow_directory(path, metadata, owner=self._owner)

    def narrow(self, path: bytes, metadata: Metadata) -> None:
        """Remove every permission of an existing directory that `metadata` does not grant.

        The caller does this before anything lands in or below the directory. A directory that this user may
        not change stays as it is; the end of the run reports it. Below an append-only root no existing
        directory changes.
        """
        if self._dry_run or self._root.append_only:
            return
        try:
            chosen = self._root.storage.of_found
            self._root.narrow_directory(path, metadata, owner=self._owner, chosen=chosen)
        except FileError:
            return

    def narrow_if_needed(
        self, row: int, path: bytes, metadata: Metadata, differing: Difference
    ) -> tuple[Metadata, bool]:
        """Narrow an existing directory if it differs in access or gets another ACL.

        Returns the metadata that the directory gets before its ACL, and whether the run has to set them even
        if nothing in the directory changes. Does nothing below an append-only root.
        """
        if self._root.append_only:
            return metadata, False
        before_acl = self._before_acl(row, path, metadata)
        if before_acl is not metadata or int(differing) & _ACCESS:
            self.narrow(path, before_acl)
        return before_acl, before_acl is not metadata

    def guarded(self, row: int, metadata: Metadata) -> Metadata:
        """Return the metadata for an entry that has no ACL yet: its mode grants nothing that the ACL will
        deny."""
        if self._xattrs is None:
            return metadata
        return replace(metadata, mode=self._xattrs.guarded_mode(row, metadata.mode))

    def set_at_once(self, path: bytes, metadata: Metadata) -> None:
        """Below an append-only root, gives a new directory its mode and owner now.

        No later run could set them if this one is interrupted. Elsewhere does nothing: the end of the run
        sets them.
        """
        if self._root.append_only:
            usable = replace(metadata, mode=metadata.mode | 0o700)
            try:
                self._root.set_metadata(
                    path, Kind.DIRECTORY, usable, owner=self._owner, chosen=self._root.storage.of_made
                )
            except FileError as error:
                self._events.report(Problem(writing_code(error), path, str(error)))

    def _before_acl(self, row: int, path: bytes, metadata: Metadata) -> Metadata:
        """Return the metadata for an existing entry before it gets its ACL; `metadata` itself if the ACL
        stays."""
        xattrs = self._xattrs
        if xattrs is None or not xattrs.guards or not self._has_other_acl(xattrs, row, path):
            return metadata
        # An existing ACL uses the group bits as its mask; without them it admits nobody.
        return self.guarded(row, replace(metadata, mode=metadata.mode & ~stat.S_IRWXG))

    def _has_other_acl(self, xattrs: WantedXattrs, row: int, path: bytes) -> bool:
        """Return whether an existing entry's access ACL differs from the wanted one. A missing ACL counts
        too."""
        wanted = xattrs.acl_of(row)
        if wanted is None:
            return False
        try:
            directory, name = self._root.locate(path)
            return read_acl(directory.fd, name) != wanted
        except (OSError, FileError):
            return False  # the first step that works in the directory reports the error


class EntryChanges:
    """Changes to entries that are not directories. Files are named by their rows in the source's manifest."""

    def __init__(self, context: ApplyingContext, permissions: DirectoryPermissions) -> None:
        self._root = context.at.root
        self._options = context.at.options
        self._manifest = context.at.manifest
        self._landing = context.at.landing
        self._transfers = context.transfers
        self._events = context.at.events
        self._permissions = permissions
        self._owner = context.at.preserved.owner
        self._blocked = context.blocked
        self._extraneous = context.extraneous

    def start(
        self,
        file: int,
        path: bytes,
        listing: Listing,
        existing: Listing,
        link_targets: Mapping[int, bytes],
        decision: Decision,
        bases: tuple[bytes, ...],
    ) -> bool:
        """Start what one file or symlink needs. Returns True if that touches its directory.

        `bases`: other local files that may have the new content.
        """
        kind, there = listing.kinds[decision.row], decision.existing_row
        if decision.change is Change.REPLACE and existing.kinds[there] == Kind.DIRECTORY:
            self._wait_for_way(file, path, decision)
            return True
        if kind == Kind.SYMLINK:
            target, metadata = link_targets[decision.row], listing.metadata(decision.row)
            return self.change_symlink(path, target, metadata, decision, self._landing.listed.of(file))
        if kind in NODES:
            number, metadata = listing.sizes[decision.row], listing.metadata(decision.row)
            listed = self._landing.listed.of(file)
            return self.change_node(path, Kind(kind), number, metadata, decision, listed)
        if decision.change is Change.METADATA:
            metadata = self._permissions.guarded(file, listing.metadata(decision.row))
            listed = self._landing.listed.of(file)
            if listed is not None:
                self._landing.set_metadata(path, metadata, decision, listed)
            return False
        if decision.change is Change.CHECK and self._options.rewrites:
            decision = replace(decision, change=Change.CONTENT)
        self._landing.decide(file, decision)
        self._route(file, path, listing.sizes[decision.row], decision, bases)
        return True

    def _route(self, file: int, path: bytes, size: int, decision: Decision, bases: tuple[bytes, ...]) -> None:
        """Hand a file whose content may have to change to Transfers."""
        if decision.change is Change.CHECK:
            self._transfers.check((file,))
        elif decision.change is not Change.CONTENT:
            self._transfers.create(file, path, size, bases)
        elif self._options.dry_run:
            self._landing.rehearse(file)
        elif Difference.SIZE in decision.difference:
            self._transfers.update(file, size, bases)
        else:
            self._transfers.touch((file,), size)

    def start_many(
        self, first: int, listing: Listing, touched_rows: Sequence[int], checked_rows: Sequence[int]
    ) -> None:
        """Start what many files of one directory need that need the same.

        `first`: row of the directory's first entry in the manifest. `touched_rows`: files that differ only in
        their mtimes. `checked_rows`: files whose contents are compared although nothing differs.
        """
        if touched_rows:
            touched = [first + row for row in touched_rows]
            if self._options.checksum:
                self._landing.decide_many(touched, Change.CHECK, Difference.TIME)
                self._transfers.check(touched)
            else:
                self._landing.decide_many(touched, Change.CONTENT, Difference.TIME)
                self._transfers.touch(touched, sum([listing.sizes[row] for row in touched_rows]))
        if checked_rows:
            self._start_checks([first + row for row in checked_rows], listing, checked_rows)

    def _start_checks(self, files: Sequence[int], listing: Listing, rows: Sequence[int]) -> None:
        """Start the comparison of files whose content alone may differ; `rows` are theirs in `listing`."""
        if not self._options.rewrites:
            self._landing.decide_many(files, Change.CHECK, Difference.NONE)
            self._transfers.check(files)
            return
        self._landing.decide_many(files, Change.CONTENT, Difference.NONE)
        if self._options.dry_run:
            for file in files:
                self._landing.rehearse(file)
        else:
            self._transfers.touch(files, sum([listing.sizes[row] for row in rows]))

    def change_symlink(
        self, path: bytes, target: bytes, metadata: Metadata, decision: Decision, listed: Identity | None
    ) -> bool:
        """Replace a symlink or set its metadata. Returns True if that touches its directory. `listed`: what
        was at its path; None for nothing."""
        replaced = decision.change is not Change.METADATA
        if replaced and self._is_known_unmade(Kind.SYMLINK, path):
            return False
        if not self._options.dry_run:
            try:
                owner, chosen = self._owner, self._root.storage.of_found
                if replaced:
                    self._root.replace_symlink(path, target, metadata, owner=owner, expected=listed)
                elif listed is not None:
                    self._root.set_metadata(
                        path, Kind.SYMLINK, metadata, owner=owner, expected=listed, chosen=chosen
                    )
            except FileError as error:
                if not (replaced and self._cannot_exist(Kind.SYMLINK, path, error)):
                    self._events.report(Problem(writing_code(error), path, str(error)))
                return replaced
        new = decision.change in (Change.CREATE, Change.REPLACE)
        if replaced and not new:
            # A new link without the source's mtime has another one, as in rsync.
            timed = Difference.TIME if Kind.SYMLINK in self._root.reads.untimed else Difference.NONE
            decision = Decision(
                decision.change,
                decision.row,
                decision.existing_row,
                decision.difference | Difference.CHECKSUM | timed,
            )
        code = itemize(Kind.SYMLINK, decision, transferred=replaced, new=new)
        self._landing.report(ItemChanged(code, path, target))
        return replaced

    def change_node(
        self,
        path: bytes,
        kind: Kind,
        number: int,
        metadata: Metadata,
        decision: Decision,
        listed: Identity | None,
    ) -> bool:
        """Replace a fifo, socket or device or set its metadata. Returns True if that touches its directory.
        `listed`: as in `change_symlink`."""
        replaced = decision.change is not Change.METADATA
        if replaced and self._is_known_unmade(Kind.SPECIAL, path):
            return False
        new = decision.change in (Change.CREATE, Change.REPLACE)
        if not self._options.dry_run:
            try:
                owner, chosen = self._owner, self._root.storage.of_found
                if replaced:
                    self._root.replace_node(path, kind, number, metadata, owner=owner, expected=listed)
                elif listed is not None:
                    self._root.set_metadata(
                        path, Kind.SPECIAL, metadata, owner=owner, expected=listed, chosen=chosen
                    )
            except FileError as error:
                if not (replaced and self._cannot_exist(Kind.SPECIAL, path, error)):
                    self._events.report(Problem(writing_code(error), path, str(error)))
                return replaced
        self._landing.report(ItemChanged(itemize(kind, decision, transferred=replaced, new=new), path))
        return replaced

    def _is_known_unmade(self, kind: Kind, path: bytes) -> bool:
        """Note an entry that an earlier run found not to be possible here: some file systems make something
        else before they refuse. A run that writes anything finds it out again, and tries."""
        storage = self._root.storage
        if storage.is_learned or kind not in storage.facts.keeps.unmade:
            return False
        storage.note(self._shortfall(kind), path, 0)
        return True

    @staticmethod
    def _shortfall(kind: Kind) -> Shortfall:
        return Shortfall.SYMLINK if kind is Kind.SYMLINK else Shortfall.NODE

    def _cannot_exist(self, kind: Kind, path: bytes, error: FileError) -> bool:
        """Note an entry that could not be made, if the file system has none of its kind and the error tells
        of nothing else."""
        storage, cause = self._root.storage, error.__cause__
        if kind not in storage.facts.keeps.unmade or not isinstance(cause, OSError) or not is_refused(cause):
            return False
        storage.note(self._shortfall(kind), path, cause.errno or 0)
        return True

    def _wait_for_way(self, file: int, path: bytes, decision: Decision) -> None:
        """Have an entry wait that has a directory in its place. The content of a file is fetched
        meanwhile."""
        entry, listed = self._manifest.entry(file), self._landing.listed.of(file)
        self._extraneous.note_in_way(path)
        if entry.kind == Kind.SYMLINK:
            target, metadata = entry.target, entry.metadata
            self._blocked.add(path, lambda: self.change_symlink(path, target, metadata, decision, listed))
        elif entry.kind in NODES:
            kind, number, metadata = Kind(entry.kind), entry.size, entry.metadata
            self._blocked.add(path, lambda: self.change_node(path, kind, number, metadata, decision, listed))
        elif self._options.dry_run or not self._options.removes:
            # Nothing removes what is in the directory. If nothing is, the content is fetched in the end.
            size = entry.size

            def create() -> None:
                self._landing.decide(file, decision)
                self._transfers.create(file, path, size)

            self._blocked.add(path, create)
        else:
            self._landing.decide(file, decision)
            self._landing.hold(file, path)
            self._transfers.create(file, path, entry.size)
            self._blocked.add(path, lambda: self._landing.put(path), lambda: self._landing.holds(path))
