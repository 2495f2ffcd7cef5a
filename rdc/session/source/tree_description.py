"""Description of the source's tree: a whole listing, or a manifest that is sent where the trees differ."""

from __future__ import annotations

from collections import deque

from rdc.errors import ExitCode, ProtocolError
from rdc.limits.sessions import SMALL_MANIFEST
from rdc.limits.wire import (
    ATTRIBUTE_MESSAGE_BYTES,
    FILES_PER_MESSAGE,
    FURTHER_BYTES,
    ROW_REQUESTS,
    ROWS_FREELY,
    ROWS_PER_PART,
    ROWS_TEXT_BYTES,
    TIER_NODES_WHOLE,
    TOP_NODES,
)
from rdc.model.entries import NODES, Kind, PackedInodes, PackedListing
from rdc.model.preserved import AttributeKinds, Preserved
from rdc.progress import Problem
from rdc.protocol import messages
from rdc.protocol.messages.field_types import Segment, slice_listing
from rdc.session.runtime.commands import Flush, Send
from rdc.session.source.rows_message import RowsMessage
from rdc.tree.fold import GROUPS, Fold, Group
from rdc.tree.manifest import Manifest, covering_root, further_digest
from rdc.tree.walk import Walk, passed_over

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Sequence

    from rdc.progress import Event
    from rdc.session.runtime.commands import Conversation
    from rdc.session.runtime.event_relay import EventRelay
    from rdc.session.source.owner_names import OwnerNames
    from rdc.session.trees.mount_boundary import MountBoundary
    from rdc.session.trees.source_removal import SourceRemoval
    from rdc.session.trees.source_tree import SourceTree
    from rdc.session.trees.tree_xattrs import EntrySet, TreeXattrs
    from rdc.tree.filters import FilterList
    from rdc.tree.fold import Tier
    from rdc.tree.hard_links import LinkTable

__all__ = ["Description"]

DIRECTORIES_PER_LOOK = 64
"""Directories walked between two checks whether the destination wants a listing instead: about 2 ms."""

ENTRIES_PER_LOOK = 64
"""Entries of a listing sent between two checks for requests. A check costs as much as five entries."""


class Description:
    """Walks the tree, remembers its entries by row, and sends what the destination asks for."""

    def __init__(
        self,
        tree: SourceTree,
        filters: FilterList,
        secret: bytes,
        events: EventRelay,
        boundary: MountBoundary | None = None,
        *,
        hard_links: bool = False,
        owners: OwnerNames | None = None,
        removal: SourceRemoval | None = None,
    ) -> None:
        """`secret`: the session's. `boundary`: walks do not cross it. `hard_links`: links are announced.
        `owners`: announces the names of users and groups; None: they are not announced. `removal`: is told
        which inodes are listed; None: nothing is removed."""
        self._owners = owners
        self._removal = removal
        self._kinds = AttributeKinds.NONE
        self._attributes: TreeXattrs | None = None
        self._links: LinkTable | None = None
        if hard_links:
            from rdc.tree.hard_links import LinkTable

            self._links = LinkTable(aliased=tree.root.reads.followed is not None)
        self._tree = tree
        self._boundary = boundary
        self._filters = filters.at_source(tree.filtered)
        self._unbound = filters
        self._secret = secret
        self._events = events
        self.manifest = Manifest()
        self._fold: Fold | None = None
        self._preserved = Preserved(owner=False)
        """What both sides preserve of entries, and so what is announced."""
        self._requested = 0
        """Rows and nodes of the manifest requested so far."""
        self._reported: set[bytes] = set()
        """Paths with a reported problem."""
        self.read_errors = 0
        """The number of directories that could not be read in any walk."""

    @property
    def files(self) -> int:
        """The number of regular files walked so far."""
        return self.manifest.kinds.count(Kind.FILE)

    @property
    def total_bytes(self) -> int:
        """The total size of these files, in bytes."""
        return self.manifest.total_size

    def take(self, tree: SourceTree) -> None:
        """Describe from the next walk on what `tree` shows, the same tree."""
        self._tree = tree

    def keep(self, preserved: Preserved) -> None:
        """Sets what both sides preserve of entries. Call it before anything is sent."""
        self._preserved = preserved
        self._kinds = preserved.attributes

    def _walk(self) -> Walk:
        """Starts a new walk and forgets the entries of the last one."""
        self.manifest.clear()
        self._fold = None
        for problem in self._tree.problems:
            self._report(problem)
        if not self._tree.prunes:
            return self._begin_walk()
        from rdc.tree.pruned_directories import lasting_directories

        return self._begin_walk(lasting_directories(self._begin_walk(), self._unbound, self._tree.filtered))

    def _begin_walk(self, lasting: Container[bytes] | None = None) -> Walk:
        """Starts a walk. `lasting`: as in Walk."""
        followed = self._tree.root.reads.followed
        if followed is not None:
            followed.begin(self._report, self._filters.excluded)
        if self._kinds:
            from rdc.session.trees.tree_xattrs import TreeXattrs

            self._attributes = TreeXattrs(self._tree.root, self._kinds, self._report)
        enter = None
        if self._links is not None:
            self._links.clear()
        if self._removal is not None:
            self._removal.begin()
        if self._boundary is not None:
            self._boundary.beyond.clear()
            enter = self._boundary.enters
        return Walk(
            self._tree.root,
            self._filters,
            self._report,
            self._tree.only,
            enter=enter,
            on_lookalike=self._report_left_out,
            selection=self._tree.selection,
            lasting=lasting,
        )

    def _send_links(self, start: int, stop: int, round_: int) -> Conversation[None]:
        """Sends the hard links of entries [start, stop), which are sent next."""
        if self._links is None:
            return
        pairs = self._links.between(start, stop)
        for at in range(pairs.start, pairs.stop, FILES_PER_MESSAGE):
            some = slice(at, min(at + FILES_PER_MESSAGE, pairs.stop))
            yield Send(
                messages.HardLinks(tuple(self._links.files[some]), tuple(self._links.firsts[some])), round_
            )

    def _send_attributes(self, sets: Sequence[EntrySet], round_: int) -> Conversation[None]:
        """Sends the extended attributes of entries that are sent next."""
        at = 0
        while at < len(sets):
            ordinals: list[int] = []
            numbers: list[int] = []
            distinct: dict[bytes, int] = {}
            size = 0
            for one in sets[at : at + FILES_PER_MESSAGE]:
                size += 0 if one.packed in distinct else len(one.packed)
                if size > ATTRIBUTE_MESSAGE_BYTES and ordinals:
                    break
                ordinals.append(one.ordinal)
                numbers.append(distinct.setdefault(one.packed, len(distinct)))
            at += len(ordinals)
            yield Send(messages.EntryAttributes(tuple(ordinals), tuple(numbers), tuple(distinct)), round_)

    def _send_mount_points(self, round_: int) -> Conversation[None]:
        if self._boundary is not None:
            from rdc.session.source.mount_points import send_mount_points

            yield from send_mount_points(self._boundary, round_)

    def _report(self, event: Event) -> None:
        """Reports a problem of a walk, once per path: what was missing once may be missing again."""
        if isinstance(event, Problem) and event.path not in self._reported:
            self._reported.add(event.path)
            self.read_errors += event.code is not ExitCode.OK
            self._events.report(event)

    def _report_left_out(self, path: bytes) -> None:
        """Reports an entry that no sync transfers. The destination deletes no entry with such a name."""
        if path not in self._reported:
            self._reported.add(path)
            self._events.report(Problem(ExitCode.PARTIAL, path, passed_over(path)))

    def _add(self, path: bytes, listing: PackedListing, inodes: PackedInodes) -> list[EntrySet]:
        """Adds a directory to the manifest and returns the extended attributes to send."""
        found = []
        if self._attributes is not None:
            found = self._attributes.read(path, len(self.manifest), listing)
        if self._links is not None:
            self._links.add(len(self.manifest), listing.kinds, inodes)
        if self._removal is not None:
            self._removal.note(inodes)
        self.manifest.add(path, listing)
        return found

    def send_listing(self, round_: int, serve: Callable[[], Conversation[None]]) -> Conversation[None]:
        """Sends the listing, directory by directory. `serve` is called now and then to answer requests."""
        directories = looked = 0
        walk = self._walk()
        if self._attributes is not None:
            yield from self._send_attributes(self._attributes.begin(top=self._tree.has_top), round_)
        for path, found, inodes in walk:
            at = len(self.manifest)
            packed = self._preserved.announced(self._tree.announced(found))
            sets = deque(self._add(path, packed, inodes))
            if self._owners is not None and self._preserved.owner:
                yield from self._owners.send(packed, round_)
            parts = list(slice_listing(packed.unpacked()))
            for i, part in enumerate(parts):
                yield from self._send_links(at, at + len(part), round_)
                these = []
                while sets and sets[0].ordinal <= at + len(part):
                    these.append(sets.popleft())
                yield from self._send_attributes(these, round_)
                yield Send(messages.ListingPart(directories, path, at, i == len(parts) - 1, part), round_)
                at += len(part)
            directories += 1
            yield from self._events.send_waiting(round_)
            if at - looked >= ENTRIES_PER_LOOK:
                looked = at
                yield from serve()
        yield from self._events.send_waiting(round_)
        yield from self._send_mount_points(round_)
        totals = (directories, len(self.manifest), self.files, self.total_bytes, self.read_errors)
        yield Send(messages.ListingEnd(*totals), round_)

    def offer(
        self,
        preserved: Preserved,
        round_: int,
        declined: Callable[[], Conversation[bool]] | None = None,
        *,
        again: bool = False,
    ) -> Conversation[bool]:
        """Walks the tree and sends the manifest's root. The destination then asks for what differs.

        `declined` is called now and then; if it returns true, the walk ends early and this returns False, as
        it does if there are fifos, sockets or devices. None: the destination asked for the offer.
        `again`: an earlier offer did not fit what is preserved. The manifest's top was sent in vain then, and
        is not sent unasked a second time.
        """
        # long because each thing that is announced beside entries is a step
        self.keep(preserved)
        walk = self._walk()
        if self._attributes is not None:
            self._attributes.begin(top=self._tree.has_top)
        as_read = preserved.owner and preserved.group and self._tree.changes is None
        for number, (path, listing, inodes) in enumerate(walk):
            if declined is not None and number % DIRECTORIES_PER_LOOK == 0 and (yield from declined()):
                return False
            shown = listing if as_read else preserved.announced(self._tree.announced(listing))
            self._add(path, shown, inodes)
        if declined is not None and not NODES.isdisjoint(self.manifest.kinds):
            return False  # the far side's Hello says whether it knows such kinds, and has not come
        yield from self._events.send_waiting(round_)
        yield from self._send_mount_points(round_)
        if self._owners is not None and preserved.owner:
            yield from self._owners.send(self.manifest, round_)
        top = preserved.metadata(self._tree.metadata(b"", Kind.DIRECTORY)) if self._tree.has_top else None
        compared = preserved.at_source
        links = None if self._links is None else self._links.digest(self.manifest)
        further = further_digest(links, None if self._attributes is None else self._attributes.digest())
        root = covering_root(self.manifest.root(top, compared), further)
        totals = (len(self.manifest), self.files, self.total_bytes, self.read_errors)
        yield Send(messages.Manifest(root, *totals, preserved, further[:FURTHER_BYTES]), round_)
        if len(self.manifest) > SMALL_MANIFEST and not again:
            # An equal tree needs no more than the root, so the root is sent before the fold is computed.
            yield Flush()
            yield Send(self._top(), round_)
        return True

    def _top(self) -> messages.TopTier:
        """Returns the largest tier with at most TOP_NODES nodes."""
        tiers = self._tiers()
        level = next(level for level, tier in enumerate(tiers) if len(tier) <= TOP_NODES)
        references = tiers[level].references(Group.WHOLE, self._secret, range(len(tiers[level])))
        return messages.TopTier(level, references)

    def _tiers(self) -> list[Tier]:
        """Returns the tiers of nodes over the manifest. They are computed at the first request."""
        if self._fold is None:
            self._fold = Fold(self.manifest, self._preserved.at_source)
        return self._fold.tiers

    def send_tier(self, message: messages.TierRequest, round_: int) -> Conversation[None]:
        """Sends references of requested nodes. Raises ProtocolError if there are no such nodes."""
        tiers = self._tiers()
        if not tiers or (message.nodes and message.level + 1 >= len(tiers)):
            raise ProtocolError(f"the far side asked for manifest tier {message.level} of {len(tiers)}")
        level = min(message.level, len(tiers) - 1)
        tier = tiers[level]
        spans = [range(len(tier))]
        if len(tier) > TIER_NODES_WHOLE and not message.nodes:
            raise ProtocolError(
                f"the far side asked for all {len(tier)} nodes of manifest tier {level} at once"
            )
        if message.nodes:
            above = tiers[level + 1]
            if message.nodes[-1] >= len(above):
                raise ProtocolError(
                    f"the far side asked for manifest node {message.nodes[-1]} of {len(above)}"
                )
            spans = [above.children(node) for node in message.nodes]
        self._charge(sum(map(len, spans)))
        references = b"".join(
            tier.references(group, self._secret, span)
            for group in GROUPS
            if group & message.groups
            for span in spans
        )
        firsts, counts = tuple(span.start for span in spans), tuple(map(len, spans))
        yield Send(messages.TierAnswer(level, firsts, counts, references), round_)

    def send_rows(self, message: messages.RowsRequest, round_: int) -> Conversation[None]:
        """Sends the entries of requested nodes. Raises ProtocolError if there are no such nodes."""
        tiers = self._tiers()
        if message.level >= len(tiers) or message.nodes[-1] >= len(tiers[message.level]):
            raise ProtocolError(
                f"the far side asked for rows of tier {message.level}, node {message.nodes[-1]}"
            )
        self._charge(sum(len(tiers[message.level].span(node)) for node in message.nodes))
        groups = Group(message.groups)
        part_message = RowsMessage(self.manifest, groups, owner=self._preserved.owner)
        for node in message.nodes:
            span = tiers[message.level].span(node)
            first, most = span.start, ROWS_PER_PART
            while first < span.stop:
                stop = min(first + most, span.stop)
                segments = self._segments(first, stop) if groups & Group.NAMES else ()
                text = sum(len(s.path) + len(s.names) + len(s.targets) for s in segments)
                if text > ROWS_TEXT_BYTES and stop - first > 1:
                    # Some paths, names or link targets have thousands of bytes: try half as many rows.
                    most = (stop - first) // 2
                    continue
                if part_message.full(stop - first, text):
                    yield Send(part_message.message(), round_)
                    part_message = RowsMessage(self.manifest, groups, owner=self._preserved.owner)
                part_message.add(first, stop, segments, text, complete=stop == span.stop)
                first, most = stop, min(2 * most, ROWS_PER_PART)
        yield Send(part_message.message(), round_)

    def _charge(self, rows: int) -> None:
        """Charges rows or nodes that are about to be sent.

        Raises ProtocolError if the destination requested the whole manifest several times over.
        """
        self._requested += rows
        if self._requested > ROW_REQUESTS * len(self.manifest) + ROWS_FREELY:
            raise ProtocolError(
                f"the far side asked for {self._requested} rows and nodes of a manifest of"
                f" {len(self.manifest)}: more than {ROW_REQUESTS} times all of it"
            )

    def _segments(self, first: int, stop: int) -> tuple[Segment, ...]:
        """Returns paths, names and link targets of rows [first, stop), by directory."""
        return tuple(
            Segment(path, part.count, part.names, part.targets)
            for path, part in self.manifest.parts(first, stop)
        )
