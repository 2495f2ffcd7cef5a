"""The destination's half of a turn of changes: it looks only at the entries that the source names.

It compares them with the current tree, not with an earlier state. If another program changed an entry, the
turn that names the entry notices it; otherwise the next comparison of whole trees does.
"""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, ProtocolError, printable
from rdc.files.base.temporary_names import refused_component
from rdc.files.names.entry_names import Moved, make_durable, move_directory, move_file
from rdc.lean.records import replace
from rdc.model.entries import EMPTY_LISTING, Kind, Listing, strings
from rdc.plan.itemize import RENAMING
from rdc.progress import ItemChanged, Problem
from rdc.protocol.messages import Changed, Done, Renamed, TurnEnd
from rdc.session.applying.announced_directory import AnnouncedDirectory
from rdc.session.applying.writing_code import writing_code
from rdc.session.destination.closed_moves import ClosedMoves
from rdc.session.destination.conversation import DestinationTurn
from rdc.session.landing.partial_files import PartialFiles, left_alone, refused_name
from rdc.session.renames.removed_files import RemovedFiles
from rdc.session.runtime.commands import Receive, Send
from rdc.session.trees.announced_entries import check_announced, check_path
from rdc.session.trees.made_modes import with_made_mode, with_made_modes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.destination import Destination

__all__ = ["UNEXPECTED", "ChangeTurn"]

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
        """Receives the changes, fetches contents, deletes, and ends with the totals of the turn."""
        try:
            end, round_ = yield from self._gather(round_)
            self.source_files = end.files
            if not self._unexpected:
                yield from self._bring_up(end, round_)
            self._make_renames_durable()
        except BaseException:
            self.wind_down()
            raise
        self.finish_turn()
        round_ = self._round
        yield from self._events.send_waiting(round_)
        done = self.account(UNEXPECTED if self._unexpected else ExitCode.OK)
        yield Send(done, round_)
        return done

    def _gather(self, round_: int) -> Conversation[tuple[TurnEnd, int]]:
        """Compares directories as the source names them. Contents are requested when all are known."""
        while True:
            received = yield Receive()
            if received is None:
                continue
            self._round = round_ = max(round_, received.round + 1)
            message = received.message
            if isinstance(message, TurnEnd):
                if not self._unexpected:
                    self._closed.open()
                return message, round_
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

    def _bring_up(self, end: TurnEnd, round_: int) -> Conversation[None]:
        """Fetches contents, renames and deletes, after all directories were compared."""
        directories, transfers = self.directories, self.transfers
        directories.skip_unlisted()
        extra = self.extraneous.found
        transfers.plan_known(
            lambda: RemovedFiles(
                self._root, self._protected.movable, extra, self._preserved, self.extraneous.identity
            ),
            rename=self.extraneous.may_go(end.entries, end.read_errors),
        )
        yield from self._fetch(round_)
        self.landing.flush()
        yield from transfers.move(self.deletion.spare, self._round)
        yield from self._fetch(self._round)
        self.landing.flush()
        self.put_blocked(end.read_errors)
        yield from self._fetch(self._round)
        self.landing.flush()
        self.remove(end.entries, end.read_errors)
        self.withheld = self.extraneous.withheld(end.read_errors)
        yield from self._fetch(self._round)
        self.landing.flush()
        if self._uses_content:
            for entry in self._partial_files.foreign(self._filters, only=self._only or None):
                self._events.report(Problem(ExitCode.OK, entry, left_alone(entry)))
        self._partial_files.sweep()
        directories.finish()

    def _fetch(self, round_: int) -> Conversation[None]:
        """Fetches contents until nothing is outstanding."""
        yield from self.transfers.pump(round_)
        while not self.transfers.idle:
            received = yield Receive()
            if received is None:
                continue
            self._round = max(self._round, received.round + 1)
            if not self._events.take(received.message):
                yield from self.transfers.take(received)
            yield from self.transfers.pump(received.round + 1)
            yield from self._events.send_waiting(received.round + 1)

    def _check_within(self, directory: bytes, names: Collection[bytes]) -> None:
        """Raises ProtocolError for entries other than the announced one, or in an excluded directory."""
        if directory:
            check_announced((directory.partition(b"/")[0],), self._only)
        else:
            check_announced(names, self._only)
        while directory and self._filters:
            check_path(directory, True, self._filters)
            directory = directory.rpartition(b"/")[0]

    def _is_reserved(self, path: bytes) -> bool:
        """Whether a name in `path` is reserved, so that nothing may be done there. Reports it."""
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
        """The destination's listing of the entries that the source names; None if it cannot be read."""
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
            from rdc.session.applying.normalised_names import as_named_by_source

            names = as_named_by_source(self._root, path, named, names, dry_run=False)
        rows = [row for row, name in enumerate(names) if name in named]
        return listed.rows(rows).unpacked().named(tuple(names[row] for row in rows))

    # Renames

    def _rename(self, message: Renamed) -> None:
        """Renames an entry in one step.

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
        """Whether an entry may leave its path: only with --delete, and not if a filter rule excludes it."""
        return (
            self._options.delete
            and not self._options.dry_run
            and self._root.kind(path) is kind
            and not self._protected.excluded(path, kind is Kind.DIRECTORY)
        )

    def _renamed(self, old: bytes, new: bytes, kind: Kind) -> None:
        """Notes and reports a rename."""
        parent = new.rpartition(b"/")[0]
        self._renamed_into.setdefault(self._root.identity(parent).device, parent)
        mark = b"/" if kind is Kind.DIRECTORY else b""
        self.landing.report(ItemChanged(RENAMING, old + mark, new + mark))

    def _make_renames_durable(self) -> None:
        if self._options.fsync and self._renamed_into:
            try:
                make_durable(self._root, self._renamed_into.values())
            except FileError as error:
                self._events.report(Problem(writing_code(error), error.path, str(error)))
