"""The trees of both sides before anything is compared: the destination's own tree, the
manifests that are offered, and pairs of trees that need nothing.
"""

from __future__ import annotations

from blake3 import blake3

from rdc.errors import ExitCode, FileError, ProtocolError
from rdc.files.base.paths import join
from rdc.lean.records import Record, replace
from rdc.lean.typed import Protocol
from rdc.model.entries import Kind, Listed, Listing, little_endian_integers
from rdc.model.preserved import is_distant
from rdc.model.sync import OPTIONS, SyncOptions
from rdc.progress import Event, Problem
from rdc.protocol.messages import (
    FileFailed,
    LikelyAnswer,
    LikelyBlocks,
    LikelyRequest,
    MountPoints,
    Owners,
    RowsPart,
    RowsRequest,
    TierAnswer,
    TierRequest,
    TopTier,
    TreeAnswer,
)
from rdc.protocol.messages import Manifest as ManifestMessage
from rdc.session.runtime.commands import Conversation, EventRelay, Flush, LineMeter, Receive, Send
from rdc.tree.hard_links import LinkTable, TreeIdentities
from rdc.tree.manifest import Fold, Manifest, RowMap, covering_root, further_digest
from rdc.tree.walk import Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from collections.abc import Set as AbstractSet

    from rdc.files.root.root import Root
    from rdc.model.preserved import Preserved
    from rdc.protocol.connection import Received
    from rdc.protocol.messages import Start
    from rdc.session.transfer.destination import Destination, PartialFiles
    from rdc.session.trees.owner_mapping import OwnerMapping
    from rdc.session.trees.wanted_xattrs import EntrySet, TreeXattrs, WantedXattrs
    from rdc.tree.filters import FilterList


# Pairs of trees that differ although no run has anything to do.
#
# A destination may have extraneous entries, and a source may have special files, which rdc never transfers.
# Comparing such a pair again would cost a descent in each run.


class InSyncStore(Protocol):
    """Remembers keys between runs. It is a cache: a run works without it."""

    def is_in_sync(self, key: bytes) -> bool:
        """Return whether the store has the key."""

    def remember_in_sync(self, key: bytes) -> None:
        """Store the key as the latest."""


class InSyncPair:
    """The pair of trees of one run.

    A pair is stored only if comparing exactly these two manifests finds nothing to do. A later run that meets
    the same two manifests may therefore skip the comparison, whatever happened in between.
    """

    def __init__(
        self,
        in_sync_store: InSyncStore | None,
        root: Root,
        start: Start,
        options: SyncOptions,
        filters: FilterList,
        *,
        preserved: Preserved,
    ) -> None:
        self._store = in_sync_store
        self._root = root
        self._start = start
        self._options = options
        self._filters = filters
        self._preserved = preserved
        self._mount_points: set[bytes] = set()

    @property
    def mount_points(self) -> AbstractSet[bytes]:
        """Mount points that the source did not enter."""
        return self._mount_points

    def note_mount_points(self, paths: Sequence[bytes]) -> None:
        """Add mount points that the source did not enter."""
        self._mount_points.update(paths)

    def is_in_sync(self, source_root: bytes, own_root: bytes) -> bool:
        """Return whether an earlier run found that trees with these manifest roots need nothing."""
        return self._store is not None and self._store.is_in_sync(self._key(source_root, own_root))

    def again(self, source_root: bytes, own_root: bytes) -> None:
        """Mark a known pair as the latest one in the store."""
        if self._store is not None and source_root != own_root:
            self._store.remember_in_sync(self._key(source_root, own_root))

    def remember_in_sync(
        self, wanted: Manifest, before: Manifest | None, changed: AbstractSet[bytes]
    ) -> None:
        """Store the pair after a run without problems, if the trees need nothing now.

        `wanted`: the source's manifest. `before`: the destination's manifest as this run compared it; all
        directories except `changed` are still the same. None: all directories are read again.
        """
        if self._store is None:
            return
        from rdc.plan.compare import difference
        from rdc.session.destination.in_sync_tree import InSyncTree

        tree = InSyncTree(self._root, self._start, self._options, self._filters, preserved=self._preserved)
        own = tree.read(wanted, before, changed)
        if own is None:
            return
        top = None if self._start.only else self._root.metadata(b"")
        source_metadata = None if self._start.only else self._start.metadata
        if top is not None and difference(
            Kind.DIRECTORY, self._start.metadata, top, preserved=self._preserved
        ):
            return
        source_root = wanted.root(source_metadata, self._preserved)
        own_root = own.root(top, self._preserved)
        if source_root != own_root:
            self._store.remember_in_sync(self._key(source_root, own_root))

    def _key(self, source_root: bytes, own_root: bytes) -> bytes:
        """Return the store's key: both roots and the options that a comparison depends on.

        The roots cover the effect of filter rules.
        """
        asked = [
            (name, value)
            for name, declared in OPTIONS.items()
            if declared.pair and (value := getattr(self._options, name)) != declared.default
        ]
        options = repr((asked, self._preserved, self._start.only)).encode()
        if self._options.one_file_system:
            options += repr(sorted(self._mount_points)).encode()
        return blake3(b"rdc in sync 2" + source_root + own_root + options).digest()


# How a destination learns the source's manifest: it asks only for nodes that differ from its own.

NO_OWNERS = "users and groups are not kept, so they are not mapped either: that needs root at DST"
"""The notice of a run that maps owners and keeps none."""


def next_message(events: EventRelay) -> Conversation[Received]:
    """Return the next message that is not an event for the user."""
    while True:
        received = yield Receive()
        if received is not None and not events.take(received.message):
            return received


class Offer(Record):
    """A manifest that the source offered."""

    manifest: ManifestMessage
    round: int
    """The round to go on with."""
    first: bool
    """It was the source's first offer; the topmost nodes follow unasked."""


def receive_offer(
    events: EventRelay,
    preserved: Preserved,
    on_mount_points: Callable[[Sequence[bytes]], None],
    owners: OwnerMapping | None = None,
) -> Conversation[Offer]:
    """Return the source's manifest for what both sides preserve.

    The source sends a first manifest unasked and may have guessed wrong what the destination preserves.
    `on_mount_points`: takes the mount points that the source did not enter. `owners`: takes the names of
    owners.
    """
    first = True
    while True:
        received = yield from next_message(events)
        message = received.message
        if isinstance(message, MountPoints):
            on_mount_points(message.paths)
            continue
        if isinstance(message, Owners) and owners is not None:
            owners.take(message)
            continue
        if isinstance(message, TopTier):
            continue
        if not isinstance(message, ManifestMessage):
            raise ProtocolError(f"expected Manifest, found {type(message).__name__}")
        if message.kept == preserved:
            return Offer(message, received.round + 1, first)
        first = False


def receive_owners(context: Destination, owners: OwnerMapping) -> Conversation[None]:
    """Receive the names of the owners in Start, and note what they become."""
    received = yield from next_message(context.events)
    if not isinstance(received.message, Owners):
        raise ProtocolError(f"expected Owners, found {type(received.message).__name__}")
    owners.take(received.message)
    if not owners.applies:
        context.events.report(Problem(ExitCode.OK, b"", NO_OWNERS))
    context.start = replace(context.start, metadata=owners.metadata(context.start.metadata))


class Discovered(Record):
    """The result of a comparison of two manifests."""

    round: int
    """The round to go on with."""
    awaits_likely: bool
    """The source tells next which files it describes unasked."""


def newest_file(own: Manifest, rows: Iterable[range]) -> int | None:
    """Return the newest mtime of the regular files in these rows of the manifest; None without any, or for a
    distant time."""
    newest = None
    for span in rows:
        kinds = own.kinds[span.start : span.stop]
        mtimes = little_endian_integers("q", own.mtimes[8 * span.start : 8 * span.stop])
        files = [mtime for kind, mtime in zip(kinds, mtimes, strict=True) if kind == Kind.FILE]
        if files:
            newest = max(files) if newest is None else max(newest, *files)
    return None if newest is None or is_distant(newest) else newest


class LikelyFiles(Record):
    """Files that the source describes unasked."""

    trees: tuple[int, ...] = ()
    """The files whose trees come."""
    blocks: LikelyBlocks | None = None
    """The message with the blocks of files, if one came."""


def receive_likely(events: EventRelay) -> Conversation[LikelyFiles]:
    """Receive the answer to a LikelyRequest."""
    blocks = None
    while True:
        message = (yield from next_message(events)).message
        if isinstance(message, LikelyAnswer):
            return LikelyFiles(message.files, blocks)
        if not isinstance(message, LikelyBlocks):
            raise ProtocolError(f"expected LikelyAnswer, found {type(message).__name__}")
        blocks = message


def drop_trees(events: EventRelay, files: Iterable[int]) -> Conversation[None]:
    """Receive and drop the trees of these files, which come unasked."""
    left = set(files)
    while left:
        message = (yield from next_message(events)).message
        if isinstance(message, (FileFailed, TreeAnswer)):
            left.discard(message.file)


def discover(
    own: Manifest,
    entries: int,
    into: Manifest,
    secret: bytes,
    events: EventRelay,
    round_: int,
    *,
    preserved: Preserved,
    top: bool,
    likely: Callable[[Manifest, Sequence[range]], LikelyRequest | None] | None = None,
    meter: LineMeter | None = None,
    meanwhile: Callable[[], None] | None = None,
) -> Conversation[Discovered]:
    """Append the source's manifest, which has `entries` entries, to `into`.

    Short digests may collide, so the caller compares the digest of the whole manifest. `into` stays empty if
    this notices a collision. `top`: the topmost nodes come unasked. `likely`: makes the request for likely
    files from our manifest and those of its rows that may differ; None: there is none. `meter`: takes the
    round trip. `meanwhile`: what the manifests' difference makes necessary; called at most once, while the
    source answers and the meter does not run."""
    # Imported here: in most runs the manifests are equal, or small enough to be listed.
    from rdc.plan.manifest_descent import ManifestDescent

    descent = ManifestDescent(Fold(own, preserved.at_destination), entries, secret, owner=preserved.owner)
    # Both sides fold at the same time: the source after it has sent its offer, this side meanwhile.
    descent.prepare()
    if top:
        received = yield from next_message(events)
        first = received.message
        if not isinstance(first, TopTier):
            raise ProtocolError(f"expected the top of the manifest, found {type(first).__name__}")
        descent.take_top(first.level, first.references)
    asked = awaits_likely = is_timed = False
    while True:
        for ask in descent.questions():
            kind = RowsRequest if ask.rows else TierRequest
            yield Send(kind(ask.level, ask.nodes, int(ask.groups)), round_)
        if likely is not None and not asked and descent.awaits_rows:
            asked = True
            request = likely(own, descent.differing())
            if request is not None:
                awaits_likely = True
                yield Send(request, round_)
        if descent.complete:
            break
        if meter is not None and not is_timed:
            is_timed = True  # later questions go out while answers are under way
            yield from meter.asked()
        elif meanwhile is not None:
            yield Flush()
            meanwhile()
            meanwhile = None
        received = yield from next_message(events)
        if meter is not None:
            yield from meter.answered()
        round_ = max(round_, received.round + 1)
        message = received.message
        if isinstance(message, TierAnswer):
            descent.take_tier(message.level, message.firsts, message.counts, message.references)
        elif isinstance(message, RowsPart):
            descent.take_rows(message.rows, message.counts, last=message.last)
        else:
            raise ProtocolError(f"expected manifest nodes, found {type(message).__name__}")
    if not descent.collided:
        descent.assemble(into)
    return Discovered(round_, awaits_likely)


# Reads the destination's own tree: walks it for a manifest, or lists single directories.


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
            from rdc.session.trees.wanted_xattrs import TreeXattrs

            self._attributes = TreeXattrs(root, kinds)
        self.identities: TreeIdentities | None = None
        """The entries that the last walk found; None: none was begun."""
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
        """Return the manifest of the whole tree."""
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
            for listed in walk.many(single=attributes is not None):
                if links is not None:
                    links.add(len(manifest), listed.listing.kinds, listed.inodes)
                if attributes is not None:
                    for path in listed.paths:
                        self._hold(attributes.read(path, len(manifest), listed.listing))
                manifest.add_many(listed)
                identities.add(listed.inodes)
        except FileError:
            self.unreadable.add(b"")
        return manifest

    def digest(self, manifest: Manifest, preserved: Preserved, owners: OwnerMapping | None = None) -> bytes:
        """Return the digest to compare with the source's. `manifest`: of the last walk. `owners`: if owners
        change, it gets the source's."""
        top = self._root.metadata(b"") if self._has_top else None
        if owners is not None and owners.changes:
            owners.unmapped(manifest)
            top = None if top is None else owners.as_at_source(top)
        links = None if self._links is None else self._links.digest(manifest)
        self.further = further_digest(links, None if self._attributes is None else self._attributes.digest())
        return covering_root(manifest.root(top, preserved.at_destination), self.further)

    def _hold(self, sets: Iterable[EntrySet]) -> None:
        """Store attributes, unless they become too many."""
        if self._sets is not None and not self._sets.hold(sets):
            self._sets = None

    def hand_over(
        self, own: Manifest, wanted: Manifest, links: LinkTable | None, attributes: WantedXattrs | None
    ) -> bool:
        """Copy the links and attributes of the own tree to the entries of `wanted` with the same paths.

        The caller has found that `further` is equal on both sides. `own`: the manifest of the last walk.
        Returns False if copying is not possible.
        """
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
        """Return the current listing of one directory; report a problem and return None if it cannot be
        read.

        If only the directory's mode keeps its owner out, the owner borrows permissions. `on_borrowed` then
        takes the path, so that the run restores the mode at the end.
        """
        try:
            listed = self._listed(path, on_borrowed)
        except FileError as error:
            from rdc.session.destination.deletion import writing_code

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
            from rdc.session.destination.deletion import borrow_permissions

            closed = isinstance(error.__cause__, PermissionError) and not self._dry
            if not (closed and borrow_permissions(self._root, path)):
                raise
            on_borrowed(path)
            return self._root.listed(path)

    def _note(self, event: Event) -> None:
        """Note directories that the walk could not read."""
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self.unreadable.add(event.path_bytes)
            self.reasons[event.path_bytes] = event.message
