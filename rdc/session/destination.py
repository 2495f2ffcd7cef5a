"""The destination's half of a sync: has the source describe its tree, compares, and drives what follows.

An empty destination asks for the listing at once and for contents as the listing comes. Otherwise both sides
walk their trees at the same time and compare the digests of their manifests; only where they differ does a
descent find the directories to be compared, from which on both ways are one.
"""

from __future__ import annotations

from rdc.errors import ExitCode, ProtocolError
from rdc.limits import FURTHER_BYTES, SMALL_MANIFEST
from rdc.model.entries import Kind
from rdc.progress import PlanKnown, Problem
from rdc.protocol.messages import (
    Describe,
    Done,
    EntryAttributes,
    HardLinks,
    ListingEnd,
    ListingPart,
    MountPoints,
    TopTier,
)
from rdc.protocol.messages import Manifest as ManifestMessage
from rdc.records import dataclass
from rdc.session.announcement import check_announced
from rdc.session.commands import Flush, Receive, Send
from rdc.session.discovery import discover, next_message
from rdc.session.leftovers import Leftovers
from rdc.session.own_tree import OwnTree
from rdc.session.place import unkept_attributes
from rdc.session.settlement import Settlement
from rdc.tree.manifest import Manifest, covering_root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.catalog.signer import FileSigner
    from rdc.model.kept import Kept
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.session.boundary import Boundary
    from rdc.session.commands import Conversation
    from rdc.session.news import News
    from rdc.session.place import Place
    from rdc.session.receiving import Receiving
    from rdc.session.settlement import Settlements
    from rdc.session.vanished import Vanished
    from rdc.session.wanted_attributes import WantedAttributes
    from rdc.tree.filters import FilterList
    from rdc.tree.hard_links import LinkTable

__all__ = ["Destination"]


@dataclass(frozen=True, slots=True)
class _Totals:
    """What the source says of its tree as a whole."""

    entries: int
    files: int
    bytes: int
    read_errors: int


@dataclass(frozen=True, slots=True)
class _Offer:
    manifest: ManifestMessage
    round: int
    """To go on with."""
    first: bool
    """Its top follows unasked."""


class Destination:
    """One destination conversation. Before `run`, a Describe(whole, kept) went to the source."""

    def __init__(
        self,
        place: Place,
        start: Start,
        options: SyncOptions,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        news: News,
        *,
        whole: bool,
        kept: Kept,
        settlements: Settlements | None = None,
        pack: bool = True,
    ) -> None:
        """`filters`: the source's; here as well, unless --delete-excluded keeps them to there. `kept`: what
        was said in Describe. `pack`: ask for literals compressed with what is around them."""
        if options.delete_excluded:
            from rdc.tree.filters import FilterList

            filters = FilterList(())
        self._place = place
        self._root = place.root
        self._name = place.name
        self._start = start
        self._options = options
        self._filters = filters
        self._secret = secret
        self._signer = signer
        self._news = news
        self._whole = whole
        self._pack = pack
        self._described = kept
        self._kept = kept = kept.both(start.kept)
        self._settlement = Settlement(settlements, place.root, start, options, filters, kept=kept)
        self._links: LinkTable | None = None
        """The source's."""
        own_links: LinkTable | None = None
        if options.hard_links:
            from rdc.tree.hard_links import LinkTable

            self._links, own_links = LinkTable(), LinkTable()
        self._attributes: WantedAttributes | None = None
        """The source's, where they are kept."""
        if kept.attributes:
            from rdc.session.wanted_attributes import WantedAttributes

            self._attributes = WantedAttributes(kept.attributes)
        unkept = unkept_attributes(options, kept)
        if unkept is not None:
            self._news.report(Problem(ExitCode.OK, b"", unkept))
        self._own: Manifest | None = None
        self._adopted = False
        """Extended attributes are those that were here before."""
        self._boundary = self._own_boundary()
        self._leftovers = Leftovers(place.root)
        self._own_tree = OwnTree(
            place.root,
            filters,
            self._leftovers,
            news,
            only=start.only,
            new=place.new,
            links=own_links,
            kinds=kept.attributes,
            dry=options.dry_run,
        )
        self._totals: _Totals | None = None
        self._receiving: Receiving | None = None
        """None: the manifests' roots were enough."""

    def _begin(self) -> None:
        """Makes what brings the tree up. Many runs find that nothing is to be done, and load none of it."""
        from rdc.session.listing_intake import ListingIntake
        from rdc.session.receiving import Receiving

        place, options = self._place, self._options
        self._receiving = receiving = Receiving(
            place,
            self._start,
            options,
            self._filters,
            self._secret,
            self._signer,
            self._leftovers,
            self._news,
            kept=self._kept,
            seeks=not place.new and (options.checksum or not self._whole),
            new=place.new,
            pack=self._pack,
            boundary=self._boundary,
            links=self._links,
            attributes=self._attributes,
        )
        self._wanted = receiving.wanted
        self._landing = receiving.landing
        self._tally = receiving.tally
        self._transfers = receiving.transfers
        self._deletion = receiving.deletion
        self._directories = receiving.directories
        self._extras = receiving.extras
        self._intake = ListingIntake(
            self._wanted,
            self._directories,
            self._own_tree,
            only=self._start.only,
            name=place.name,
            attributes=self._attributes,
        )

    def _own_boundary(self) -> Boundary | None:
        """Beyond which nothing is to be deleted."""
        if not (self._options.one_file_system and self._options.delete):
            return None
        from rdc.session.boundary import Boundary

        return Boundary(self._root, self._name or self._start.only)

    @property
    def source_files(self) -> int:
        """Regular files at the source, after filters."""
        return self._totals.files if self._totals else 0

    @property
    def source_bytes(self) -> int:
        """Their bytes."""
        return self._totals.bytes if self._totals else 0

    def run(self, round_: int) -> Conversation[Done]:
        """Compares, fetches what differs, deletes, and ends with its account."""
        try:
            if self._whole:
                self._begin()
                round_ = yield from self._serve(round_)
            else:
                round_ = yield from self._meet(round_)
            if self._totals is None:
                raise ProtocolError("the source did not describe its tree")
            receiving = self._receiving
            if receiving is not None:
                round_ = yield from self._complete(receiving, self._totals, round_)
            if not self._options.dry_run:
                self._leftovers.sweep()
            if receiving is not None:
                self._directories.finish()
                if self._attributes is not None:
                    top = None if self._start.only else self._start.metadata
                    receiving.attribute(self._attributes, top, adopted=self._adopted)
        except BaseException:
            if self._receiving is not None:
                self._receiving.wind_down()
            raise
        if self._may_settle:
            self._settlement.settle(self._wanted, self._own, self._directories.changed)
        yield from self._news.tell(round_)
        if receiving is None:
            done = Done(0, 0, 0, 0, self._news.errors, ExitCode.OK)
        else:
            done = receiving.account(ExitCode.OK)
        yield Send(done, round_)
        return done

    def _complete(self, receiving: Receiving, totals: _Totals, round_: int) -> Conversation[int]:
        """Everything was compared: fetches what is not here yet, and deletes."""
        self._landing.flush()
        yield from self._transfers.move(self._deletion.spare, round_)
        if not self._transfers.idle:
            yield from self._transfers.pump(round_)
            round_ = yield from self._serve(round_)
        self._landing.flush()
        if self._options.delete:
            self._extras.delete(totals.entries, totals.read_errors)
        self._directories.unblock(totals.read_errors)
        self._deletion.finish()
        if not self._transfers.idle:
            yield from self._transfers.pump(round_)
            round_ = yield from self._serve(round_)
            self._landing.flush()
        if self._links:
            # Files get their further names now that all else is in place.
            receiving.link(self._links, totals.read_errors)
            if not self._transfers.idle:
                yield from self._transfers.pump(round_)
                round_ = yield from self._serve(round_)
                self._landing.flush()
        return round_

    # By listing: everything the source has, directory by directory

    def _serve(self, round_: int) -> Conversation[int]:
        """Serves messages until the source's tree is known and nothing is outstanding; the last round."""
        while self._totals is None or not self._transfers.idle:
            received = yield Receive()
            if received is None:
                continue
            round_ = max(round_, received.round + 1)
            message = received.message
            if isinstance(message, ListingPart):
                self._intake.take(message)
            elif isinstance(message, HardLinks) and self._links is not None:
                self._links.extend(message.files, message.firsts)
            elif isinstance(message, EntryAttributes) and self._attributes is not None:
                self._attributes.extend(message)
            elif isinstance(message, MountPoints):
                self._settlement.mount_points.update(message.paths)
            elif isinstance(message, (TopTier, ManifestMessage)):
                pass  # a listing was preferred
            elif isinstance(message, ListingEnd):
                self._intake.end()
                self._conclude(_Totals(message.entries, message.files, message.bytes, message.read_errors))
            elif not self._news.take(message):
                yield from self._transfers.take(received)
            if self._transfers.waits:
                yield from self._transfers.pump(received.round + 1)
            if self._news.waits:
                yield from self._news.tell(received.round + 1)
        return round_

    def _conclude(self, totals: _Totals) -> None:
        """Everything was compared."""
        self._totals = totals
        self._directories.give_up()
        left = None if self._receiving is None else self._receiving.left
        if self._links is not None and left is not None:
            self._links = left.remaining(self._links)
        if self._links:
            self._landing.further = self._further
        deletes = len(self._extras.found) if self._options.delete else 0
        extra = self._extras.found

        def vanished() -> Vanished:
            from rdc.session.vanished import Vanished

            return Vanished(self._root, self._filters, extra, self._kept, self._boundary)

        self._transfers.plan_known(
            vanished,
            rename=self._extras.may_go(totals.entries, totals.read_errors),
            names=self._names_here if self._links else None,
        )
        self._news.report(PlanKnown(self._landing.planned, self._tally.total_bytes, deletes))

    def _further(self, file: int) -> Iterator[bytes]:
        if self._links is not None:
            yield from (self._wanted.entry(name).path for name in self._links.names(file))

    def _names_here(self, file: int) -> tuple[bytes, ...]:
        from rdc.session.linking import names_here

        return () if self._links is None else names_here(self._root, self._wanted, self._links, file)

    # By manifest: only what differs

    def _meet(self, round_: int) -> Conversation[int]:
        """Walks while the source does, compares the two manifests, and serves what follows from it."""
        yield Flush()
        own = self._own = self._own_tree.walk()
        offered = yield from self._offered()
        offer, round_ = offered.manifest, offered.round
        totals = _Totals(offer.entries, offer.files, offer.bytes, offer.read_errors)
        if self._name is None:
            own_root = self._own_tree.digest(own, self._kept)
            equal = own_root == offer.root and not (self._own_tree.unreadable and self._options.delete)
            if equal or self._settlement.is_settled(offer.root, own_root):
                self._settlement.again(offer.root, own_root)
                self._totals = totals
                self._news.report(PlanKnown(0, 0, 0))
                return round_
        self._begin()
        if self._name is not None:
            # One file under another name: a manifest cannot tell.
            return (yield from self._list_all(round_))
        if offer.entries <= SMALL_MANIFEST or offer.further != self._own_tree.further[:FURTHER_BYTES]:
            return (yield from self._list_all(round_))
        round_ = yield from discover(
            own,
            offer.entries,
            self._wanted,
            self._secret,
            self._news,
            round_,
            kept=self._kept,
            top=offered.first,
        )
        theirs = None if self._start.only else self._start.metadata
        root = covering_root(self._wanted.root(theirs, self._kept), self._own_tree.further)
        if (len(self._wanted), root) != (offer.entries, offer.root):
            # A collision of short references costs the listing, never a wrong tree.
            self._wanted.clear()
            return (yield from self._list_all(round_))
        if any(not path or self._wanted.is_directory(path) for path in self._own_tree.unreadable):
            # What is in them takes part, and what is below them was not looked at.
            self._wanted.clear()
            return (yield from self._list_all(round_))
        if not self._own_tree.hand_over(own, self._wanted, self._links, self._attributes):
            self._wanted.clear()
            return (yield from self._list_all(round_))
        from rdc.session.manifest_comparison import compare_manifests

        number = self._wanted.number(b"") if self._start.only else None
        if number is not None:
            check_announced(self._wanted.listing(number).names, self._start.only)
        yield from compare_manifests(
            self._wanted,
            own,
            self._directories,
            self._extras,
            self._news,
            round_,
            kept=self._kept,
            mount_points=self._settlement.mount_points,
        )
        if self._attributes is not None:
            self._attributes.guard(self._wanted)
            self._adopted = True
        self._conclude(totals)
        yield from self._transfers.pump(round_)
        yield from self._news.tell(round_)
        return (yield from self._serve(round_))

    def _offered(self) -> Conversation[_Offer]:
        """The manifest that was asked for; one that came unasked may have guessed wrong."""
        first = True
        while True:
            received = yield from next_message(self._news)
            message = received.message
            if isinstance(message, MountPoints):
                self._settlement.mount_points.update(message.paths)
                continue
            if isinstance(message, TopTier):
                continue
            if not isinstance(message, ManifestMessage):
                raise ProtocolError(f"expected Manifest, found {type(message).__name__}")
            if message.kept == self._kept:
                return _Offer(message, received.round + 1, first)
            first = False

    def _list_all(self, round_: int) -> Conversation[int]:
        # Directories are read again as their listings come: what the walk found is old by then.
        self._own = None
        yield Send(Describe(True, self._described), round_)
        return (yield from self._serve(round_))

    # Pairs of trees that need nothing

    @property
    def _may_settle(self) -> bool:
        """Whether the run was clean, and left two trees that may differ all the same: entries of ours that
        the source does not have, special files of the source's."""
        return (
            self._receiving is not None
            and not (
                self._options.hard_links
                or self._attributes is not None
                or self._news.codes
                or self._options.dry_run
                or self._name is not None
            )
            and self._totals is not None
            and not self._totals.read_errors
            and (self._extras.stay or Kind.SPECIAL in self._wanted.kinds)
        )
