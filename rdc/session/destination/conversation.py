"""The destination's half of a sync: asks the source to describe its tree, compares, and drives the rest.

An empty destination asks for the listing, and for contents while the listing arrives. Otherwise both sides
walk their trees at the same time and compare the digests of their manifests. If those differ, a descent finds
the directories that differ. From there on both ways are one.
"""

from __future__ import annotations

from rdc.errors import ExitCode, OutOfSpaceError, ProtocolError
from rdc.limits.sessions import SMALL_MANIFEST
from rdc.limits.wire import FURTHER_BYTES
from rdc.model.entries import EMPTY_LISTING, Kind
from rdc.progress import PlanKnown, Problem
from rdc.protocol import messages
from rdc.records import dataclass
from rdc.session.destination.in_sync_pairs import InSyncPair
from rdc.session.destination.manifest_exchange import receive_offer, receive_owners
from rdc.session.destination.own_tree import OwnTree
from rdc.session.landing.partial_files import PartialFiles, left_alone
from rdc.session.runtime.commands import Flush, Receive, Send
from rdc.session.trees.destination_root import unkept_attributes
from rdc.tree.manifest import Manifest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.session.destination.context import DestinationContext
    from rdc.session.destination.destination_parts import DestinationParts
    from rdc.session.destination.in_sync_pairs import InSyncStore
    from rdc.session.renames.removed_files import RemovedFiles
    from rdc.session.runtime.commands import Conversation
    from rdc.session.trees.mount_boundary import MountBoundary
    from rdc.session.trees.wanted_xattrs import WantedXattrs
    from rdc.tree.hard_links import LinkTable

__all__ = ["Destination"]


@dataclass(frozen=True, slots=True)
class _Totals:
    """What the source announced about its whole tree."""

    entries: int
    files: int
    bytes: int
    read_errors: int


class Destination:
    """One destination conversation. Before `run`, the caller sent Describe(whole, kept) to the source."""

    def __init__(
        self,
        context: DestinationContext,
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
        self._context = context
        self._root = destination_root.root
        self._name = destination_root.name
        self._options = options
        self._filters = filters
        self._events = context.events
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
            from rdc.tree.hard_links import LinkTable

            self._links, own_links = LinkTable(), LinkTable()
        self._xattrs: WantedXattrs | None = None
        """The source's extended attributes; None if they are not preserved."""
        if preserved.attributes:
            from rdc.session.trees.wanted_xattrs import WantedXattrs

            self._xattrs = WantedXattrs(preserved.attributes, guards=not options.fake_super)
        unkept = unkept_attributes(options, preserved)
        if unkept is not None:
            self._events.report(Problem(ExitCode.OK, b"", unkept))
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
        self._full: OutOfSpaceError | None = None
        """The error of a full disk that ends the run once all was compared."""
        self._parts: DestinationParts | None = None
        """None: the digests of both manifests showed that nothing is to be done."""

    def _build_parts(self) -> None:
        """Builds the parts that change the tree. Many runs need none, and import none of their modules."""
        from rdc.session.destination.by_listing import ListingIntake
        from rdc.session.destination.destination_parts import DestinationParts

        destination_root, options = self._context.destination_root, self._options
        self._parts = parts = DestinationParts(
            self._context,
            self._partial_files,
            seeks=not (destination_root.new or options.whole_file)
            and (options.visits_all or not self._whole),
            new=destination_root.new,
            boundary=self._boundary,
            links=self._links,
            attributes=self._xattrs,
            live=self._live,
        )
        self._wanted = parts.wanted
        self._landing = parts.landing
        self._progress = parts.progress
        self._router = parts.router
        self._directories, self._compared = parts.directories, parts.compared
        self._extraneous = parts.extraneous
        self._listing_intake = ListingIntake(
            self._wanted,
            parts.compared,
            self._own_tree,
            preserved=self._preserved,
            only=self._start.only,
            name=destination_root.name,
            attributes=self._xattrs,
            owners=self._owners,
            dirlinks=destination_root.dirlinks,
        )

    def _own_boundary(self) -> MountBoundary | None:
        """The mount boundary beyond which nothing is deleted; None for no boundary."""
        if not (self._options.one_file_system and self._options.removes):
            return None
        from rdc.session.trees.mount_boundary import MountBoundary

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
    def withheld(self) -> str | None:
        """Why no deletion was allowed in the end; None: all were."""
        from rdc.session.applying.unarrived import incomplete

        errors = 0 if self._totals is None else self._totals.read_errors
        return incomplete(errors) if self._parts is None else self._extraneous.withheld(errors)

    def run(self, round_: int) -> Conversation[messages.Done]:
        """Compares, fetches what differs, deletes, and ends with the totals of the run."""
        try:
            if self._owners is not None:
                self._context = yield from receive_owners(self._context, self._owners)
            if self._whole:
                self._build_parts()
                round_ = yield from self._receive_until_done(round_)
            else:
                round_ = yield from self._compare_by_manifest(round_)
            if self._totals is None:
                raise ProtocolError("the source did not describe its tree")
            parts = self._parts
            if parts is not None:
                entries, errors = self._totals.entries, self._totals.read_errors
                round_ = yield from parts.complete(entries, errors, self._links, round_, self._fetch)
            self._report_foreign()
            if not self._options.dry_run:
                self._partial_files.sweep()
            if parts is not None:
                self._directories.finish()
                if self._xattrs is not None:
                    top = self._context.start.metadata if self._context.has_top else None
                    parts.attribute(self._xattrs, top, adopted=self._xattrs_were_right)
                round_ = yield from parts.finish(round_)
        except OutOfSpaceError:
            yield from self._end_full(round_)
            raise
        except BaseException:
            if self._parts is not None:
                self._parts.wind_down()
            raise
        if self._may_be_in_sync and self._directories.changed is not None:
            self._in_sync.remember_in_sync(self._wanted, self._own, self._directories.changed)
        yield from self._events.send_waiting(round_)
        if parts is None:
            done = messages.Done(0, 0, 0, 0, 0, self._events.errors, ExitCode.OK)
        else:
            done = parts.account(ExitCode.OK)
        yield Send(done, round_)
        return done

    def _end_full(self, round_: int) -> Conversation[None]:
        """Puts in place what is complete, and tells what stays undeleted, before an error of a full disk ends
        the run."""
        if self._parts is not None:
            self._parts.wind_down()
            if self._totals is not None:
                self._parts.remove_nevertheless(self._totals.entries, self._totals.read_errors)
        yield from self._events.send_waiting(round_)

    def _fetch(self, round_: int) -> Conversation[int]:
        """Fetches and commits the outstanding contents, if any. Returns the round to go on with."""
        if not self._router.idle:
            yield from self._router.pump(round_)
            round_ = yield from self._receive_until_done(round_)
            self._landing.flush()
        return round_

    def _report_foreign(self) -> None:
        """Reports entries with a reserved name that are not rdc's temporaries. --delete keeps them, too.

        A source that must learn of no content is told of no name that it did not send."""
        if not self._context.uses_content:
            return
        code = ExitCode.PARTIAL if self._options.delete else ExitCode.OK
        only, selection = self._start.only or None, self._context.selection
        for path in self._partial_files.foreign(self._filters, only=only, selection=selection):
            self._events.report(Problem(code, path, left_alone(path)))

    # By listing: every directory of the source

    def _receive_until_done(self, round_: int) -> Conversation[int]:
        """Handles messages until the source's tree is known and no answer is outstanding.

        Returns the round to go on with.
        """
        # long because each kind of message is a branch
        while self._totals is None or not (self._full or self._router.idle):
            received = yield Receive()
            if received is None:
                continue
            round_ = max(round_, received.round + 1)
            message = received.message
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
            elif isinstance(message, (messages.TopTier, messages.Manifest)):
                pass  # offered unasked, but this side asked for a listing
            elif isinstance(message, messages.ListingEnd):
                self._listing_intake.end()
                self._pass_guard(None)
                self._compare_unlisted()
                self._comparison_done(
                    _Totals(message.entries, message.files, message.bytes, message.read_errors)
                )
            elif not self._events.take(message):
                yield from self._unless_full(self._router.take(received))
            if self._router.waits:
                yield from self._unless_full(self._router.pump(received.round + 1))
            if self._events.waits:
                yield from self._events.send_waiting(received.round + 1)
        return round_

    def _unless_full(self, steps: Conversation[None]) -> Conversation[None]:
        """Goes on with contents until the disk is full. The comparison then goes on alone: it tells what is
        to be deleted."""
        if self._full is not None:
            return
        try:
            yield from steps
        except OutOfSpaceError as error:
            if self._totals is not None:
                raise
            self._full = error

    def _compare_unlisted(self) -> None:
        """With --ignore-errors, compares directories that the source could not read as if they were empty."""
        if self._options.delete and self._options.ignore_errors:
            for path in self._directories.unlisted():
                found = self._own_tree.listing(path, self._directories.restore_permissions_later)
                self._directories.compare(path, len(self._wanted), EMPTY_LISTING, found)

    def _comparison_done(self, totals: _Totals) -> None:
        """Notes that all directories were compared, and starts what had to wait for that. Raises
        OutOfSpaceError if the disk was full."""
        self._totals = totals
        self._directories.skip_unlisted()
        full = self._full or self._directories.full
        if full is not None:
            raise full
        left = None
        if self._parts is not None:
            self._parts.find_missing()
            left = self._parts.skipped
        if self._links is not None and left is not None:
            self._links = left.remaining(self._links)
        if self._links:
            self._landing.link_paths_known(self._link_paths)
        deletes = len(self._extraneous.found) if self._options.delete else 0
        extra = self._extraneous.found

        def removed_files() -> RemovedFiles:
            from rdc.session.renames.removed_files import RemovedFiles

            filters = self._context.filters.protected.movable
            listed = self._extraneous.identity
            return RemovedFiles(self._root, filters, extra, self._preserved, listed, self._boundary)

        self._router.plan_known(
            removed_files,
            rename=self._extraneous.may_go(totals.entries, totals.read_errors),
            names=self._names_here if self._links else None,
        )
        self._events.report(PlanKnown(self._landing.planned, self._progress.total_bytes, deletes))

    def _pass_guard(self, entries: int | None) -> None:
        """Begins with the changes, unless a guard stops the run. `entries`: of the destination, if known."""
        if self._parts is not None and not self._parts.pass_guard(entries):
            self._links = self._xattrs = None

    def _link_paths(self, file: int) -> Iterator[bytes]:
        """Paths that will become hard links to a file."""
        if self._links is not None:
            yield from (self._wanted.entry(name).path for name in self._links.names(file))

    def _names_here(self, file: int) -> tuple[bytes, ...]:
        """Local paths among a new file's hard links that may have its content."""
        from rdc.session.applying.hard_links import names_here

        return () if self._links is None else names_here(self._root, self._wanted, self._links, file)

    def _compare_by_manifest(self, round_: int) -> Conversation[int]:
        """Walks this side's tree while the source walks its own, and compares the two manifests."""
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
        self._build_parts()
        if not self._is_manifest_worthwhile(manifest):
            return (yield from self._list_all(round_))
        from rdc.session.destination.by_manifest import ManifestComparison

        comparison = ManifestComparison(
            own,
            self._own_tree,
            self._wanted,
            self._start,
            self._context.has_top,
            self._preserved,
            self._links,
            self._xattrs,
            self._events,
            self._owners,
        )
        round_ = yield from comparison.learn(manifest, self._context.secret, round_, top=offer.first)
        if not comparison.is_usable(manifest):
            self._wanted.clear()
            return (yield from self._list_all(round_))
        mount_points, identities = self._in_sync.mount_points, self._own_tree.identities
        if identities is not None and not self._context.filters.listed:
            self._extraneous.take_walk(own, identities, self._own_tree.unreadable)
        yield from comparison.compare(self._compared, self._extraneous, mount_points, round_)
        self._xattrs_were_right = self._xattrs is not None
        self._pass_guard(len(own))
        self._comparison_done(totals)
        yield from self._router.pump(round_)
        yield from self._events.send_waiting(round_)
        return (yield from self._receive_until_done(round_))

    def _needs_nothing(self, own: Manifest, source_root: bytes) -> bool:
        """Whether the trees are equal, or an earlier run found that this pair of trees needs nothing."""
        own_root = self._own_tree.digest(own, self._preserved, self._owners)
        equal = own_root == source_root and not (self._own_tree.unreadable and self._options.delete)
        if not (equal or self._in_sync.is_in_sync(source_root, own_root)):
            return False
        self._in_sync.again(source_root, own_root)
        return True

    def _is_manifest_worthwhile(self, offered: messages.Manifest) -> bool:
        """Whether asking for the source's manifest can work and costs less than asking for its listing."""
        return (
            self._name is None  # a manifest does not show one file under another name
            and offered.entries > SMALL_MANIFEST
            and offered.further == self._own_tree.further[:FURTHER_BYTES]
        )

    def _list_all(self, round_: int) -> Conversation[int]:
        """Falls back to the source's full listing."""
        # Each directory is read again when its listing comes: the walk is old by then.
        self._own = None
        yield Send(messages.Describe(True, self._context.described), round_)
        return (yield from self._receive_until_done(round_))

    @property
    def _may_be_in_sync(self) -> bool:
        """Whether the run was clean but may have left extraneous entries or special files."""
        return (
            self._parts is not None
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
            and (self._extraneous.differ or Kind.SPECIAL in self._wanted.kinds)
        )
