"""The source's tree as the destination gets to know it: listed whole, or as a manifest to be looked into."""

from __future__ import annotations

from collections import deque

from rdc.errors import ExitCode, ProtocolError, RdcError
from rdc.limits import (
    ATTRIBUTE_MESSAGE_BYTES,
    FILES_PER_MESSAGE,
    FURTHER_BYTES,
    ITEMS_BYTES,
    ITEMS_PER_MESSAGE,
    MOUNT_POINTS,
    ROWS_PER_PART,
    ROWS_TEXT_BYTES,
    SMALL_MANIFEST,
    TIER_NODES,
    TIER_NODES_WHOLE,
    TOP_NODES,
)
from rdc.model.attributes import AttributeKinds
from rdc.model.entries import Kind
from rdc.model.kept import Kept
from rdc.progress import Problem
from rdc.protocol.listings import slice_listing
from rdc.protocol.messages import (
    EntryAttributes,
    HardLinks,
    ListingEnd,
    ListingPart,
    MountPoints,
    RowsPart,
    RowsRequest,
    TierAnswer,
    TierRequest,
    TopTier,
)
from rdc.protocol.messages import Manifest as ManifestMessage
from rdc.protocol.rows import Rows, Segment
from rdc.session.commands import Flush, Send
from rdc.tree.fold import GROUPS, Fold, Group
from rdc.tree.manifest import Manifest, covering_root, further_digest
from rdc.tree.walk import PackedWalk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rdc.model.entries import PackedInodes, PackedListing
    from rdc.progress import Event
    from rdc.session.boundary import Boundary
    from rdc.session.commands import Conversation
    from rdc.session.news import News
    from rdc.session.source_tree import SourceTree
    from rdc.session.tree_attributes import EntrySet, TreeAttributes
    from rdc.tree.filters import FilterList
    from rdc.tree.fold import Tier
    from rdc.tree.hard_links import LinkTable

__all__ = ["Description", "no_file"]

DIRECTORIES_PER_LOOK = 64
"""Directories between two looks at whether a listing is wanted instead: about 2 ms."""

ENTRIES_PER_LOOK = 64
"""Entries of a listing between two looks at what is asked for meanwhile: a look costs as much as five do, and
files wait no longer than one large directory of them takes."""


class Description:
    """Walks the tree as it is asked to, and keeps what it found: entries are named by their row."""

    def __init__(
        self,
        tree: SourceTree,
        filters: FilterList,
        secret: bytes,
        news: News,
        boundary: Boundary | None = None,
        *,
        hard_links: bool = False,
    ) -> None:
        """`boundary`: walks do not go beyond it. `hard_links`: they are told of."""
        self.kinds = AttributeKinds.NONE
        """Extended attributes that are told of; to be set before anything is."""
        self._attributes: TreeAttributes | None = None
        self._links: LinkTable | None = None
        if hard_links:
            from rdc.tree.hard_links import LinkTable

            self._links = LinkTable()
        self._inodes: PackedInodes | None = None
        """Of the directory that comes next."""
        self._tree = tree
        self._boundary = boundary
        self._filters = filters
        self._secret = secret
        self._news = news
        self.manifest = Manifest()
        self._fold: Fold | None = None
        self._kept = Kept(owner=False)
        self._reported: set[bytes] = set()
        self.read_errors = 0
        """Directories that could not be read, in whatever walk."""

    @property
    def files(self) -> int:
        """Regular files walked so far."""
        return self.manifest.kinds.count(Kind.FILE)

    @property
    def total_bytes(self) -> int:
        """Their bytes."""
        return self.manifest.total_size

    def _walk(self) -> PackedWalk:
        self.manifest.clear()
        self._fold = None
        if self.kinds:
            from rdc.session.tree_attributes import TreeAttributes

            self._attributes = TreeAttributes(self._tree.root, self.kinds, self._report)
        enter = on_inodes = None
        if self._links is not None:
            self._links.clear()
            on_inodes = self._take_inodes
        if self._boundary is not None:
            self._boundary.beyond.clear()
            enter = self._boundary.enters
        return PackedWalk(
            self._tree.root,
            self._filters,
            self._report,
            self._tree.only,
            enter=enter,
            on_inodes=on_inodes,
        )

    def _take_inodes(self, path: bytes, inodes: PackedInodes) -> None:
        self._inodes = inodes

    def _tell_links(self, start: int, stop: int, round_: int) -> Conversation[None]:
        """Those of entries [start, stop), which come next."""
        if self._links is None:
            return
        pairs = self._links.between(start, stop)
        for at in range(pairs.start, pairs.stop, FILES_PER_MESSAGE):
            some = slice(at, min(at + FILES_PER_MESSAGE, pairs.stop))
            yield Send(HardLinks(tuple(self._links.files[some]), tuple(self._links.firsts[some])), round_)

    def _tell_attributes(self, sets: Sequence[EntrySet], round_: int) -> Conversation[None]:
        """Of entries that come next."""
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
            yield Send(EntryAttributes(tuple(ordinals), tuple(numbers), tuple(distinct)), round_)

    def _tell_mount_points(self, round_: int) -> Conversation[None]:
        """Whose entries are missing from what was walked; most walks have none."""
        left = deque(self._boundary.beyond if self._boundary is not None else ())
        if len(left) > MOUNT_POINTS:
            raise RdcError(
                f"{len(left)} directories of the source lie on other file systems,"
                f" {MOUNT_POINTS} are the most; exclude some",
                code=ExitCode.PARTIAL,
            )
        while left:
            paths, size = [left.popleft()], 0
            while left and len(paths) < ITEMS_PER_MESSAGE:
                size += len(paths[-1]) + 1
                if size + len(left[0]) + 1 > ITEMS_BYTES:
                    break
                paths.append(left.popleft())
            yield Send(MountPoints(tuple(paths)), round_)

    def _report(self, event: Event) -> None:
        """A second walk, where the manifest did not do, repeats no reports, and makes good for no error of
        the first: what was missing once may be missing again."""
        if isinstance(event, Problem) and event.path not in self._reported:
            self._reported.add(event.path)
            self.read_errors += event.code is not ExitCode.OK
            self._news.report(event)

    def _add(self, path: bytes, listing: PackedListing) -> list[EntrySet]:
        """Takes the next directory; what is to be told of its extended attributes."""
        found = []
        if self._attributes is not None:
            found = self._attributes.read(path, len(self.manifest), listing)
        if self._links is not None and self._inodes is not None:
            self._links.add(len(self.manifest), listing.kinds, self._inodes)
        self.manifest.add(path, listing)
        return found

    def send_listing(self, round_: int, serve: Callable[[], Conversation[None]]) -> Conversation[None]:
        """The listing, directory by directory; `serve` answers now and then what is asked meanwhile."""
        directories = looked = 0
        walk = self._walk()
        if self._attributes is not None:
            yield from self._tell_attributes(self._attributes.begin(top=self._tree.only is None), round_)
        for path, packed in walk:
            at = len(self.manifest)
            sets = deque(self._add(path, packed))
            parts = list(slice_listing(packed.unpacked()))
            for i, part in enumerate(parts):
                yield from self._tell_links(at, at + len(part), round_)
                these = []
                while sets and sets[0].ordinal <= at + len(part):
                    these.append(sets.popleft())
                yield from self._tell_attributes(these, round_)
                yield Send(ListingPart(directories, path, at, i == len(parts) - 1, part), round_)
                at += len(part)
            directories += 1
            yield from self._news.tell(round_)
            if at - looked >= ENTRIES_PER_LOOK:
                looked = at
                yield from serve()
        yield from self._news.tell(round_)
        yield from self._tell_mount_points(round_)
        totals = (directories, len(self.manifest), self.files, self.total_bytes, self.read_errors)
        yield Send(ListingEnd(*totals), round_)

    def offer(
        self,
        kept: Kept,
        round_: int,
        declined: Callable[[], Conversation[bool]] | None = None,
        *,
        again: bool = False,
    ) -> Conversation[bool]:
        """The manifest's root, to be looked into only where it differs. `declined` is asked now and then:
        where it says so, the walk ends early, and False is what comes of it. `again`: after one that was not
        what the destination wants. Its top, sent in vain, is not sent a second time unasked."""
        self.kinds = kept.attributes
        walk = self._walk()
        if self._attributes is not None:
            self._attributes.begin(top=self._tree.only is None)
        for number, (path, listing) in enumerate(walk):
            if declined is not None and number % DIRECTORIES_PER_LOOK == 0 and (yield from declined()):
                return False
            self._add(path, listing)
        self._kept = kept
        yield from self._news.tell(round_)
        yield from self._tell_mount_points(round_)
        top = None if self._tree.only is not None else self._tree.root.metadata(b"")
        links = None if self._links is None else self._links.digest(self.manifest)
        further = further_digest(links, None if self._attributes is None else self._attributes.digest())
        root = covering_root(self.manifest.root(top, kept), further)
        totals = (len(self.manifest), self.files, self.total_bytes, self.read_errors)
        yield Send(ManifestMessage(root, *totals, kept, further[:FURTHER_BYTES]), round_)
        if len(self.manifest) > SMALL_MANIFEST and not again:
            # An equal tree needs no more: it must not wait for the fold.
            yield Flush()
            yield Send(self._top(), round_)
        return True

    def _top(self) -> TopTier:
        tiers = self._tiers()
        level = next(level for level, tier in enumerate(tiers) if len(tier) <= TOP_NODES)
        references = tiers[level].references(Group.WHOLE, self._secret, range(len(tiers[level])))
        return TopTier(level, references)

    def _tiers(self) -> list[Tier]:
        """Folded when the first node is asked for: an unchanged tree never is."""
        if self._fold is None:
            self._fold = Fold(self.manifest, self._kept)
        return self._fold.tiers

    def send_tier(self, message: TierRequest, round_: int) -> Conversation[None]:
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
        references = b"".join(
            tier.references(group, self._secret, span)
            for group in GROUPS
            if group & message.groups
            for span in spans
        )
        firsts, counts = tuple(span.start for span in spans), tuple(map(len, spans))
        yield Send(TierAnswer(level, firsts, counts, references), round_)

    def send_rows(self, message: RowsRequest, round_: int) -> Conversation[None]:
        tiers = self._tiers()
        if message.level >= len(tiers) or message.nodes[-1] >= len(tiers[message.level]):
            raise ProtocolError(
                f"the far side asked for rows of tier {message.level}, node {message.nodes[-1]}"
            )
        groups = Group(message.groups)
        bundle = _Bundle(self.manifest, groups, owner=self._kept.owner)
        for node in message.nodes:
            span = tiers[message.level].span(node)
            first, most = span.start, ROWS_PER_PART
            while first < span.stop:
                stop = min(first + most, span.stop)
                segments = self._segments(first, stop) if groups & Group.NAMES else ()
                text = sum(len(s.path) + len(s.names) + len(s.targets) for s in segments)
                if text > ROWS_TEXT_BYTES and stop - first > 1:
                    # Paths, names or targets of thousands of bytes.
                    most = (stop - first) // 2
                    continue
                if bundle.full(stop - first, text):
                    yield Send(bundle.message(), round_)
                    bundle = _Bundle(self.manifest, groups, owner=self._kept.owner)
                bundle.add(first, stop, segments, text, complete=stop == span.stop)
                first, most = stop, min(2 * most, ROWS_PER_PART)
        yield Send(bundle.message(), round_)

    def _segments(self, first: int, stop: int) -> tuple[Segment, ...]:
        return tuple(
            Segment(path, part.count, part.names, part.targets)
            for path, part in self.manifest.parts(first, stop)
        )


class _Bundle:
    """Entries of several nodes on their way into one message."""

    __slots__ = ("_complete", "_counts", "_groups", "_manifest", "_owner", "_rows", "_segments", "_text")

    def __init__(self, manifest: Manifest, groups: Group, *, owner: bool) -> None:
        self._manifest = manifest
        self._groups = groups
        self._owner = owner
        self._counts: list[int] = []
        self._rows: list[range] = []
        self._segments: list[Segment] = []
        self._text = 0
        self._complete = True

    def full(self, rows: int, text: int) -> bool:
        """Whether so many more rows, with so many bytes of text, have no room."""
        return bool(self._counts) and (
            sum(self._counts) + rows > ROWS_PER_PART
            or self._text + text > ROWS_TEXT_BYTES
            or len(self._counts) >= TIER_NODES
        )

    def add(self, first: int, stop: int, segments: Iterable[Segment], text: int, *, complete: bool) -> None:
        """Takes rows [first, stop) of one node."""
        self._counts.append(stop - first)
        self._rows.append(range(first, stop))
        self._segments += segments
        self._text += text
        self._complete = complete

    def message(self) -> RowsPart:
        manifest, groups = self._manifest, self._groups
        names, attributes = bool(groups & Group.NAMES), bool(groups & Group.ATTRIBUTES)
        rows = Rows(
            sum(self._counts),
            tuple(self._segments),
            self._column(names, manifest.kinds, 1),
            self._column(attributes, manifest.modes, 2),
            self._column(attributes, manifest.sizes, 8),
            self._column(attributes and self._owner, manifest.uids, 4),
            self._column(attributes and self._owner, manifest.gids, 4),
            self._column(bool(groups & Group.MTIMES), manifest.mtimes, 8),
        )
        return RowsPart(tuple(self._counts), self._complete, rows)

    def _column(self, wanted: bool, column: bytearray, width: int) -> bytes:
        if not wanted:
            return b""
        return b"".join(column[width * rows.start : width * rows.stop] for rows in self._rows)


def no_file(row: int) -> ProtocolError:
    """The far side asks for the content of an entry that has none."""
    return ProtocolError(f"the far side asked for entry {row}, which is no listed regular file")
