"""A session that stays open: turns of changes, and the destination that serves one turn after another."""

from __future__ import annotations

import os
import stat

from rdc.errors import ExitCode, FileError, ProtocolError, RdcError, UsageError, printable
from rdc.files.base.directory_descriptors import same_entry
from rdc.files.base.paths import join, refused_component
from rdc.files.base.store_guard import check_opened
from rdc.files.names.entry_names import Moved, make_durable, move_directory, move_file
from rdc.lean.records import replace
from rdc.lean.typed import Protocol
from rdc.model.entries import EMPTY_LISTING, Kind, Listing, Metadata, strings
from rdc.plan.compare import RENAMING
from rdc.progress import ItemChanged, Problem
from rdc.protocol.messages import Changed, Describe, Done, Renamed, TopTier, Turn, TurnEnd
from rdc.session.destination.conversation import DestinationTurn, WholeTurn
from rdc.session.destination.deletion import writing_code
from rdc.session.destination.directory_changes import AnnouncedDirectory
from rdc.session.destination.selected import as_named_by_source
from rdc.session.runtime.commands import Conversation, EventRelay, Idle, Receive, Send
from rdc.session.transfer.destination import Destination, PartialFiles, Terms, left_alone, refused_name
from rdc.session.transfer.renames import RemovedFiles
from rdc.session.trees.destination_root import DestinationRoot, keeps, open_destination
from rdc.session.trees.sites import (
    Site,
    announced,
    check_announced,
    check_path,
    with_made_mode,
    with_made_modes,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rdc.files.root.root import Root
    from rdc.model.preserved import FileSystemFacts, Preserved
    from rdc.protocol.connection import Received
    from rdc.protocol.messages import Message, Start, Watch


# Closes entries that a turn renames out of directories that kept users out.
#
# A turn announces renames before other changes. At the source, a file that only its directory protected may
# have got a narrower mode before it was moved. The destination would expose the file in its new place until
# the turn announces that mode, so the file stays closed until the turn has announced everything.

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_READ_AND_SEARCH = 0o055
"""The bits of a directory that hides nothing from its group and others."""


class ClosedMoves:
    """The closed entries of one turn. They have no permission bits for group and others."""

    def __init__(self, root: Root) -> None:
        self._root = root
        self._modes: dict[bytes, int] = {}
        """For each closed path, the mode that it gets when the turn has announced everything."""

    def closed(self, found: Metadata, old: bytes, new: bytes) -> Metadata:
        """Return the metadata for an entry that is renamed from `old` to `new`: closed if a directory hid it.

        `found`: its metadata now. Raises FileError.
        """
        above = set(_directories_above(new))
        hidden = any(
            self._root.metadata(path).mode & _READ_AND_SEARCH != _READ_AND_SEARCH
            for path in _directories_above(old)
            if path not in above
        )
        return replace(found, mode=found.mode & ~_OTHERS) if hidden else found

    def renamed(self, old: bytes, new: bytes, found: Metadata, closed: Metadata) -> None:
        """Note that an entry was renamed with everything below it.

        `found`: its metadata before; `closed`: its metadata now.
        """
        below = old + b"/"
        for path in [path for path in self._modes if path == old or path.startswith(below)]:
            self._modes[new + path[len(old) :]] = self._modes.pop(path)
        if closed != found:
            self._modes.setdefault(new, found.mode)

    def unclosed(self, directory: bytes, existing: Listing) -> Listing:
        """Return the listing `existing` of a directory, with the modes that closed entries had before."""
        if not self._modes:
            return existing
        modes = existing.modes[:]
        for row, name in enumerate(existing.names):
            modes[row] = self._modes.get(join(directory, name), modes[row])
        return replace(existing, modes=modes)

    def note_announced(
        self, directory: bytes, metadata: Metadata, listing: Listing, existing: Listing
    ) -> None:
        """Note the modes that the source announced for a directory and some of its entries.

        `existing`: the destination's listing of the directory.
        """
        if not self._modes:
            return
        if directory in self._modes:
            self._modes[directory] = metadata.mode
        here = {name: row for row, name in enumerate(existing.names)}
        for row, name in enumerate(listing.names):
            path = join(directory, name)
            if path in self._modes and name in here:
                self._modes[path] = listing.modes[row]
                if listing.kinds[row] == Kind.FILE and not _is_current(listing, row, existing, here[name]):
                    del self._modes[path]  # new content will replace this file, so it stays closed

    def open(self) -> None:
        """Give each closed entry that still exists its mode. The turn has announced everything."""
        modes, self._modes = self._modes, {}
        for path, mode in modes.items():
            try:
                kind = self._root.kind(path)
                if kind is not None:
                    metadata = replace(self._root.metadata(path), mode=mode)
                    self._root.set_metadata(path, kind, metadata, owner=False)
            except FileError:
                continue  # the entry vanished or now belongs to another user, so this turn did not close it


def _directories_above(path: bytes) -> list[bytes]:
    """Return the directories above `path`, without the root."""
    names = path.split(b"/")
    return [b"/".join(names[:count]) for count in range(1, len(names))]


def _is_current(listing: Listing, row: int, existing: Listing, here: int) -> bool:
    """Return whether the destination's file has the announced size and mtime."""
    return (listing.sizes[row], listing.mtimes[row]) == (existing.sizes[here], existing.mtimes[here])


# The destination's half of a turn of changes: it looks only at the entries that the source names.
#
# It compares them with the current tree, not with an earlier state. If another program changed an entry, the
# turn that names the entry notices it; otherwise the next comparison of whole trees does.

UNEXPECTED = ExitCode.VANISHED
"""The exit code in Done if this tree is not what the source assumes: whole trees have to be compared."""


class ChangeTurn(DestinationTurn):
    """One turn of changes."""

    def __init__(self, context: Destination, *, withheld: str | None = None) -> None:
        """`withheld`: why deletions were withheld in an earlier turn since the last comparison of whole
        trees; None: none was."""
        if context.destination_root.name is not None:
            raise ProtocolError("changes of what is no directory")
        super().__init__(context)
        self._preserved = context.preserved
        self._only = context.start.only
        self._filters = context.filters.announced
        self._protected = context.filters.protected
        self._uses_content = context.uses_content
        self._partial_files = PartialFiles(self._root)
        self.build(self._partial_files, seeks=True, live=True, earlier=withheld)
        self.withheld = withheld
        self.directories.expect_nothing()
        self._closed = ClosedMoves(self._root)
        self._announced: dict[bytes, AnnouncedDirectory] = {}
        """The directories that this turn named, as it announced them."""
        self._renamed_into: dict[int, bytes] = {}
        """For each device, a directory that an entry was renamed into."""
        self._unexpected = False
        self._round = 0
        self.source_files = 0
        """Number of regular files in the source's whole tree."""

    def run(self, round_: int) -> Conversation[Done]:
        """Receive the changes, fetch contents, delete, and end with the totals of the turn."""
        try:
            end = yield from self._gather(round_)
            self.source_files = end.files
            if not self._unexpected:
                yield from self._bring_up(end)
            self._make_renames_durable()
        except BaseException:
            self.wind_down()
            raise
        self.finish_turn()
        yield from self._events.send_waiting(self._round)
        done = self.account(UNEXPECTED if self._unexpected else ExitCode.OK)
        yield Send(done, self._round)
        return done

    def _gather(self, round_: int) -> Conversation[TurnEnd]:
        """Compare directories as the source names them. Contents are requested when all are known."""
        while True:
            received = yield Receive()
            if received is None:
                continue
            round_ = max(round_, received.round + 1)
            message = received.message
            if isinstance(message, TurnEnd):
                if not self._unexpected:
                    self._closed.open()
                self._round = round_
                return message
            if isinstance(message, Renamed):
                if self._is_reserved(message.old) or self._is_reserved(message.new):
                    continue
                for path in (message.old, message.new):
                    directory, _, name = path.rpartition(b"/")
                    self._check_within(directory, (name,))
                    check_path(path, message.entry is Kind.DIRECTORY, self._filters)
                self._rename(message)
            elif isinstance(message, Changed):
                self._check_within(message.path, (*message.listing.names, *strings(message.gone)))
                self._compare(message)
            elif not self._events.take(message):
                raise ProtocolError(f"expected what changed, found {type(message).__name__}")

    def _bring_up(self, end: TurnEnd) -> Conversation[None]:
        """Fetch contents, rename and delete, after all directories were compared."""
        directories, transfers = self.directories, self.transfers
        directories.skip_unlisted()
        extra = self.extraneous.found
        transfers.plan_known(
            lambda: RemovedFiles(
                self._root, self._protected.movable, extra, self._preserved, self.extraneous.identity
            ),
            rename=self.extraneous.may_go(end.entries, end.read_errors),
        )
        self._round = yield from self.fetch_known(self._round)
        yield from transfers.move(self.deletion.spare, self._round)
        self._round = yield from self.fetch_known(self._round)
        self.put_blocked(end.read_errors)
        self._round = yield from self.fetch_known(self._round)
        self.remove(end.entries, end.read_errors)
        self.withheld = self.extraneous.withheld(end.read_errors)
        self._round = yield from self.fetch_known(self._round)
        if self._uses_content:
            for entry in self._partial_files.foreign(self._filters, only=self._only or None):
                self._events.report(Problem(ExitCode.OK, entry, left_alone(entry)))
        self._partial_files.sweep()
        directories.finish()

    def _check_within(self, directory: bytes, names: Collection[bytes]) -> None:
        """Raise ProtocolError for entries other than the announced one, or in an excluded directory."""
        if directory:
            check_announced((directory.partition(b"/")[0],), self._only)
        else:
            check_announced(names, self._only)
        while directory and self._filters:
            check_path(directory, True, self._filters)
            directory = directory.rpartition(b"/")[0]

    def _is_reserved(self, path: bytes) -> bool:
        """Return whether a name in `path` is reserved, so that nothing may be done there. Reports it."""
        if refused_component(path) is None:
            return False
        self._events.report(Problem(ExitCode.PARTIAL, path, refused_name(path)))
        return True

    # Directories

    def _compare(self, change: Changed) -> None:
        part = replace(
            change,
            metadata=with_made_mode(
                self._preserved.metadata(change.metadata), Kind.DIRECTORY, self._preserved
            ),
            listing=with_made_modes(self._preserved.listing(change.listing), self._preserved),
        )
        path = part.path
        if self._unexpected:
            return
        announced = self.directories.announced(path) or self._announced.get(path)
        if announced is None:
            announced = AnnouncedDirectory(part.metadata, new=False, touched=True, lost=False)
        announced = replace(announced, metadata=part.metadata, touched=True)
        if self._is_reserved(path):
            announced = replace(announced, lost=True)
        known = path in self._announced
        self._announced[path] = announced
        self.directories.expect(path, announced)
        existing = None if announced.lost else self._existing(path, part, new=announced.new and not known)
        if existing is None and not announced.lost:
            self._unexpected = True
            return
        if existing is not None:
            existing = self._closed.unclosed(path, existing)
            self._closed.note_announced(path, part.metadata, part.listing, existing)
        first = len(self.manifest)
        if self.manifest.number(path) is None or self.manifest.directories[-1] == path:
            self.manifest.extend(path, part.listing.packed())
        else:
            raise ProtocolError(f"two listings of '{printable(path)}'")
        # The turn may name a directory without naming it in its parent, so narrow it here.
        self.directories.narrow(path, part.metadata)
        self.directories.compare(path, first, part.listing, existing, frozenset(part.doubtful))

    def _existing(self, path: bytes, part: Changed, *, new: bool) -> Listing | None:
        """Return the destination's listing of the entries that the source names; None if it cannot be
        read."""
        if new:
            return EMPTY_LISTING
        try:
            listed = self._root.listed(path)
        except FileError:
            return None
        if listed.reserved:
            self._partial_files.note(path, list(listed.reserved))
        named = {*part.listing.names, *strings(part.gone)}
        names: Sequence[bytes] = strings(listed.listing.names)
        if not listed.listing.names.isascii():
            names = as_named_by_source(self._root, path, named, names, dry_run=False)
        rows = [row for row, name in enumerate(names) if name in named]
        return listed.rows(rows).unpacked().named(tuple(names[row] for row in rows))

    # Renames

    def _rename(self, message: Renamed) -> None:
        """Rename an entry in one step.

        A file that is not as expected is left to the comparison. The source will not name the contents of a
        directory, so an unexpected directory makes the turn fail.
        """
        if self._unexpected:
            return
        if message.entry is Kind.DIRECTORY:
            if not self._rename_directory(message.old, message.new):
                self._unexpected = True
        else:
            self._rename_file(message)

    def _rename_directory(self, old: bytes, new: bytes) -> bool:
        try:
            if not self._may_go(old, Kind.DIRECTORY):
                return False
            found = self._root.metadata(old)
            closed = self._closed.closed(found, old, new)
            self._root.set_metadata(old, Kind.DIRECTORY, closed, owner=False)
            if not move_directory(self._root, old, new):
                return False
            self._closed.renamed(old, new, found, closed)
        except FileError:
            return False
        self._renamed(old, new, Kind.DIRECTORY)
        return True

    def _rename_file(self, message: Renamed) -> None:
        root, old, new = self._root, message.old, message.new
        try:
            if not self._may_go(old, Kind.FILE):
                return
            identity = root.identity(old)
            change, found = message.metadata.mtime_ns, identity.mtime_ns
            if identity.size != message.size or not self._preserved.same_time(change, found):
                return
            before = root.metadata(old)
            closed = self._closed.closed(before, old, new)
            if move_file(root, old, new, identity, closed, owner=False) is not Moved.DONE:
                return
            self._closed.renamed(old, new, before, closed)
        except FileError:
            return
        self._renamed(old, new, Kind.FILE)

    def _may_go(self, path: bytes, kind: Kind) -> bool:
        """Return whether an entry may leave its path: only with --delete, and not if a filter rule excludes
        it."""
        return (
            self._options.delete
            and not self._options.dry_run
            and self._root.kind(path) is kind
            and not self._protected.excluded(path, kind is Kind.DIRECTORY)
        )

    def _renamed(self, old: bytes, new: bytes, kind: Kind) -> None:
        """Note and report a rename."""
        parent = new.rpartition(b"/")[0]
        self._renamed_into.setdefault(self._root.identity(parent).device, parent)
        mark = b"/" if kind is Kind.DIRECTORY else b""
        self.landing.report(ItemChanged(RENAMING, old + mark, new + mark))

    def _make_renames_durable(self) -> None:
        if self._options.is_durable and self._renamed_into:
            try:
                make_durable(self._root, self._renamed_into.values())
            except FileError as error:
                self._events.report(Problem(writing_code(error), error.path_bytes, str(error)))


# The destination of a session that stays open: it serves turns until the source ends the session.


class Audience(Protocol):
    """Takes the events of turns."""

    def events(self) -> EventRelay:
        """Return a relay for the events of the next turn."""

    def begins(self) -> None:
        """Note that a turn begins."""

    def ended(self, done: Done, *, whole: bool, files: int) -> None:
        """Note that a turn ended. `whole`: it compared whole trees. `files`: number of regular files at the
        source."""

    def hear(self, message: Message) -> bool:
        """Take a message that came between two turns; False if the message is not allowed there."""


class _FarAudience:
    """The audience of a session whose user is at the source: all events go there as messages."""

    def events(self) -> EventRelay:
        return EventRelay(None)

    def begins(self) -> None:
        pass

    def ended(self, done: Done, *, whole: bool, files: int) -> None:
        pass

    def hear(self, message: Message) -> bool:
        return EventRelay(None).take(message)


FAR_AUDIENCE: Audience = _FarAudience()


class LiveDestination:
    """Serves the turns of one session. Before `run`, the caller sent Describe(whole, kept) to the source."""

    def __init__(
        self,
        path: bytes,
        site: Site,
        terms: Terms,
        *,
        whole: bool,
        preserved: Preserved,
        audience: Audience = FAR_AUDIENCE,
        asked: bytes | None = None,
    ) -> None:
        """`path`: relative to `site`; each turn opens it. If it stayed open between turns, it could not be
        unmounted, and writes would go on into a directory that was replaced. `asked`: as in announced()."""
        self._asked = asked
        self._path = path
        self._site = site
        self._terms = terms
        self.whole = whole
        self._audience = audience
        self.preserved = preserved
        self._start: Start | None = None
        self._withheld: str | None = None
        """Why nothing may be deleted before the next comparison of whole trees; None: all may."""
        self._root: os.stat_result | None = None
        """The stat of the destination's root."""
        self._facts: FileSystemFacts | None = None
        """The facts that a turn has learned of its file system."""

    def check_again(self) -> None:
        """Check the copy when a session continues a lost one.

        Raises RdcError (exit code 11) if the copy is gone, so that no mount point without its file system is
        filled.
        """
        if self._site.is_bare(self._path):
            raise RdcError(
                f"{printable(self._path)}: there was a copy here, now there is nothing; is it unmounted?",
                code=ExitCode.FILE_IO,
            )

    def run(self, watch: Watch) -> Conversation[None]:
        """Serve turns until the source ends the stream between two turns."""
        if watch.again:
            self.check_again()
        yield from self._compare_all()
        while (received := (yield from self._next_turn())) is not None:
            self._audience.begins()
            turn, round_ = received.message, received.round + 1
            if isinstance(turn, Turn) and turn.whole:
                self.whole = self._terms.wants_listing(self._path, self._site)
                self.preserved = keeps(
                    self._path, self._terms.options, self._site, catalog=self._terms.signer.catalog
                )
                yield Send(Describe(self.whole, self.preserved), round_)
                yield from self._compare_all()
            else:
                yield from self._take_changes(round_)

    def _next_turn(self) -> Conversation[Received | None]:
        """Return the next Turn; None if the source ended the stream."""
        while (received := (yield Idle())) is not None:
            if isinstance(received.message, Turn):
                return received
            # The source may have sent it during the last turn, before it received Done.
            if not isinstance(received.message, TopTier) and not self._audience.hear(received.message):
                raise ProtocolError(f"expected Turn, found {type(received.message).__name__}")
        return None

    def _compare_all(self) -> Conversation[None]:
        """Run a turn that compares whole trees."""
        self._start, round_ = announced((yield Receive()), self._asked)
        destination_root = self._destination_root(self._start)
        try:
            context = Destination(
                self._terms, destination_root, self._start, self._audience.events(), self.preserved
            )
            half = WholeTurn(context, whole=self.whole, in_sync_store=self._terms.in_sync_store, live=True)
            done = yield from half.run(round_)
            self._withheld = half.withheld
            self._audience.ended(done, whole=True, files=half.source_files)
        finally:
            self._release(destination_root)

    def _take_changes(self, round_: int) -> Conversation[None]:
        """Run a turn that receives only what changed."""
        if self._start is None:
            raise ProtocolError("changes of a tree that was never described")
        destination_root = self._destination_root(self._start)
        try:
            turn = ChangeTurn(
                Destination(
                    self._terms, destination_root, self._start, self._audience.events(), self.preserved
                ),
                withheld=self._withheld,
            )
            done = yield from turn.run(round_)
            self._withheld = turn.withheld
            self._audience.ended(done, whole=False, files=turn.source_files)
        finally:
            self._release(destination_root)

    def _destination_root(self, start: Start) -> DestinationRoot:
        """Open the destination. Raises RdcError (exit code 11) if another directory took its place."""
        if self._root is not None and not self._site.has(self._path):
            # Do not make the directory again: its file system may have been unmounted.
            raise RdcError(
                f"{printable(self._path)}: there was a copy here, now there is nothing; is it unmounted?",
                code=ExitCode.FILE_IO,
            )
        destination_root = open_destination(
            self._path, start, self._terms.options, self.preserved, self._site
        )
        try:
            if start.store is not None:
                raise UsageError(
                    "SRC is a store, whose packs must arrive before its snapshots, and rdc watch brings"
                    " changes as they come; run rdc sync after each rdc store put"
                )
            check_opened(destination_root.root.fileno(), b"", self._path, self._terms.options, None)
        except UsageError:
            destination_root.release()
            raise
        found = os.fstat(destination_root.root.fileno())
        if self._root is not None and not same_entry(self._root, found):
            destination_root.release()
            raise RdcError(
                f"{printable(self._path)}: another directory is here than a moment ago; is it unmounted?",
                code=ExitCode.FILE_IO,
            )
        self._root = found
        if self._facts is not None:
            destination_root.root.rely_on(self._facts, learned=True)
        return destination_root

    def _release(self, destination_root: DestinationRoot) -> None:
        """Close the destination, and keep what the turn has learned of its file system."""
        storage = destination_root.root.storage
        if storage.is_learned:
            self._facts = storage.facts
        destination_root.release()
