"""The destination's half of a sync: compares the source's listing with its own tree and drives what follows.

Order: directories and links as their listings come; file contents as soon as they are known to differ, many
files in flight; then, once the whole listing was seen and nothing is outstanding, deletions, entries that had
a directory in their way, and the metadata of every directory that was touched, deepest first.
"""

from __future__ import annotations

import os
from array import array
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from rdc.errors import ExitCode, FileError, ProtocolError, printable
from rdc.files.confined import Root
from rdc.files.replace import sweep
from rdc.model.entries import Kind, Listing, Metadata
from rdc.plan.compare import Change, Decision, Difference, compare, difference
from rdc.plan.itemize import itemize
from rdc.progress import ItemChanged, PlanKnown, Problem
from rdc.protocol.messages import Bye, Done, ListingEnd, ListingPart, Start
from rdc.session.deletion import Deletion
from rdc.session.driver import Receive, Send
from rdc.session.entries import Entries
from rdc.session.landing import Landing
from rdc.session.transfer import Transfers
from rdc.tree.walk import join

if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.model.sync import SyncOptions
    from rdc.protocol.connection import Received
    from rdc.session.driver import Conversation
    from rdc.session.news import News
    from rdc.tree.filters import FilterList

__all__ = ["Destination", "open_destination"]


EMPTY = Listing((), b"", array("H"), array("Q"), array("q"), array("I"), array("I"), ())


@dataclass(frozen=True, slots=True)
class Place:
    """Where the tree goes."""

    root: Root
    name: bytes | None
    """What a single entry is to be called there; None: as at the source."""
    new: bool
    """The directory is made by this run, so nothing is in it; in a dry run `root` is then the one above it."""


def open_destination(path: bytes, start: Start, *, dry_run: bool) -> Place:
    """Where `path`, as its user wrote it, puts the tree that `start` announces (rsync's rules).

    A directory is made when its parent exists. A single file goes INTO a directory, or to the path itself
    when nothing or no directory is there and no slash follows it.
    """
    single_file = start.only and start.entry is not Kind.DIRECTORY
    if single_file and not path.endswith(b"/") and not os.path.isdir(path):
        parent = os.path.dirname(path) or b"."
        return Place(Root.open(parent, writable=not dry_run), os.path.basename(path), False)
    new = not os.path.lexists(path)
    if dry_run and new:
        return Place(Root.open(os.path.dirname(path.rstrip(b"/")) or b"."), None, True)
    return Place(Root.open(path, create=not dry_run, writable=not dry_run), None, new)


@dataclass(frozen=True, slots=True)
class _Directory:
    """A directory that its parent's listing announced."""

    metadata: Metadata
    new: bool
    """Made in this run (or would be): nothing is in it."""
    touched: bool
    """Its own metadata has to be set at the end in any case."""
    lost: bool
    """It could not be made: what is below it cannot be synced."""


class Destination:
    """One destination conversation."""

    def __init__(
        self,
        place: Place,
        start: Start,
        options: SyncOptions,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        news: News,
    ) -> None:
        self._root = place.root
        self._name = place.name
        self._start = start
        self._options = options
        self._filters = filters
        self._news = news
        self._owner = os.geteuid() == 0 if options.owner is None else options.owner
        self._entries = Entries()
        self._landing = Landing(place.root, self._entries, news, fsync=options.fsync, owner=self._owner)
        self._transfers = Transfers(place.root, self._entries, self._landing, secret, signer, news)
        self._deletion = Deletion(place.root, filters, news, limit=options.max_delete, dry=options.dry_run)
        self._parts: list[Listing] = []
        self._listed = 0
        self._expected = {b"": _Directory(start.metadata, place.new, False, False)}
        self._touched: list[tuple[bytes, Metadata]] = []
        self._extra: list[tuple[bytes, int]] = []
        self._blocked: list[tuple[int, Decision]] = []
        self._end: ListingEnd | None = None

    def run(self) -> Conversation[Done]:
        """Takes the listing, fetches what differs, deletes, and ends with its account."""
        try:
            round_ = yield from self._listen(1)
            self._landing.flush()
            if self._options.delete:
                self._delete()
            yield from self._unblock(round_)
            self._finish_directories()
        finally:
            self._transfers.close()
            self._landing.abandon()
        yield from self._news.tell(round_)
        code = ExitCode.OK
        done = Done(
            self._landing.changed,
            self._deletion.deleted,
            self._transfers.literal_bytes,
            self._transfers.reused_bytes,
            self._news.errors,
            code,
        )
        yield Send(done, round_)
        while True:
            received = yield Receive()
            if received is not None and isinstance(received.message, Bye):
                return done
            if received is not None and not self._news.take(received.message):
                raise ProtocolError(f"expected Bye, found {type(received.message).__name__}")

    @property
    def listing_end(self) -> ListingEnd:
        """The source's totals, once the listing is complete."""
        if self._end is None:
            raise ProtocolError("the listing has not ended")
        return self._end

    def _listen(self, round_: int) -> Conversation[int]:
        """Serves messages until the listing is complete and nothing is outstanding; the last round."""
        while self._end is None or not self._transfers.idle:
            received = yield Receive()
            if received is None:
                continue
            round_ = max(round_, received.round + 1)
            yield from self._take(received)
            yield from self._transfers.pump(received.round + 1)
            yield from self._news.tell(received.round + 1)
        return round_

    def _take(self, received: Received) -> Conversation[None]:
        message = received.message
        if isinstance(message, ListingPart):
            self._take_part(message)
        elif isinstance(message, ListingEnd):
            self._end = message
            if self._parts:
                raise ProtocolError("the listing ended inside a directory")
            # Directories that the source could not read were announced and never listed.
            self._lose(list(self._expected))
            plan = PlanKnown(
                self._landing.planned,
                self._transfers.total_bytes,
                len(self._extra) if self._options.delete else 0,
            )
            self._news.report(plan)
        elif not self._news.take(message):
            yield from self._transfers.take(received)

    # The listing

    def _take_part(self, part: ListingPart) -> None:
        if part.directory != self._listed or part.path not in self._expected:
            raise ProtocolError(f"a listing of {printable(part.path)!r}, which was not announced")
        if part.first != self._entries.count + sum(map(len, self._parts)):
            raise ProtocolError(f"a listing that starts at entry {part.first}")
        self._parts.append(part.listing)
        if not part.last:
            return
        listing = self._parts[0] if len(self._parts) == 1 else _joined(self._parts)
        self._parts = []
        self._listed += 1
        self._compare(part.path, self._renamed(part.path, listing))

    def _renamed(self, path: bytes, listing: Listing) -> Listing:
        if path or not self._start.only:
            return listing
        if len(listing) > 1:
            raise ProtocolError(f"{len(listing)} entries where one was announced")
        if self._name is None or not listing:
            return listing
        return listing.named((self._name,))

    def _compare(self, path: bytes, listing: Listing) -> None:
        directory = self._expected.pop(path)
        if not path and not self._start.only:
            directory = self._top(directory)
        first = self._entries.add(path, listing)
        if directory.lost:
            self._announce(path, listing, new=True, lost=True)
            return
        held = EMPTY if directory.new else self._held(path)
        if held is None:
            self._announce(path, listing, new=False, lost=True)
            return
        comparison = compare(listing, held, owner=self._owner, checksum=self._options.checksum)
        touched = directory.touched or self._make_writable(path, bool(comparison.decisions))
        kinds = {decision.row: decision for decision in comparison.decisions}
        for row, (name, kind) in enumerate(zip(listing.names, listing.kinds, strict=True)):
            decision = kinds.get(row)
            if kind == Kind.DIRECTORY:
                touched = self._directory(join(path, name), listing.metadata(row), decision) or touched
            elif decision is not None:
                touched = self._entry(first + row, join(path, name), listing, decision) or touched
        if self._options.delete and not (path == b"" and self._start.only):
            for row in comparison.extra:
                self._extra.append((join(path, held.names[row]), held.kinds[row]))
                touched = True
        if touched:
            self._touched.append((path, directory.metadata))

    def _top(self, top: _Directory) -> _Directory:
        """The synced directory itself, which no listing names: rsync's './'."""
        if top.new:
            decision = Decision(Change.CREATE, -1, -1, Difference.NONE)
        else:
            held = self._root.metadata(b"")
            differing = difference(Kind.DIRECTORY, top.metadata, held, owner=self._owner)
            if not differing:
                return top
            decision = Decision(Change.METADATA, -1, -1, differing)
        code = itemize(Kind.DIRECTORY, decision, transferred=top.new, new=top.new)
        self._landing.report(ItemChanged(code, b"./"))
        return replace(top, touched=True)

    def _held(self, path: bytes) -> Listing | None:
        stale: list[bytes] = []
        try:
            listing = self._root.list(path, on_temporary=stale.append)
        except FileError as error:
            self._news.report(Problem(_writing(error), path, str(error)))
            return None
        if stale and not self._options.dry_run:
            sweep(self._root, path, stale)
        return listing

    def _make_writable(self, path: bytes, needed: bool) -> bool:
        """Gives the owner of a read-only directory its rights for the time of the run; True when it did."""
        if not needed or self._options.dry_run or os.geteuid() == 0:
            return False
        try:
            now = self._root.metadata(path)
            if now.mode & 0o700 == 0o700:
                return False
            self._root.set_metadata(path, Kind.DIRECTORY, replace(now, mode=now.mode | 0o700), owner=False)
        except FileError:
            return False  # what needs the rights says so by name
        return True

    def _announce(self, path: bytes, listing: Listing, *, new: bool, lost: bool) -> None:
        for row, (name, kind) in enumerate(zip(listing.names, listing.kinds, strict=True)):
            if kind == Kind.DIRECTORY:
                self._expected[join(path, name)] = _Directory(listing.metadata(row), new, False, lost)

    def _directory(self, path: bytes, metadata: Metadata, decision: Decision | None) -> bool:
        """Makes or keeps a subdirectory; True when that touches its parent."""
        new = decision is not None and decision.change in (Change.CREATE, Change.REPLACE)
        lost = False
        if new and not self._options.dry_run:
            try:
                if decision is not None and decision.change is Change.REPLACE:
                    self._root.remove_file(path)
                # Not as it will be: until its contents are there only its owner may use it.
                self._root.make_directory(path, 0o700)
            except FileError as error:
                self._news.report(Problem(_writing(error), path, str(error)))
                lost = True
        self._expected[path] = _Directory(metadata, new, decision is not None, lost)
        if decision is not None and not lost:
            code = itemize(Kind.DIRECTORY, decision, transferred=new, new=new)
            self._landing.report(ItemChanged(code, path + b"/"))
        return new

    def _entry(self, file: int, path: bytes, listing: Listing, decision: Decision) -> bool:
        """Starts what a file or symlink needs; True when that touches its directory."""
        kind, metadata = listing.kinds[decision.row], listing.metadata(decision.row)
        if decision.change is Change.REPLACE and self._is_directory(path):
            self._blocked.append((file, decision))
            return True
        if kind == Kind.SYMLINK:
            target = listing.target(decision.row)
            return self._symlink(path, target, metadata, decision)
        if decision.change is Change.METADATA:
            if self._options.dry_run:
                code = itemize(Kind.FILE, decision, transferred=False, new=False)
                self._landing.report(ItemChanged(code, path))
            else:
                self._landing.settle(path, metadata, decision)
            return False
        self._landing.decide(file, decision)
        if decision.change is Change.CHECK:
            self._transfers.check(file)
        elif self._options.dry_run:
            self._landing.rehearse(file)
        elif decision.change is Change.CONTENT:
            self._transfers.update(file)
        else:
            self._transfers.create(file)
        return True

    def _symlink(self, path: bytes, target: bytes, metadata: Metadata, decision: Decision) -> bool:
        moved = decision.change is not Change.METADATA
        if not self._options.dry_run:
            try:
                if moved:
                    self._root.replace_symlink(path, target, metadata, owner=self._owner)
                else:
                    self._root.set_metadata(path, Kind.SYMLINK, metadata, owner=self._owner)
            except FileError as error:
                self._news.report(Problem(_writing(error), path, str(error)))
                return moved
        new = decision.change in (Change.CREATE, Change.REPLACE)
        if moved and not new:
            decision = Decision(
                decision.change, decision.row, decision.held_row, decision.difference | Difference.CHECKSUM
            )
        code = itemize(Kind.SYMLINK, decision, transferred=moved, new=new)
        self._landing.report(ItemChanged(code, path, target))
        return moved

    def _is_directory(self, path: bytes) -> bool:
        return self._root.kind(path) is Kind.DIRECTORY

    def _lose(self, paths: list[bytes]) -> None:
        for path in paths:
            directory = self._expected.pop(path)
            if directory.touched and not directory.lost:
                self._touched.append((path, directory.metadata))

    # The end

    def _delete(self) -> None:
        end = self.listing_end
        if end.read_errors:
            self._refuse_deletion(f"the source could not be read completely ({end.read_errors} errors)")
        elif not end.entries and self._extra and not self._options.force_empty:
            self._refuse_deletion("the source is empty; --force-empty deletes all the same")
        else:
            for path, kind in self._extra:
                self._deletion.remove(path, kind)
        self._deletion.finish()

    def _refuse_deletion(self, why: str) -> None:
        if self._extra:
            self._news.report(Problem(ExitCode.PARTIAL, b"", f"nothing was deleted: {why}"))

    def _unblock(self, round_: int) -> Conversation[None]:
        """Entries that had a directory in their way, which goes only now, and only with --delete."""
        end = self.listing_end
        for file, decision in self._blocked:
            entry = self._entries[file]
            path = entry.path
            allowed = self._options.delete and not end.read_errors
            if not (allowed and self._deletion.remove(path, Kind.DIRECTORY)):
                text = f"{printable(path)}: a directory is in the way; --delete removes it"
                self._news.report(Problem(ExitCode.PARTIAL, path, text))
                continue
            if entry.kind == Kind.SYMLINK:
                target = entry.listing.target(entry.row)
                self._symlink(path, target, entry.metadata, decision)
            else:
                self._landing.decide(file, Decision(Change.CREATE, entry.row, -1, Difference.NONE))
                if self._options.dry_run:
                    self._landing.rehearse(file)
                else:
                    self._transfers.create(file)
        self._deletion.finish()
        if not self._transfers.idle:
            yield from self._transfers.pump(round_)
            yield from self._listen(round_)
            self._landing.flush()

    def _finish_directories(self) -> None:
        """Their own metadata last, children before parents: whatever was done inside changed their mtimes."""
        if self._options.dry_run:
            return
        for path, metadata in reversed(self._touched):
            if path == b"" and self._start.only:
                continue  # the root is not what was synced, but where it was put
            try:
                self._root.set_metadata(path, Kind.DIRECTORY, metadata, owner=self._owner)
            except FileError as error:
                self._news.report(Problem(_writing(error), path, str(error)))


def _writing(error: FileError) -> ExitCode:
    """What vanishes at the destination is a failure to write; 24 speaks of the source."""
    return ExitCode.PARTIAL if error.code is ExitCode.VANISHED else error.code


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
