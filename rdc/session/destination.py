"""The destination's half of a sync: has the source describe its tree, compares, and drives what follows.

An empty destination asks for the listing at once and for contents as the listing comes. Otherwise both sides
walk their trees at the same time and compare the digests of their manifests; only where they differ does a
descent find the directories to be compared, from which on both ways are one.
"""

from __future__ import annotations

import contextlib
import os
from array import array
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from blake3 import blake3

from rdc.errors import ExitCode, FileError, OutOfSpaceError, ProtocolError, RdcError, printable
from rdc.files.confined import Root
from rdc.limits import SMALL_MANIFEST
from rdc.model.entries import Kind, Listing, PackedListing
from rdc.plan.manifest_descent import ManifestDescent
from rdc.progress import PlanKnown, Problem
from rdc.protocol.messages import (
    Bye,
    Describe,
    Done,
    ListingEnd,
    ListingPart,
    RowsPart,
    RowsRequest,
    Start,
    TierAnswer,
    TierRequest,
)
from rdc.protocol.messages import Manifest as ManifestMessage
from rdc.session.deletion import Deletion
from rdc.session.directories import Announced, Directories, writing_code
from rdc.session.driver import Flush, Receive, Send
from rdc.session.landing import Landing
from rdc.session.leftovers import Leftovers
from rdc.session.transfer import Transfers
from rdc.tree.fold import Fold
from rdc.tree.manifest import Manifest
from rdc.tree.walk import PackedWalk

if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.model.sync import SyncOptions
    from rdc.progress import Event
    from rdc.protocol.connection import Received
    from rdc.session.driver import Conversation
    from rdc.session.news import News
    from rdc.tree.filters import FilterList

__all__ = ["Destination", "Settlements", "is_bare", "keeps_owner", "open_destination"]

EMPTY = Listing((), b"", array("H"), array("Q"), array("q"), array("I"), array("I"), ())


class Settlements(Protocol):
    """Remembers pairs of trees that a clean run found to need nothing: a cache, never needed."""

    def is_settled(self, key: bytes) -> bool: ...

    def settle(self, key: bytes) -> None: ...


def keeps_owner(options: SyncOptions) -> bool:
    """Whether this side, as the destination, sets uid and gid."""
    return os.geteuid() == 0 if options.owner is None else options.owner


def is_bare(path: bytes) -> bool:
    """Nothing is at `path`, or an empty directory: everything the source has will be new."""
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except FileNotFoundError:
        return True
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tree goes."""

    root: Root
    name: bytes | None
    """What a single entry is to be called there; None: as at the source."""
    new: bool
    """The directory is made by this run, so nothing is in it; in a dry run `root` is the one above it."""


def open_destination(path: bytes, start: Start, *, dry_run: bool) -> Place:
    """Where `path`, as its user wrote it, puts the tree that `start` announces (rsync's rules).

    A directory is made when its parent exists. A single file goes INTO a directory, or to the path itself
    when nothing or no directory is there and no slash follows it. Raises RdcError with rsync's exit code 11
    when the destination cannot be used at all.
    """
    try:
        return _open(path, start, dry_run=dry_run)
    except FileError as error:
        raise RdcError(str(error), code=ExitCode.FILE_IO) from error


def _open(path: bytes, start: Start, *, dry_run: bool) -> Place:
    single_file = start.only and start.entry is not Kind.DIRECTORY
    if single_file and not path.endswith(b"/") and not os.path.isdir(path):
        parent = os.path.dirname(path) or b"."
        return Place(Root.open(parent, writable=not dry_run), os.path.basename(path), False)
    new = not os.path.lexists(path)
    if dry_run and new:
        return Place(Root.open(os.path.dirname(path.rstrip(b"/")) or b"."), None, True)
    return Place(Root.open(path, create=not dry_run, writable=not dry_run), None, new)


@dataclass(frozen=True, slots=True)
class _Totals:
    """What the source says of its tree as a whole."""

    entries: int
    files: int
    bytes: int
    read_errors: int


class Destination:
    """One destination conversation. Before `run`, a Describe(whole, owner) went to the source."""

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
        settlements: Settlements | None = None,
    ) -> None:
        self._root = place.root
        self._name = place.name
        self._new = place.new
        self._start = start
        self._options = options
        self._filters = filters
        self._secret = secret
        self._news = news
        self._whole = whole
        self._settlements = settlements
        self._owner = keeps_owner(options)
        self._wanted = Manifest()
        self._own: Manifest | None = None
        self._unreadable: set[bytes] = set()
        self._landing = Landing(
            place.root, self._wanted, news, fsync=options.fsync, owner=self._owner, dry=options.dry_run
        )
        self._leftovers = Leftovers(place.root)
        self._transfers = Transfers(
            place.root, self._wanted, self._landing, self._leftovers, secret, signer, news
        )
        self._deletion = Deletion(place.root, filters, news, limit=options.max_delete, dry=options.dry_run)
        self._directories = Directories(
            place.root,
            start,
            options,
            self._wanted,
            self._landing,
            self._transfers,
            self._deletion,
            filters,
            news,
            owner=self._owner,
            new=place.new,
        )
        self._parts: list[Listing] = []
        self._listed = 0
        self._totals: _Totals | None = None

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
                round_ = yield from self._serve(round_)
            else:
                round_ = yield from self._meet(round_)
            if self._totals is None:
                raise ProtocolError("the source did not describe its tree")
            self._landing.flush()
            if self._options.delete:
                self._directories.delete(self._totals.entries, self._totals.read_errors)
            self._directories.unblock(self._totals.read_errors)
            self._deletion.finish()
            if not self._transfers.idle:
                yield from self._transfers.pump(round_)
                round_ = yield from self._serve(round_)
                self._landing.flush()
            if not self._options.dry_run:
                self._leftovers.sweep()
            self._directories.finish()
        except BaseException as error:
            self._wind_down(error)
            raise
        self._remember()
        yield from self._news.tell(round_)
        done = Done(
            self._landing.changed,
            self._deletion.deleted,
            self._transfers.literal_bytes,
            self._transfers.reused_bytes,
            self._news.errors,
            ExitCode.OK,
        )
        yield Send(done, round_)
        while True:
            received = yield Receive()
            if received is not None and isinstance(received.message, Bye):
                return done
            if received is not None and not self._news.take(received.message):
                raise ProtocolError(f"expected Bye, found {type(received.message).__name__}")

    def _wind_down(self, error: BaseException) -> None:
        """An interruption: what is complete lands, what is not stays for the next run."""
        self._transfers.close()
        if not isinstance(error, OutOfSpaceError):
            with contextlib.suppress(RdcError):
                self._landing.flush()
        self._landing.abandon()

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
                self._take_part(message)
            elif isinstance(message, ListingEnd):
                self._end_listing(message)
            elif not self._news.take(message):
                yield from self._transfers.take(received)
            yield from self._transfers.pump(received.round + 1)
            yield from self._news.tell(received.round + 1)
        return round_

    def _take_part(self, part: ListingPart) -> None:
        if part.directory != self._listed or part.path not in self._directories.expected:
            raise ProtocolError(f"a listing of {printable(part.path)!r}, which was not announced")
        self._parts.append(part.listing)
        if not part.last:
            return
        listing = self._parts[0] if len(self._parts) == 1 else _joined(self._parts)
        self._parts = []
        self._listed += 1
        path, first = part.path, len(self._wanted)
        listing = self._renamed(path, listing)
        self._wanted.add(path, listing.packed())
        held = EMPTY if self._directories.expected[path].new else self._held(path)
        self._directories.compare(path, first, listing, held)

    def _renamed(self, path: bytes, listing: Listing) -> Listing:
        if path or not self._start.only:
            return listing
        if len(listing) > 1:
            raise ProtocolError(f"{len(listing)} entries where one was announced")
        if self._name is None or not listing:
            return listing
        return listing.named((self._name,))

    def _end_listing(self, end: ListingEnd) -> None:
        if self._parts:
            raise ProtocolError("the listing ended inside a directory")
        self._conclude(_Totals(end.entries, end.files, end.bytes, end.read_errors))

    def _conclude(self, totals: _Totals) -> None:
        """Everything was compared."""
        self._totals = totals
        self._directories.give_up()
        deletes = len(self._directories.extra) if self._options.delete else 0
        self._transfers.plan_known()
        self._news.report(PlanKnown(self._landing.planned, self._transfers.total_bytes, deletes))

    def _held(self, path: bytes) -> Listing | None:
        stale: list[bytes] = []
        try:
            listing = self._root.list(path, on_temporary=stale.append)
        except FileError as error:
            self._news.report(Problem(writing_code(error), path, str(error)))
            return None
        if stale:
            self._leftovers.note(path, stale)
        return listing

    # By manifest: only what differs

    def _meet(self, round_: int) -> Conversation[int]:
        """Walks while the source does, compares the two manifests, and serves what follows from it."""
        yield Flush()
        own = self._own = self._walk()
        received = yield from self._next_message()
        offer = received.message
        if not isinstance(offer, ManifestMessage):
            raise ProtocolError(f"expected Manifest, found {type(offer).__name__}")
        round_ = received.round + 1
        totals = _Totals(offer.entries, offer.files, offer.bytes, offer.read_errors)
        if self._options.checksum or self._name is not None:
            # Every file is to be compared, or the names are not the same: the manifests cannot tell.
            return (yield from self._list_all(round_))
        top = None if self._start.only else self._root.metadata(b"")
        own_root = own.root(top, owner=self._owner)
        if own_root == offer.root or self._is_settled(offer.root, own_root):
            self._settle(offer.root, own_root, offer.read_errors)
            self._directories.expected.clear()
            self._conclude(totals)
            return round_
        if offer.entries <= SMALL_MANIFEST:
            return (yield from self._list_all(round_))
        round_ = yield from self._descend(offer, round_)
        theirs = None if self._start.only else self._start.metadata
        if len(self._wanted) != offer.entries or self._wanted.root(theirs, owner=self._owner) != offer.root:
            # A short reference collided. It costs the listing, never a wrong tree.
            self._wanted.clear()
            return (yield from self._list_all(round_))
        self._compare_all()
        self._conclude(totals)
        yield from self._transfers.pump(round_)
        yield from self._news.tell(round_)
        return (yield from self._serve(round_))

    def _list_all(self, round_: int) -> Conversation[int]:
        yield Send(Describe(True, self._owner), round_)
        return (yield from self._serve(round_))

    def _walk(self) -> Manifest:
        """Our own tree as a manifest; stale temporaries on the way are removed."""
        manifest = Manifest()
        if self._new:
            return manifest
        only = self._start.only or None
        walk = PackedWalk(
            self._root, self._filters, self._note, only=only, on_temporaries=self._leftovers.note
        )
        try:
            for path, listing in walk:
                manifest.add(path, listing)
        except FileError as error:
            self._unreadable.add(b"")
            self._news.report(Problem(writing_code(error), b"", str(error)))
        return manifest

    def _note(self, event: Event) -> None:
        """Of our own tree only failures are news, and they are failures to write into it."""
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._unreadable.add(event.path)
            self._news.report(replace(event, code=ExitCode.PARTIAL))

    def _descend(self, offer: ManifestMessage, round_: int) -> Conversation[int]:
        """Asks along what differs until `_wanted` holds the source's manifest."""
        if not offer.entries:
            return round_
        own = self._own or Manifest()
        descent = ManifestDescent(Fold(own, owner=self._owner), offer.entries, self._secret)
        while True:
            for ask in descent.asks():
                kind = RowsRequest if ask.rows else TierRequest
                yield Send(kind(ask.level, ask.nodes, int(ask.groups)), round_)
            if descent.complete:
                break
            received = yield from self._next_message()
            round_ = max(round_, received.round + 1)
            message = received.message
            if isinstance(message, TierAnswer):
                descent.take_tier(message.level, message.firsts, message.counts, message.references)
            elif isinstance(message, RowsPart):
                descent.take_rows(message.rows, last=message.last)
            else:
                raise ProtocolError(f"expected manifest nodes, found {type(message).__name__}")
        descent.assemble(self._wanted)
        return round_

    def _next_message(self) -> Conversation[Received]:
        while True:
            received = yield Receive()
            if received is not None and not self._news.take(received.message):
                return received

    def _compare_all(self) -> None:
        """Compares the directories in which the two manifests differ, parents first."""
        wanted, own = self._wanted, self._own or Manifest()
        ours = {path: number for number, path in enumerate(own.directories)}
        expected = self._directories.expected
        for number, path in enumerate(wanted.directories):
            mine = ours.pop(path, None)
            if path not in expected and path:
                if mine is not None and self._same(wanted.packed(number), own.packed(mine)):
                    continue
                expected[path] = self._announced(path)
            held = EMPTY if mine is None else own.listing(mine)
            directory = expected[path]
            if path in self._unreadable:
                expected[path] = replace(directory, lost=True)
            self._directories.compare(path, wanted.firsts[number], wanted.listing(number), held)
        for path, mine in ours.items():
            # Directories that have entries here and none there: emptied, or gone with their parent's entry.
            if path in expected or wanted.is_directory(path):
                expected.setdefault(path, self._announced(path))
                self._directories.compare(path, len(wanted), EMPTY, own.listing(mine))

    def _announced(self, path: bytes) -> Announced:
        """A directory whose parent has no differences of its own: it is there, and its metadata are right."""
        parent, _, name = path.rpartition(b"/")
        number = self._wanted.number(parent)
        listing = None if number is None else self._wanted.listing(number)
        if listing is None or name not in listing.names:
            raise ProtocolError(f"a listing of {printable(path)!r}, which was not announced")
        return Announced(listing.metadata(listing.names.index(name)), False, False, False)

    def _same(self, a: PackedListing, b: PackedListing) -> bool:
        if not self._owner:
            a = replace(a, uids=b.uids, gids=b.gids)
        return a == b

    # Pairs of trees that need nothing

    def _remember(self) -> None:
        """After a clean run: where our tree does not equal the source's in what is compared, having extra
        entries or failing to keep something, remember the two as they are now.
        """
        clean = not self._news.codes and not self._options.dry_run and not self._options.checksum
        if self._settlements is None or not clean or self._name is not None or self._totals is None:
            return
        if not (self._landing.changed or self._deletion.deleted) and self._own is None:
            return
        theirs = None if self._start.only else self._start.metadata
        if self._own is not None and not len(self._wanted) and self._totals.entries:
            return  # equal or settled before
        source_root = self._wanted.root(theirs, owner=self._owner)
        own = self._again()
        if own is None:
            return
        own_root = own.root(None if self._start.only else self._root.metadata(b""), owner=self._owner)
        if own_root != source_root:
            self._settle(source_root, own_root, self._totals.read_errors)

    def _again(self) -> Manifest | None:
        """Our manifest as this run left it; directories that it did not change are not read again."""
        before = self._own or Manifest()
        known = {path: number for number, path in enumerate(before.directories)}
        changed = self._directories.changed | {parent_of(path) for path, _ in self._directories.extra}
        manifest = Manifest()
        walk = PackedWalk(
            self._root,
            self._filters,
            lambda event: None,
            only=self._start.only or None,
            known=lambda path: None if path in changed or path not in known else before.packed(known[path]),
        )
        try:
            for path, listing in walk:
                manifest.add(path, listing)
        except FileError:
            return None
        return None if walk.read_errors else manifest

    def _key(self, source_root: bytes, own_root: bytes) -> bytes:
        options = repr((self._options.delete, self._owner, self._start.only)).encode()
        return blake3(b"rdc settled 1" + source_root + own_root + options).digest()

    def _is_settled(self, source_root: bytes, own_root: bytes) -> bool:
        return self._settlements is not None and self._settlements.is_settled(
            self._key(source_root, own_root)
        )

    def _settle(self, source_root: bytes, own_root: bytes, read_errors: int) -> None:
        if (
            self._settlements is not None
            and own_root != source_root
            and not read_errors
            and not self._unreadable
        ):
            self._settlements.settle(self._key(source_root, own_root))


def parent_of(path: bytes) -> bytes:
    return path.rpartition(b"/")[0]


def _joined(parts: list[Listing]) -> Listing:
    """One directory's parts as one listing; names still strictly increase, or it is refused."""
    for before, after in pairwise(parts):
        if before.names[-1] >= after.names[0]:
            raise ProtocolError("a directory's names do not increase from part to part")
    return Listing(
        tuple(name for part in parts for name in part.names),
        b"".join(part.kinds for part in parts),
        _concatenated("H", [part.modes for part in parts]),
        _concatenated("Q", [part.sizes for part in parts]),
        _concatenated("q", [part.mtimes for part in parts]),
        _concatenated("I", [part.uids for part in parts]),
        _concatenated("I", [part.gids for part in parts]),
        tuple(target for part in parts for target in part.targets),
    )


def _concatenated(typecode: str, columns: list[array[int]]) -> array[int]:
    joined: array[int] = array(typecode)
    for column in columns:
        joined.extend(column)
    return joined
