"""Steps that few runs need: a guard that waits, and after all contents have arrived hard links, extended
attributes, missing arguments and confirmations.
"""

from __future__ import annotations

import errno
import os
from itertools import islice

from rdc.errors import (
    ExitCode,
    FileChangedError,
    FileError,
    OutOfSpaceError,
    ProtocolError,
    RdcError,
    printable,
)
from rdc.files.base.metadata import identity_of
from rdc.files.base.paths import join
from rdc.files.base.taking_names import sync_file_systems
from rdc.files.facts.file_facts import directory_mark
from rdc.files.facts.xattrs import (
    read_directory_attributes,
    read_entry_attributes,
    write_entry_access_time,
    write_entry_attributes,
)
from rdc.files.names.entry_names import Linked, link_file, make_durable
from rdc.files.root.listing_view import is_node
from rdc.lean.records import Record
from rdc.limits import FILES_PER_MESSAGE, GUARDED_ENTRIES
from rdc.model.entries import NODES, Identity, Kind, Listing, Metadata
from rdc.model.options import leads_outside
from rdc.model.preserved import (
    ACCESS_ACL,
    ACCESS_TIME,
    DEFAULT_ACL,
    UNREADABLE,
    AttributeKinds,
    Attributes,
    Preserved,
    pack_attributes,
    unpack_attributes,
)
from rdc.model.runs import stopped_text
from rdc.plan.compare import (
    Change,
    Comparison,
    Decision,
    Difference,
    attributes_code,
    compare,
    difference,
    itemize,
    linking_code,
    with_equal_times,
)
from rdc.plan.ways import WHOLE_BYTES
from rdc.progress import ItemChanged, Problem
from rdc.protocol.messages import Landed, Removed
from rdc.session.destination.deletion import Deletion, writing_code
from rdc.session.destination.directory_changes import AnnouncedDirectory, DirectoryChanges, LateDirectories
from rdc.session.destination.entry_changes import ApplyingContext, ComparedDirectory, ExistingLinks
from rdc.session.destination.selected import ChosenDirectories
from rdc.session.runtime.commands import Conversation, EventRelay, Receive, Send
from rdc.session.transfer.commits import Extraneous

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from collections.abc import Set as AbstractSet

    from rdc.files.root.root import Root
    from rdc.model.sync import SyncOptions
    from rdc.session.trees.destination_root import DestinationStorage
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable
    from rdc.tree.manifest import Entry, Manifest


# --remove-source-files at the destination: tells the source which of its entries are here and durable.

UNANSWERED = 64
"""Messages that may wait for their answers."""


class ConfirmedFiles:
    """Confirms entries when a run has made all its changes.

    The destination's tree is read once more. An entry is confirmed if it is as it was listed, and if the run
    met no problem with it. So what an option left alone is not confirmed, and a file that was not compared
    by its content is confirmed as the run took it for equal, by size and mtime.
    """

    def __init__(
        self, root: Root, wanted: Manifest, preserved: Preserved, events: EventRelay, options: SyncOptions
    ) -> None:
        """`wanted`: what the source listed."""
        self._root = root
        self._wanted = wanted
        self._preserved = preserved
        self._events = events
        self._options = options
        self._durable: set[int] = set()
        """Devices whose writes are durable."""
        self._waiting = 0

    def confirm(self, round_: int) -> Conversation[int]:
        """Tell the source, and wait for its answers. Returns the round to go on with."""
        if self._events.is_uncertain(b""):
            return round_  # what failed is not known
        for number, path in enumerate(self._wanted.directories):
            rows = self._landed(number, path)
            mark = self._mark(path) if rows else None
            if mark is None:
                continue
            for at in range(0, len(rows), FILES_PER_MESSAGE):
                yield Send(Landed(tuple(rows[at : at + FILES_PER_MESSAGE]), mark), round_)
                self._waiting += 1
                while self._waiting >= UNANSWERED:
                    round_ = yield from self._answer(round_)
        while self._waiting:
            round_ = yield from self._answer(round_)
        return round_

    def _answer(self, round_: int) -> Conversation[int]:
        received = yield Receive()
        if received is None:
            return round_
        if isinstance(received.message, Removed):
            self._waiting -= 1
        elif not self._events.take(received.message):
            raise ProtocolError(f"expected Removed, found {type(received.message).__name__}")
        return max(round_, received.round + 1)

    def _landed(self, number: int, path: bytes) -> list[int]:
        """Return the rows of a directory whose entries are here."""
        wanted = self._wanted.listing(number)
        try:
            existing = self._root.list(path)
        except RdcError:
            return []  # the run has reported it
        wanted = with_equal_times(wanted, existing, self._options)
        first, prefix = self._wanted.firsts[number], path + b"/" if path else b""
        return [
            first + row
            for row in self._equal_rows(wanted, existing, prefix)
            if not self._events.is_uncertain(prefix + wanted.names[row])
        ]

    def _equal_rows(self, wanted: Listing, existing: Listing, prefix: bytes) -> Iterator[int]:
        rows = {name: row for row, name in enumerate(existing.names)}
        links, existing_links = wanted.links(), existing.links()
        for row, (name, kind) in enumerate(zip(wanted.names, wanted.kinds, strict=True)):
            here = rows.get(name)
            if here is None or existing.kinds[here] != kind:
                continue
            if kind == Kind.SYMLINK:
                left_alone = self._options.safe_links and leads_outside(links[row], prefix + name)
                equal = links[row] == existing_links[here] and not left_alone
            elif kind == Kind.FILE:
                if self._options.is_left_for_size(wanted.sizes[row]):
                    continue
                # Where mtimes are not preserved, the run has compared or fetched the content of each file
                # that no option left alone.
                compared = not self._preserved.is_timed(kind) and not self._options.narrows
                equal = wanted.sizes[row] == existing.sizes[here] and (
                    compared or self._preserved.same_time(wanted.mtimes[row], existing.mtimes[here])
                )
            else:
                equal = kind in NODES and wanted.sizes[row] == existing.sizes[here]
            if equal:
                yield row

    def _mark(self, path: bytes) -> bytes | None:
        """Return the mark of a directory, whose file system is durable from then on; None if that failed."""
        try:
            fd = os.open(
                b".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._root.directory(path).fd
            )
        except OSError as error:
            self._failed(path, error)
            return None
        except FileError as error:
            self._events.report(Problem(error.code, path, str(error)))
            return None
        try:
            device = os.fstat(fd).st_dev
            if device not in self._durable:
                if not sync_file_systems((fd,)):
                    os.sync()
                    os.fsync(fd)
                self._durable.add(device)
            return directory_mark(fd)
        except OSError as error:
            self._failed(path, error)
            return None
        finally:
            os.close(fd)

    def _failed(self, path: bytes, error: OSError) -> None:
        text = str(self._root.failure(error, path, "make it durable"))
        self._events.report(Problem(ExitCode.PARTIAL, path, f"{text}; the source keeps what is in it"))


# --guard for changes: compared directories wait until it is known how many entries would change.


class GuardedChanges:
    """Stands before the parts that change directories: it counts, and passes everything on at the end.

    What counts are files and symlinks of the destination that differ in size, time or kind, as far as options
    let them change. Nothing is written before `release`.
    """

    def __init__(
        self, directories: DirectoryChanges, options: SyncOptions, storage: DestinationStorage
    ) -> None:
        self._directories = directories
        self._options = options
        self._storage = storage
        root = directories.announced(b"")
        self._expected: dict[bytes, AnnouncedDirectory] = {} if root is None else {b"": root}
        self._steps: list[Callable[[], object]] = []
        self._changing = 0
        self._seen = 0
        """Entries of the destination in compared directories."""

    # What the comparisons ask for

    def announced(self, path: bytes) -> AnnouncedDirectory | None:
        return self._expected.get(path)

    def expect(self, path: bytes, announced: AnnouncedDirectory) -> None:
        self._expected[path] = announced
        self._steps.append(lambda: self._directories.expect(path, announced))

    def mark_unchanged(self, path: bytes) -> bool:
        known = self._expected.get(path)
        if known is not None and (known.new or known.lost):
            return False
        self._expected.pop(path, None)
        self._steps.append(lambda: self._directories.mark_unchanged(path))
        return True

    def compare(self, path: bytes, first: int, listing: Listing, existing: Listing | None) -> None:
        known = self._expected.pop(path)
        lost = known.lost or existing is None
        here: set[bytes] = set()
        if existing is not None and not lost:
            here = {existing.names[row] for row in existing.rows_of(Kind.DIRECTORY)}
            self._seen += len(existing)
            self._count(ComparedDirectory(path, first, listing, existing))
        for row in listing.rows_of(Kind.DIRECTORY):
            name = listing.names[row]
            announced = AnnouncedDirectory(listing.metadata(row), name not in here, False, lost)
            self._expected[join(path, name)] = announced
        self._steps.append(lambda: self._directories.compare(path, first, listing, existing))

    def restore_permissions_later(self, path: bytes) -> None:
        self._steps.append(lambda: self._directories.restore_permissions_later(path))

    # The decision

    def _count(self, directory: ComparedDirectory) -> None:
        directory = directory.with_equal_times(self._options)
        comparison = compare(
            directory.listing,
            directory.existing,
            preserved=self._storage.preserved,
            checksum=self._options.checksum,
        )
        if self._options.narrows:
            comparison = self._narrowed(directory, comparison)
        changes = (Change.CONTENT, Change.REPLACE)
        self._changing += sum(decision.change in changes for decision in comparison.decisions)
        self._changing += len(comparison.touched)

    def _narrowed(self, directory: ComparedDirectory, comparison: Comparison) -> Comparison:
        from rdc.plan.skip_options import narrow

        return narrow(
            comparison,
            directory.listing,
            directory.existing,
            options=self._options,
            preserved=self._storage.preserved,
            path=directory.path,
        ).comparison

    def stopped(self, entries: int | None) -> str | None:
        """Say how many of how many entries would change, if these are more than the guard lets pass.

        `entries`: of the destination; None if all its directories were compared.
        """
        share, total = self._options.guard, self._seen if entries is None else entries
        if share is None or total < GUARDED_ENTRIES or self._changing * 100 <= share * total:
            return None
        return stopped_text("changed", self._changing, total, share)

    def release(self) -> None:
        """Have everything done that was asked for meanwhile."""
        steps, self._steps = self._steps, []
        for step in steps:
            step()


# Selected paths that the source does not have: --delete-missing-args deletes them at the destination.


def find_missing(context: ApplyingContext, deletion: Deletion) -> list[Extraneous]:
    """Return what the destination has at each selected path that the source does not have."""
    found: list[Extraneous] = []
    if context.at.selection is None:
        return found
    for path in sorted(context.at.selection.ends):
        if path and context.at.manifest.row(path) is None and not _is_extraneous(context, path):
            here = _found_here(context, path)
            if here is not None:
                found.append(here)
                if (
                    here.kind == Kind.DIRECTORY
                    and context.at.options.removes
                    and not context.at.options.dry_run
                ):
                    deletion.below.note(path)
    return found


def delete_missing(
    context: ApplyingContext,
    found: list[Extraneous],
    deletion: Deletion,
    late: LateDirectories,
    withheld: str | None,
) -> None:
    """Delete what `find_missing` found.

    A directory goes with its content only with --delete or --force. `withheld`: as in
    ExtraneousEntries.delete.
    """
    if found and withheld is not None:
        context.extraneous.withhold([one for one in found if not _keeps_content(context, one)], withheld)
        return
    deletion.remove(_going(context, found, late))


def _going(context: ApplyingContext, found: list[Extraneous], late: LateDirectories) -> Iterator[Extraneous]:
    """Yield those that go. `late` sets the metadata of their directories again."""
    for one in found:
        path = one.path
        if _keeps_content(context, one):
            text = f"{printable(path)}: not deleted, it is not empty; --delete or --force removes it"
            context.at.events.report(Problem(ExitCode.OK, path, text))
            continue
        above = path.rpartition(b"/")[0]
        if not context.at.options.dry_run and (not above or context.at.manifest.row(above) is not None):
            late.touch(above)
        yield one


def _is_extraneous(context: ApplyingContext, path: bytes) -> bool:
    """Return whether --delete decides about the path, because all entries of the directory above it take
    part."""
    selection, above = context.at.selection, path.rpartition(b"/")[0]
    return context.at.options.delete and selection is not None and selection.names(above) is None


def _found_here(context: ApplyingContext, path: bytes) -> Extraneous | None:
    try:
        kind = None if context.at.new else context.at.root.kind(path)
        return None if kind is None else Extraneous(path, kind, context.at.root.identity(path))
    except FileError as error:
        if error.code is not ExitCode.VANISHED:
            context.at.events.report(Problem(ExitCode.PARTIAL, path, str(error)))
        return None


def _keeps_content(context: ApplyingContext, entry: Extraneous) -> bool:
    """Return whether a directory stays because it holds something that nothing allows to remove."""
    path = entry.path
    if entry.kind != Kind.DIRECTORY or context.at.options.removes:
        return False
    try:
        return not context.at.root.listed(path).is_empty
    except FileError as error:
        context.at.events.report(Problem(error.code, path, str(error)))
        return True


# Makes the hard links of a tree (--hard-links) after all other changes.
#
# The run updates a file's first name, in walk order, like any file. It leaves the further names alone until
# everything else is in place and then links them to the first. So contents travel once, and a name keeps its
# old content until it becomes the new file.

NAMES_LOOKED_AT = 16
"""Further names of a new file that are searched for its content. Each costs two system calls."""


class HardLinks:
    """Makes the missing hard links of a table. One run makes one pass."""

    def __init__(self, context: ApplyingContext, directories: LateDirectories) -> None:
        options = context.at.options
        self._by_size = options.size_only and not options.checksum
        """Equal sizes mean equal contents, whatever the mtimes (--size-only)."""
        self._root = context.at.root
        self._entries = context.at.manifest
        self._landing = context.at.landing
        self._transfers = context.transfers
        self._directories = directories
        self._blocked = context.blocked
        self._events = context.at.events
        self._preserved = context.at.preserved
        self._dry = options.dry_run
        self._fsync = options.is_durable
        self._late: list[tuple[int, int]] = []
        """Files whose first names wait, and these."""
        self._linked_in: dict[int, bytes] = {}
        """For each device, a directory in which a link was made."""

    def run(self, table: LinkTable) -> None:
        """Make the missing links.

        A name becomes a file of its own if the first name could not be brought up to date or if the link
        fails; the router then fetches its content. A name with a directory in its place waits for that, and
        so do the other names of a first name that waits.
        """
        for file, first in ExistingLinks(self._root, self._entries, self._preserved).missing(table):
            if self._entries.entry(first).path in self._blocked:
                self._late.append((file, first))
            else:
                self._try_to_link(file, first)

    def run_late(self) -> None:
        """Make the links to names that had a directory in their place."""
        late, self._late = self._late, []
        for file, first in late:
            self._try_to_link(file, first)

    def _try_to_link(self, file: int, first: int) -> None:
        entry = self._entries.entry(file)
        try:
            self._link(file, entry, first, waits=True)
        except FileError as error:
            self._events.report(Problem(writing_code(error), entry.path, str(error)))

    def finish(self) -> None:
        """Make all links durable."""
        linked, self._linked_in = self._linked_in, {}
        if self._fsync and linked:
            try:
                make_durable(self._root, linked.values())
            except FileError as error:
                self._events.report(Problem(writing_code(error), error.path_bytes, str(error)))

    def _link(self, file: int, entry: Entry, first_file: int, *, waits: bool) -> None:
        """Make one name a link to its first name. `waits`: unless a directory is in its place."""
        # long because each step is safe only because of the checks before it
        first = self._entries.entry(first_file)
        size, mtime = self._landing.landed(first_file) or (first.size, first.metadata.mtime_ns)
        if entry.kind in NODES and entry.kind not in self._root.writes.nodes:
            return  # which was reported
        found, kind = self._found(first.path, first), self._kind(entry.path)
        existing, listed = self._found(entry.path, entry), self._landing.listed.of(file)
        ready = (
            found is not None
            and (entry.kind in NODES or found.size == size)
            and (
                (self._by_size and self._dry)
                or not self._preserved.is_timed(entry.kind)
                or self._preserved.same_time(mtime, found.mtime_ns)
            )
        )
        joined = (
            found is not None
            and existing is not None
            and (existing.device, existing.inode) == (found.device, found.inode)
        )
        if joined and (ready or not self._dry):
            return
        if kind is not None and self._root.append_only:
            raise self._root.append_only_refusal(entry.path, "make it a hard link")
        differing = self._difference(entry, existing)
        code = linking_code(entry.kind, differing, new=existing is None)
        if self._dry:
            self._landing.report(ItemChanged(code, entry.path, first.path))
            return
        if kind is Kind.DIRECTORY and waits:
            self._blocked.add(entry.path, lambda: self._link(file, entry, first_file, waits=False))
            return
        self._directories.touch(os.path.dirname(entry.path))
        if (
            found is None
            or not ready
            or link_file(self._root, first.path, entry.path, found, replaces=listed) is not Linked.DONE
        ):
            self._fetch(file, entry, kind, existing, differing)
            return
        self._linked_in.setdefault(found.device, os.path.dirname(entry.path))
        self._landing.report(ItemChanged(code, entry.path, first.path))

    def _kind(self, path: bytes) -> Kind | None:
        try:
            return self._root.kind(path)
        except FileError:
            if not self._dry:
                raise
            return None  # what is in the way above it would be replaced by a directory

    def _found(self, path: bytes, like: Entry) -> Identity | None:
        """Return the entry at `path`, if it is a regular file or the special file that `like` is; else
        None."""
        try:
            if like.kind in NODES:
                return (
                    self._root.identity(path)
                    if is_node(self._root, path, Kind(like.kind), like.size)
                    else None
                )
            return self._root.identity(path) if self._root.kind(path) is Kind.FILE else None
        except FileError:
            return None  # the file or its directory could not be made, which was reported

    def _difference(self, entry: Entry, existing: Identity | None) -> Difference:
        """Return how the file that has this name differs from the wanted file."""
        if existing is None:
            return Difference.NONE
        found = difference(
            entry.kind, entry.metadata, self._root.metadata(entry.path), preserved=self._preserved
        )
        alike = entry.kind in NODES or existing.size == entry.size
        return found if alike else found | Difference.SIZE

    def _fetch(
        self, file: int, entry: Entry, kind: Kind | None, existing: Identity | None, differing: Difference
    ) -> None:
        """Bring a name up to date as a file of its own."""
        if entry.kind in NODES:
            self._make_alone(file, entry, existing, differing)
        elif existing is None:
            change = Change.CREATE if kind is None else Change.REPLACE
            self._landing.decide(file, Decision(change, -1, -1, Difference.NONE))
            self._transfers.create(file, entry.path, entry.size)
        elif differing & (Difference.SIZE if self._by_size else Difference.SIZE | Difference.TIME):
            self._landing.decide(file, Decision(Change.CONTENT, -1, -1, differing))
            self._transfers.update(file, entry.size)
        elif differing:
            decision = Decision(Change.METADATA, -1, -1, differing)
            listed = self._landing.listed.of(file)
            if listed is None:
                raise self._root.another(entry.path, None, listed, "set its metadata")
            self._landing.set_metadata(entry.path, entry.metadata, decision, listed)

    def _make_alone(self, file: int, entry: Entry, existing: Identity | None, differing: Difference) -> None:
        """Make a special file that cannot be a link, or set its metadata. Raises FileError."""
        owner, new = self._preserved.owner, existing is None
        decision = Decision(Change.CREATE if new else Change.METADATA, -1, -1, differing)
        listed, metadata = self._landing.listed.of(file), entry.metadata
        if new:
            kind = Kind(entry.kind)
            self._root.replace_node(entry.path, kind, entry.size, metadata, owner=owner, expected=listed)
        elif listed is None:
            raise self._root.another(entry.path, None, listed, "set its metadata")
        elif differing:
            chosen = self._root.storage.of_found
            self._root.set_metadata(
                entry.path, Kind.SPECIAL, metadata, owner=owner, expected=listed, chosen=chosen
            )
        else:
            return
        code = itemize(entry.kind, decision, transferred=new, new=new)
        self._landing.report(ItemChanged(code, entry.path))


def names_here(root: Root, entries: Manifest, table: LinkTable, file: int) -> tuple[bytes, ...]:
    """Return the first local path among a new file's further names that may have its content; () if none
    has."""
    for other in islice(table.names(file), NAMES_LOOKED_AT):
        if other >= len(entries):
            break
        entry = entries.entry(other)
        try:
            kind = root.kind(entry.path)
            if kind is Kind.FILE and root.identity(entry.path).size == entry.size > WHOLE_BYTES:
                return (entry.path,)
        except FileError:
            continue
    return ()


# Sets the source's attributes on entries (--xattrs, --acls, --atimes): the last step of a sync.
#
# Earlier changes to an entry would undo them: a write clears capabilities, chmod changes an ACL's mask, a new
# version has no attributes. After a kill before this step, the next run finds the differing attributes.

_NO_DIRECTORY = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


class _Entry(Record):
    path: bytes
    kind: Kind
    mode: int
    size: int
    mtime_ns: int
    reported: bool
    """The run has reported the entry already."""


class XattrSetter:
    """Sets the attributes of all wanted entries in one pass."""

    def __init__(self, context: ApplyingContext, wanted: WantedXattrs) -> None:
        self._left = context.skipped
        self._chosen = ChosenDirectories(context)
        self._alternates = context.at.alternates
        self._root = context.at.root
        self._entries = context.at.manifest
        self._wanted = wanted
        self._landing = context.at.landing
        self._events = context.at.events
        self._preserved = context.at.preserved
        self._dry = context.at.options.dry_run
        self._fsync = context.at.options.is_durable
        self._uses_content = context.at.uses_content
        self._changed = False

    def run(self, top: Metadata | None, *, within: AbstractSet[bytes] | None = None) -> None:
        """Set all attributes that differ, or only those of entries that differ in something else: the
        source must not learn whether attributes are equal then.

        `top`: the root directory's metadata; None if its attributes do not count. `within`: directories in
        which the run changed something; all others are known to be right. Raises ProtocolError for attributes
        of entries that were not listed.
        """
        if self._wanted.highest > len(self._entries):
            raise ProtocolError(f"attributes of entry {self._wanted.highest - 1}, which was not listed")
        for number, path in enumerate(self._entries.directories):
            if within is None or path in within:
                self._directory(number, path)
        if top is not None:
            wanted = self._wanted.of_root()
            if wanted != UNREADABLE and (self._uses_content or self._wanted.root_reported):
                self._entry(_Entry(b"", Kind.DIRECTORY, top.mode, 0, 0, self._wanted.root_reported), wanted)
        if self._changed and self._fsync:
            sync_file_systems([self._root.fileno()])

    def _directory(self, number: int, path: bytes) -> None:
        """Set the attributes of one directory's entries."""
        first, listing = self._entries.firsts[number], self._entries.listing(number)
        sets = self._wanted.of(first, len(listing))
        # A new entry may have inherited an ACL from its directory, but no other attributes.
        kinds = self._wanted.kinds
        inherits = AttributeKinds.ACL in kinds
        rows = [
            row
            for row, kind in enumerate(listing.kinds)
            if kinds.of(kind)
            and (sets.get(row) or inherits or not self._wanted.is_new(first + row))
            and sets.get(row) != UNREADABLE
            and self._may_look_at(first + row)
            and not self._keeps_own(first + row)
            and not (kind == Kind.DIRECTORY and self._chosen.keeps_own(join(path, listing.names[row])))
        ]
        right = self._right_rows(path, listing, sets) if rows else set()
        for row in rows:
            if row not in right:
                kind, reported = Kind(listing.kinds[row]), self._wanted.is_reported(first + row)
                name, mode = listing.names[row], listing.modes[row]
                landed = self._landing.landed(first + row)
                size, mtime = landed or (listing.sizes[row], listing.mtimes[row])
                self._entry(_Entry(join(path, name), kind, mode, size, mtime, reported), sets.get(row, b""))

    def _may_look_at(self, row: int) -> bool:
        """Return whether what is done may depend on the attributes that an entry has."""
        if self._uses_content:
            return True
        # An append-only root refuses all others, which would tell whether theirs differ.
        return self._wanted.is_new(row) if self._root.append_only else self._wanted.is_reported(row)

    def _keeps_own(self, row: int) -> bool:
        """Return whether an entry was left alone, or is a file in another tree as well."""
        if self._left is not None and row in self._left:
            return True
        return self._alternates is not None and self._alternates.is_linked(row)

    def _right_rows(self, path: bytes, listing: Listing, sets: dict[int, bytes]) -> AbstractSet[int]:
        """Return the rows whose attributes are right. `_entry` checks the others and reports read errors."""
        names = b"".join([name + b"\0" for name in listing.names])
        kinds, right = self._wanted.kinds, set(range(len(listing))) - sets.keys()
        try:
            for row, _, there in read_directory_attributes(self._root, path, names, kinds):
                existing = there if isinstance(there, OSError) else kinds.of(listing.kinds[row]).chosen(there)
                if not isinstance(existing, OSError) and pack_attributes(existing) == sets.get(row, b""):
                    right.add(row)
                else:
                    right.discard(row)
        except FileError:
            return set()
        return right

    def _entry(self, entry: _Entry, wanted: bytes) -> None:
        """Set the attributes of one entry if they differ, and report the change or the error."""
        path, kinds = entry.path, self._wanted.kinds.of(entry.kind)
        try:
            directory, name = self._root.locate(path)
            found = read_entry_attributes(directory.fd, name, kinds, fakes=self._root.reads.fakes)
            existing = pack_attributes(found)
            if existing == wanted or not self._is_unchanged(entry, self._root.identity(path)):
                return
            if not self._dry:
                self._write(entry, unpack_attributes(existing), unpack_attributes(wanted))
                self._changed = True
        except (FileNotFoundError, FileChangedError):
            return  # missing: not made, which was reported, or a dry run; or another program replaced it
        except OSError as error:
            failed = self._root.failure(error, path, "read its extended attributes")
            self._events.report(Problem(ExitCode.PARTIAL, path, str(failed)))
            return
        except FileError as error:
            # A missing directory was reported already.
            if not isinstance(error.__cause__, OSError) or error.__cause__.errno not in _NO_DIRECTORY:
                self._events.report(Problem(writing_code(error), path, str(error)))
            return
        except OutOfSpaceError as error:
            # Many file systems have little room for attributes and report that as a full disk.
            self._events.report(Problem(ExitCode.PARTIAL, path, str(error)))
            return
        if not entry.reported:
            before, after = dict(unpack_attributes(existing)), dict(unpack_attributes(wanted))
            names = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
            code = attributes_code(
                entry.kind,
                acl=bool(names & {ACCESS_ACL, DEFAULT_ACL}),
                xattr=bool(names - {ACCESS_ACL, DEFAULT_ACL, ACCESS_TIME}),
                time=ACCESS_TIME in names,
            )
            self._landing.report(ItemChanged(code, _shown(entry)))

    def _write(self, entry: _Entry, existing: Attributes, wanted: Attributes) -> None:
        """Write what differs, the access time last."""

        def is_meant(now: os.stat_result) -> bool:
            return self._is_unchanged(entry, identity_of(now))

        kinds = self._wanted.kinds.of(entry.kind) & ~AttributeKinds.ACCESS_TIME
        extended = kinds.chosen(wanted)
        if kinds.chosen(existing) != extended:
            write_entry_attributes(
                self._root, entry.path, entry.kind, extended, kinds, entry.mode, is_meant=is_meant
            )
        if AttributeKinds.ACCESS_TIME in self._wanted.kinds:
            write_entry_access_time(self._root, entry.path, entry.kind, wanted, is_meant=is_meant)

    def _is_unchanged(self, entry: _Entry, found: Identity) -> bool:
        """Return whether a file has the content to which the attributes belong."""
        return entry.kind is not Kind.FILE or (
            found.size == entry.size
            and (
                not self._preserved.is_timed(Kind.FILE)
                or self._preserved.same_time(entry.mtime_ns, found.mtime_ns)
            )
        )


def _shown(entry: _Entry) -> bytes:
    """Return the entry's path as reported items show it."""
    return (entry.path or b".") + b"/" if entry.kind is Kind.DIRECTORY else entry.path
