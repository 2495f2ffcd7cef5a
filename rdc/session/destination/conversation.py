"""The destination's half of a sync: asks the source to describe its tree, compares, and drives the rest.

An empty destination asks for the listing, and for contents while the listing arrives. Otherwise both sides
walk their trees at the same time and compare the digests of their manifests. If those differ, a descent finds
the directories that differ. From there on both ways are one.

`DestinationTurn` makes the parts that change the tree, and has the steps that follow a comparison.
`WholeTurn` compares whole trees; rdc.session.destination.change_turn has the turn that compares what the
source says has changed.
"""

from __future__ import annotations

import contextlib
from functools import partial

from rdc.errors import ExitCode, OutOfSpaceError, ProtocolError, RdcError
from rdc.files.base.store_guard import head_at
from rdc.lean.records import Record, replace
from rdc.limits import FURTHER_BYTES, SMALL_MANIFEST
from rdc.model.entries import EMPTY_LISTING, Kind
from rdc.progress import PlanKnown, Problem
from rdc.protocol import messages
from rdc.protocol.messages import Done
from rdc.session.destination.own_tree import (
    InSyncPair,
    InSyncStore,
    OwnTree,
    drop_trees,
    newest_file,
    receive_likely,
    receive_offer,
    receive_owners,
)
from rdc.session.runtime.commands import (
    EVENT_MESSAGES,
    Conversation,
    Flush,
    Receive,
    Send,
    TransferProgress,
)
from rdc.session.transfer.destination import LEAF_BLOCK, Destination, PartialFiles, left_alone
from rdc.session.trees.destination_root import unkept_attributes
from rdc.tree.hard_links import LinkTable
from rdc.tree.manifest import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from rdc.model.entries import Identity, Metadata
    from rdc.protocol.messages import Start
    from rdc.session.destination.deletion import Deletion, ExtraneousEntries
    from rdc.session.destination.directory_changes import DirectoryChanges
    from rdc.session.destination.finish import GuardedChanges, HardLinks
    from rdc.session.destination.store_landing import StoreLanding
    from rdc.session.transfer.commits import Extraneous, FileCommits
    from rdc.session.transfer.renames import RemovedFiles
    from rdc.session.transfer.transfers import Transfers
    from rdc.session.trees.destination_options import SkippedEntries
    from rdc.session.trees.source_tree import MountBoundary
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.selection import Selection

_NEXT = Receive()

WHOLE_STORE = "SRC is a store, and all of it is copied; to restore a snapshot, sync from SRC/@latest/"
"""Reported by the first copy of a store."""


class DestinationTurn:
    """One run at a destination: the parts that change it, and the steps after the comparison."""

    landing: FileCommits
    progress: TransferProgress
    transfers: Transfers
    deletion: Deletion
    extraneous: ExtraneousEntries
    directories: DirectoryChanges

    def __init__(self, context: Destination) -> None:
        self._context = context
        self._root = context.root
        self._options = context.options
        self._events = context.events
        self.manifest = Manifest()
        """The source's tree, as far as it is known."""
        self.is_built = False
        """True if the parts are made. If not, the digests of both manifests showed that nothing is to be
        done."""
        self.skipped: SkippedEntries | None = None
        """Entries that options or reserved names leave alone. None if neither links nor xattrs need them."""
        self._guarded: GuardedChanges | None = None
        self._missing: list[Extraneous] = []
        """The paths to be deleted for --delete-missing-args."""
        self._has_removed = False
        """Deletions have begun."""
        self._copy: StoreLanding | None = None
        """The rules of a copy of a store; None: SRC is no store."""
        self._is_stopped = False
        """The guard stopped the run: nothing is changed."""

    def build(
        self,
        partial_files: PartialFiles,
        *,
        seeks: bool,
        boundary: MountBoundary | None = None,
        links: LinkTable | None = None,
        attributes: WantedXattrs | None = None,
        live: bool = False,
        earlier: str | None = None,
        on_identity: Callable[[bytes, Identity], None] | None = None,
    ) -> None:
        """Make the parts that change the tree. Many runs need none, and import none of their modules.

        `partial_files`: collects partial files of earlier runs. `seeks`: as in Destination. `boundary`:
        nothing beyond this mount boundary is deleted. `links`, `attributes`: `links` and `xattrs` of
        DirectoryChanges. `live`: as in ExtraneousEntries. `earlier`: as in Unarrived. `on_identity`: as
        in CommitGroup.
        """
        # long because it only makes the parts, in the order in which they need each other
        from rdc.session.destination.deletion import BlockedEntries, Deletion, ExtraneousEntries, Unarrived
        from rdc.session.destination.directory_changes import DirectoryChanges
        from rdc.session.destination.entry_changes import ApplyingContext
        from rdc.session.transfer.commits import FileCommits
        from rdc.session.transfer.transfers import Transfers

        context, root, options, events = self._context, self._root, self._options, self._events
        if options.remove_source_files:
            events.note_paths(made=options.ignore_existing)
        if root.writes.backups is not None:
            backups = root.writes.backups.apart_from(lambda path: self.manifest.row(path) is not None)
            root = self._root = root.having(writes=replace(root.writes, backups=backups))
        copies = context.start.store is not None and not options.dry_run
        if copies:
            from rdc.session.destination.store_landing import StoreLanding

            self._copy = StoreLanding(root, events, fsync=options.is_durable, store=context.start.only)
        self.landing = FileCommits(
            root,
            self.manifest,
            events,
            fsync=options.is_durable,
            owner=context.preserved.owner,
            dry=options.dry_run,
            before_writing=context.storage.before_writing,
            xattrs=attributes,
            delays=options.delay_updates,
            comes_last=None if self._copy is None else self._copy.comes_last,
            on_identity=on_identity,
        )
        unarrived = Unarrived(root, self.manifest, self.landing, earlier=earlier)
        events.heed(unarrived.note)
        self.progress = TransferProgress(events)
        context.begin(root, self.manifest, self.landing, partial_files, self.progress, seeks=seeks)
        self.transfers = Transfers(context)
        protected = context.filters.protected
        self.deletion = Deletion(
            root,
            protected,
            events,
            limit=options.max_delete,
            share=options.max_delete_share,
            dry=options.dry_run,
            boundary=boundary,
            partial_files=partial_files,
        )
        self.extraneous = ExtraneousEntries(
            root,
            options,
            protected,
            self.deletion,
            events,
            given=partial(_named, self.manifest, context.start, context.selection),
            unarrived=unarrived.reason,
            boundary=boundary,
            live=live,
            copy=self._copy,
        )
        self._unarrived = unarrived
        self._blocked = BlockedEntries(self.extraneous, events)
        if not (links is None and attributes is None):
            from rdc.session.trees.destination_options import SkippedEntries

            self.skipped = SkippedEntries()
        self._applying = ApplyingContext(
            context,
            self.transfers,
            self.extraneous,
            unarrived,
            self._blocked,
            links,
            attributes,
            self.skipped,
        )
        self.directories = DirectoryChanges(self._applying)
        if options.guard is not None:
            from rdc.session.destination.finish import GuardedChanges

            self._guarded = GuardedChanges(self.directories, options, context.storage)
        self.is_built = True

    @property
    def compared(self) -> GuardedChanges | DirectoryChanges:
        """The taker of the compared directories."""
        return self._guarded or self.directories

    def pass_guard(self, entries: int | None) -> bool:
        """Start what waited for a guard; False if the guard stops it. `entries`: as in GuardedChanges."""
        why = None if self._guarded is None else self._guarded.stopped(entries)
        if why is not None:
            self._is_stopped = True
            self._events.report(Problem(ExitCode.MAX_DELETE, b"", why))
            self.directories.expect_nothing()
        elif self._guarded is not None:
            self._guarded.release()
        return not self._is_stopped

    def complete(
        self,
        entries: int,
        read_errors: int,
        links: LinkTable | None,
        round_: int,
        fetch: Callable[[int], Conversation[int]],
    ) -> Conversation[int]:
        """Rename, fetch the remaining contents, make hard links, and delete, once all is compared.

        `entries`, `read_errors`: of the source. `fetch`: fetches and commits what is outstanding. Returns
        the round to go on with.
        """
        self.landing.flush()
        yield from self.transfers.move(self.deletion.spare, round_)
        round_ = yield from fetch(round_)
        self.landing.land()
        self.directories.finish_alternates()
        hard_links: HardLinks | None = None
        if links:
            from rdc.session.destination.finish import HardLinks

            hard_links = HardLinks(self._applying, self.directories.late)
            hard_links.run(links)
            round_ = yield from fetch(round_)
        self.put_blocked(read_errors)
        round_ = yield from fetch(round_)
        if hard_links is not None:
            hard_links.run_late()
            self.put_blocked(read_errors)
            round_ = yield from fetch(round_)
            hard_links.finish()
        if self._copy is not None:
            from rdc.session.destination.deletion import incomplete

            withheld = incomplete(read_errors) or self._unarrived.reason()
            self._copy.land(self.landing, self.manifest, withheld)
        self.remove(entries, read_errors)
        return round_

    def fetch_known(self, round_: int) -> Conversation[int]:
        """Fetch and commit the outstanding contents of a turn that the source announced to its end.

        Return the round to go on with.
        """
        yield from self.transfers.pump(round_)
        while not self.transfers.idle:
            received = yield _NEXT
            if received is None:
                continue
            round_ = max(round_, received.round + 1)
            if not self._events.take(received.message):
                yield from self.transfers.take(received)
            yield from self.transfers.pump(received.round + 1)
            yield from self._events.send_waiting(received.round + 1)
        self.landing.flush()
        return round_

    def find_missing(self) -> None:
        """Note what --delete-missing-args deletes, when all directories were compared."""
        if self._options.delete_missing_args and not self._is_stopped:
            from rdc.session.destination.finish import find_missing

            self._missing = find_missing(self._applying, self.deletion)

    def put_blocked(self, read_errors: int) -> None:
        """Let entries take the places of directories, when everything else is in place. `read_errors`: of
        the source."""
        self._blocked.put_all(partial(self.extraneous.withheld, read_errors))
        self.landing.drop_held()

    def remove(self, entries: int, read_errors: int) -> None:
        """Delete what has to go, when everything else is in place. `entries`, `read_errors`: of the
        source."""
        self._has_removed = True
        withheld = self.extraneous.withheld(read_errors)
        if self._options.delete:
            self.extraneous.delete(entries, withheld)
        if self._options.delete_missing_args and not self._is_stopped:
            from rdc.session.destination.finish import delete_missing

            late = self.directories.late
            delete_missing(self._applying, self._missing, self.deletion, late, withheld)
        self.deletion.finish()

    def remove_nevertheless(self, entries: int, read_errors: int) -> None:
        """Delete, in a run that cannot go on, what --ignore-errors allows, or report what is not deleted."""
        if self._has_removed or self._options.dry_run or not self._options.delete:
            return
        self._has_removed = True
        why = None if self._options.ignore_errors else "not everything arrived before the run ended"
        self.extraneous.delete(entries, self.extraneous.withheld(read_errors) or why)

    def attribute(self, attributes: WantedXattrs, top: Metadata | None, *, adopted: bool) -> None:
        """Set extended attributes, after all other changes.

        `top`: the root directory's metadata; None if its attributes do not count. `adopted`: all attributes
        were right before this run.
        """
        from rdc.session.destination.finish import XattrSetter

        within = self.directories.worked_in if adopted else None
        XattrSetter(self._applying, attributes).run(top, within=within)

    def finish(self, round_: int) -> Conversation[int]:
        """End the undo's record after all changes, and tell the source which files it may remove.

        Returns the round to go on with.
        """
        self._context.storage.finish()
        if self._copy is not None:
            self._copy.close()
        self._finish_undo()
        options = self._options
        if not options.remove_source_files or options.dry_run or self._is_stopped:
            return round_
        from rdc.session.destination.finish import ConfirmedFiles

        confirmed = ConfirmedFiles(
            self._root, self.manifest, self._context.storage.preserved, self._events, options
        )
        return (yield from confirmed.confirm(round_))

    def _finish_undo(self) -> None:
        """Note that the run came to its end, if it is kept to be undone."""
        undo = self._root.writes.undo
        if undo is not None:
            for text in undo.finish():
                self._events.report(Problem(ExitCode.OK, b"", text))

    def wind_down(self) -> None:
        """End an interrupted run: commit complete files and leave partial files for the next run."""
        self._context.storage.remember()
        if self._copy is not None:
            self._copy.close()
        self.transfers.close()
        with contextlib.suppress(RdcError):
            self.landing.flush()
        with contextlib.suppress(RdcError):
            self.directories.finish_alternates()
        self.landing.abandon()

    def finish_turn(self) -> None:
        """Store what was learned about the file system, after all changes of a turn."""
        self._context.storage.finish()

    def account(self, code: ExitCode) -> Done:
        """Return the totals of the run."""
        return Done(
            self.landing.changed,
            self.deletion.deleted,
            self.landing.moved_files,
            self.progress.literal_bytes,
            self.progress.reused_bytes,
            self._events.errors,
            code,
            self.landing.created or None,
        )


def _named(wanted: Manifest, start: Start, selection: Selection | None) -> int:
    """Return how many entries of the source the user named, or the directories above them."""
    if selection is None:
        return int(bool(start.only))
    numbers = map(wanted.number, selection.restricted)
    return sum(wanted.end(number) - wanted.firsts[number] for number in numbers if number is not None)


class _Totals(Record):
    """The source's announcements about its whole tree."""

    entries: int
    files: int
    bytes: int
    read_errors: int


class WholeTurn(DestinationTurn):
    """A turn that compares whole trees. Before `run`, the caller sent Describe(whole, kept) to the source."""

    def __init__(
        self,
        context: Destination,
        *,
        whole: bool,
        in_sync_store: InSyncStore | None = None,
        live: bool = False,
    ) -> None:
        """`live`: the session stays open after this."""
        # long because it only stores and makes the parts, in the order in which they need each other
        options = context.options
        destination_root, start, preserved, filters = (
            context.destination_root,
            context.start,
            context.agreed,
            context.filters.listed,
        )
        super().__init__(context)
        self._name = destination_root.name
        self._filters = filters
        self._whole = whole
        self._live = live
        self._preserved = preserved
        self._start = start
        if context.selection or context.owners or options.keep_dirlinks or options.fake_super:
            in_sync_store = None  # the pairs are of whole trees as they are, and of owners by number
        self._in_sync = InSyncPair(
            in_sync_store, destination_root.root, start, options, filters, preserved=preserved
        )
        self._links: LinkTable | None = None
        """The source's hard links."""
        own_links: LinkTable | None = None
        if options.hard_links:
            self._links, own_links = LinkTable(), LinkTable()
        self._xattrs: WantedXattrs | None = None
        """The source's extended attributes; None if they are not preserved."""
        if preserved.attributes:
            from rdc.session.trees.wanted_xattrs import WantedXattrs

            self._xattrs = WantedXattrs(preserved.attributes, guards=not options.fake_super)
        unkept = unkept_attributes(options, preserved)
        if unkept is not None:
            self._events.report(Problem(ExitCode.OK, b"", unkept))
        if start.store is not None and head_at(self._root.fileno(), start.only) is None:
            self._events.report(Problem(ExitCode.OK, b"", WHOLE_STORE))
        if destination_root.alternates is not None:
            for line in destination_root.alternates.missing:
                self._events.report(Problem(ExitCode.OK, b"", line))
        self._owners = context.owners
        self._own: Manifest | None = None
        self._xattrs_were_right = False
        """Extended attributes of all directories without changes were right before this run."""
        self._boundary = self._own_boundary()
        self._partial_files = PartialFiles(destination_root.root)
        self._own_tree = OwnTree(context, self._partial_files, links=own_links)
        self._totals: _Totals | None = None
        self._width = 0
        """Bytes of a reference in trees that come unasked."""
        self._awaits_likely = False
        """The source tells next which trees it sends unasked: these are not to be asked for."""
        self._likely_blocks: messages.LikelyBlocks | None = None
        """The blocks that came unasked with a listing."""
        self._full: OutOfSpaceError | None = None
        """The error of a full disk that ends the run once all was compared."""

    def _build(self) -> None:
        """Make the parts that change the tree."""
        from rdc.session.destination.comparison import ListingIntake

        destination_root, options = self._context.destination_root, self._options
        self.build(
            self._partial_files,
            seeks=not (destination_root.new or options.whole_file)
            and (options.visits_all or not self._whole),
            boundary=self._boundary,
            links=self._links,
            attributes=self._xattrs,
            live=self._live,
        )
        self._listing_intake = ListingIntake(
            self.manifest,
            self.compared,
            self._own_tree,
            preserved=self._preserved,
            only=self._start.only,
            name=destination_root.name,
            attributes=self._xattrs,
            owners=self._owners,
            dirlinks=destination_root.dirlinks,
        )

    def _own_boundary(self) -> MountBoundary | None:
        """Return the mount boundary beyond which nothing is deleted; None for no boundary."""
        if not (self._options.one_file_system and self._options.removes):
            return None
        from rdc.session.trees.source_tree import MountBoundary

        return MountBoundary(self._root, self._name or self._start.only)

    @property
    def source_files(self) -> int:
        """Number of regular files at the source that the filters include."""
        return self._totals.files if self._totals else 0

    @property
    def source_bytes(self) -> int:
        """Bytes in these files."""
        return self._totals.bytes if self._totals else 0

    @property
    def source_entries(self) -> int:
        """Number of entries of all kinds at the source that the filters include."""
        return self._totals.entries if self._totals else 0

    @property
    def withheld(self) -> str | None:
        """Return why no deletion was allowed in the end; None: all were."""
        from rdc.session.destination.deletion import incomplete

        errors = 0 if self._totals is None else self._totals.read_errors
        return self.extraneous.withheld(errors) if self.is_built else incomplete(errors)

    def run(self, round_: int) -> Conversation[messages.Done]:
        """Compare, fetch what differs, delete, and return the totals of the run."""
        try:
            if self._owners is not None:
                yield from receive_owners(self._context, self._owners)
            if self._whole:
                self._build()
            else:
                round_ = yield from self._compare_by_manifest(round_)
            if self.is_built or self._totals is None:
                round_ = yield from self._receive_until_done(round_)
            if self._totals is None:
                raise ProtocolError("the source did not describe its tree")
            if self.is_built:
                entries, errors = self._totals.entries, self._totals.read_errors
                round_ = yield from self.complete(entries, errors, self._links, round_, self._fetch)
            self._report_foreign()
            if not self._options.dry_run:
                self._partial_files.sweep()
            if self.is_built:
                self.directories.finish()
                if self._xattrs is not None:
                    top = self._context.start.metadata if self._context.has_top else None
                    self.attribute(self._xattrs, top, adopted=self._xattrs_were_right)
                round_ = yield from self.finish(round_)
        except OutOfSpaceError:
            yield from self._end_full(round_)
            raise
        except BaseException:
            if self.is_built:
                self.wind_down()
            raise
        if self._may_be_in_sync and self.directories.changed is not None:
            self._in_sync.remember_in_sync(self.manifest, self._own, self.directories.changed)
        yield from self._events.send_waiting(round_)
        if self.is_built:
            done = self.account(ExitCode.OK)
        else:
            done = Done(0, 0, 0, 0, 0, self._events.errors, ExitCode.OK)
        yield Send(done, round_)
        return done

    def _end_full(self, round_: int) -> Conversation[None]:
        """Put in place what is complete, and tell what stays undeleted, before an error of a full disk ends
        the run."""
        if self.is_built:
            self.wind_down()
            if self._totals is not None:
                self.remove_nevertheless(self._totals.entries, self._totals.read_errors)
        yield from self._events.send_waiting(round_)

    def _fetch(self, round_: int) -> Conversation[int]:
        """Fetch and commit the outstanding contents, if any. Returns the round to go on with."""
        if not self.transfers.idle:
            yield from self.transfers.pump(round_)
            round_ = yield from self._receive_until_done(round_)
            self.landing.flush()
        return round_

    def _report_foreign(self) -> None:
        """Report entries with a reserved name that are not rdc's temporaries. --delete keeps them, too.

        A source that must learn of no content is told of no name that it did not send."""
        if not self._context.uses_content:
            return
        code = ExitCode.PARTIAL if self._options.delete else ExitCode.OK
        only, selection = self._start.only or None, self._context.selection
        for path in self._partial_files.foreign(self._filters, only=only, selection=selection):
            self._events.report(Problem(code, path, left_alone(path)))

    # By listing: every directory of the source

    def _receive_until_done(self, round_: int) -> Conversation[int]:
        """Handle messages until the source's tree is known and no answer is outstanding.

        Returns the round to go on with. The parts are made once the listing comes: asked for likely files,
        the source signs them by then.
        """
        # long because each kind of message is a branch
        while self._totals is None or self._awaits_likely or not (self._full or self.transfers.idle):
            received = yield _NEXT
            if received is None:
                continue
            round_ = max(round_, received.round + 1)
            message, is_answer = received.message, False
            if isinstance(message, (messages.TopTier, messages.Manifest)):
                continue  # offered unasked, but this side asked for a listing
            if isinstance(message, messages.ListingPart):
                yield from self._context.meter.answered()
            if not self.is_built:
                self._build()
            if isinstance(message, messages.ListingPart):
                self._listing_intake.take(message)
            elif isinstance(message, messages.HardLinks) and self._links is not None:
                self._links.extend(message.files, message.firsts)
            elif isinstance(message, messages.EntryAttributes) and self._xattrs is not None:
                self._xattrs.extend(message)
            elif isinstance(message, messages.Owners) and self._owners is not None:
                self._owners.take(message)
            elif isinstance(message, messages.MountPoints):
                self._in_sync.note_mount_points(message.paths)
            elif isinstance(message, messages.ListingEnd):
                self._listing_intake.end()
                self._pass_guard(None)
                self._compare_unlisted()
                self._comparison_done(
                    _Totals(message.entries, message.files, message.bytes, message.read_errors)
                )
            elif isinstance(message, EVENT_MESSAGES):
                self._events.take(message)
            elif isinstance(message, messages.LikelyAnswer):
                self._awaits_likely = False
                self.transfers.described(message.files, self._width, self._likely_blocks)
            elif isinstance(message, messages.LikelyBlocks):
                self._likely_blocks = message
            else:
                is_answer = True
            # When the disk is full, the comparison goes on alone: it tells what is to be deleted.
            if self._full is None:
                try:
                    if is_answer:
                        yield from self.transfers.take(received)
                    if not self._awaits_likely:
                        yield from self.transfers.pump(received.round + 1)
                except OutOfSpaceError as error:
                    if self._totals is not None:
                        raise
                    self._full = error
            if self._events.waiting:
                yield from self._events.send_waiting(received.round + 1)
        return round_

    def _compare_unlisted(self) -> None:
        """Compare directories that the source could not read as if they were empty, with --ignore-errors."""
        if self._options.delete and self._options.ignore_errors:
            for path in self.directories.unlisted():
                found = self._own_tree.listing(path, self.directories.restore_permissions_later)
                self.directories.compare(path, len(self.manifest), EMPTY_LISTING, found)

    def _comparison_done(self, totals: _Totals) -> None:
        """Note that all directories were compared, and start what had to wait for that. Raises
        OutOfSpaceError if the disk was full."""
        self._totals = totals
        self.directories.skip_unlisted()
        full = self._full or self.directories.full
        if full is not None:
            raise full
        self.find_missing()
        if self._links is not None and self.skipped is not None:
            self._links = self.skipped.remaining(self._links)
        if self._links:
            self.landing.link_paths_known(self._link_paths)
        deletes = len(self.extraneous.found) if self._options.delete else 0
        extra = self.extraneous.found

        def removed_files() -> RemovedFiles:
            from rdc.session.transfer.renames import RemovedFiles

            filters = self._context.filters.protected.movable
            listed = self.extraneous.identity
            return RemovedFiles(self._root, filters, extra, self._preserved, listed, self._boundary)

        self.transfers.plan_known(
            removed_files,
            rename=self.extraneous.may_go(totals.entries, totals.read_errors),
            names=self._names_here if self._links else None,
        )
        self._events.report(PlanKnown(self.landing.planned, self.progress.total_bytes, deletes))

    def _pass_guard(self, entries: int | None) -> None:
        """Begin with the changes, unless a guard stops the run. `entries`: of the destination, if known."""
        if not self.pass_guard(entries):
            self._links = self._xattrs = None

    def _link_paths(self, file: int) -> Iterator[bytes]:
        """Yield the paths that will become hard links to a file."""
        if self._links is not None:
            yield from (self.manifest.entry(name).path for name in self._links.names(file))

    def _names_here(self, file: int) -> tuple[bytes, ...]:
        """Local paths among a new file's hard links that may have its content."""
        from rdc.session.destination.finish import names_here

        return () if self._links is None else names_here(self._root, self.manifest, self._links, file)

    def _compare_by_manifest(self, round_: int) -> Conversation[int]:
        """Walk this side's tree while the source walks its own, and compare the two manifests, or ask for
        the source's listing. Makes no parts if the trees need nothing, or before a listing comes."""
        yield Flush()
        own = self._own = self._own_tree.walk()
        offer = yield from receive_offer(
            self._events, self._preserved, self._in_sync.note_mount_points, self._owners
        )
        manifest, round_ = offer.manifest, offer.round
        totals = _Totals(manifest.entries, manifest.files, manifest.bytes, manifest.read_errors)
        if self._name is None and self._needs_nothing(own, manifest.root):
            self._totals = totals
            self._events.report(PlanKnown(0, 0, 0))
            return round_
        if not self._is_manifest_worthwhile(manifest):
            return (yield from self._ask_listing(round_))
        from rdc.session.destination.comparison import ManifestComparison

        comparison = ManifestComparison(
            own,
            self._own_tree,
            self.manifest,
            self._start,
            self._context.has_top,
            self._preserved,
            self._links,
            self._xattrs,
            self._events,
            self._owners,
        )
        secret = self._context.secret
        found = yield from comparison.learn(
            manifest,
            secret,
            round_,
            top=offer.first,
            likely=self._likely,
            meter=self._context.meter,
            meanwhile=self._build,
        )
        round_ = found.round
        if not self.is_built:
            self._build()
        if not comparison.is_usable(manifest):
            if found.awaits_likely:
                yield from drop_trees(self._events, (yield from receive_likely(self._events)).trees)
            self.manifest.clear()
            return (yield from self._ask_listing(round_))
        mount_points, identities = self._in_sync.mount_points, self._own_tree.identities
        if identities is not None and not self._context.filters.listed:
            self.extraneous.take_walk(own, identities, self._own_tree.unreadable)
        yield from comparison.compare(self.compared, self.extraneous, mount_points, round_)
        self._xattrs_were_right = self._xattrs is not None
        self._pass_guard(len(own))
        self._comparison_done(totals)
        if found.awaits_likely:
            likely = yield from receive_likely(self._events)
            self.transfers.described(likely.trees, self._width, likely.blocks)
        yield from self.transfers.pump(round_)
        yield from self._events.send_waiting(round_)
        return round_

    def _likely(self, own: Manifest, rows: Iterable[range]) -> messages.LikelyRequest | None:
        """Return the request for the trees of likely files, where the trees differ in these rows of `own`;
        None for none."""
        context = self._context
        newest = newest_file(own, rows)
        if newest is None or context.whole or context.dry or not context.uses_content:
            return None
        from rdc.plan.ways import prefers_whole

        if context.line is not None and prefers_whole(context.line):
            return None
        from rdc.signature.codec import reference_width

        self._width = reference_width(max(own.sizes_of(range(len(own)))), context.signer.params.mean)
        return messages.LikelyRequest(newest, self._width, LEAF_BLOCK)

    def _needs_nothing(self, own: Manifest, source_root: bytes) -> bool:
        """Return whether the trees are equal, or an earlier run found that this pair of trees needs
        nothing."""
        own_root = self._own_tree.digest(own, self._preserved, self._owners)
        equal = own_root == source_root and not (self._own_tree.unreadable and self._options.delete)
        if not (equal or self._in_sync.is_in_sync(source_root, own_root)):
            return False
        self._in_sync.again(source_root, own_root)
        return True

    def _is_manifest_worthwhile(self, offered: messages.Manifest) -> bool:
        """Return whether asking for the source's manifest can work and costs less than asking for its
        listing."""
        return (
            self._name is None  # a manifest does not show one file under another name
            and offered.entries > SMALL_MANIFEST
            and offered.further == self._own_tree.further[:FURTHER_BYTES]
        )

    def _ask_listing(self, round_: int) -> Conversation[int]:
        """Fall back to the source's full listing."""
        # Each directory is read again when its listing comes: the walk is old by then.
        own, self._own = self._own, None
        yield Send(messages.Describe(True, self._context.described), round_)
        request = None if own is None else self._likely(own, (range(len(own)),))
        if request is not None:
            self._awaits_likely = True
            yield Send(request, round_)
        yield from self._context.meter.asked()
        return round_

    @property
    def _may_be_in_sync(self) -> bool:
        """Return whether the run was clean but may have left extraneous entries or special files."""
        return (
            self.is_built
            and not (
                self._options.hard_links
                or self._xattrs is not None
                or self._events.codes
                or self._options.alternates is not None
                or self._options.dry_run
                or self._name is not None
            )
            and self._totals is not None
            and not self._totals.read_errors
            and (self.extraneous.differ or Kind.SPECIAL in self.manifest.kinds)
        )
