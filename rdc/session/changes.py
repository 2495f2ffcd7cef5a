"""The destination's half of a turn that tells what changed: only what is named is looked at.

What the source names is compared with what is here now, not with what was here once: an entry that somebody
else changed is found out when it is named, all others when the whole trees are compared again.
"""

from __future__ import annotations

from rdc.errors import ExitCode, FileError, ProtocolError, printable
from rdc.files.move import Moved, make_durable, move_directory, move_file
from rdc.model.entries import EMPTY_LISTING, Kind, Listing, strings
from rdc.plan.itemize import RENAMING
from rdc.progress import ItemChanged, Problem
from rdc.protocol.messages import Changed, Done, Renamed, TurnEnd
from rdc.records import replace
from rdc.session.announcement import check_announced, check_path
from rdc.session.commands import Receive, Send
from rdc.session.directories import Announced, writing_code
from rdc.session.leftovers import Leftovers
from rdc.session.receiving import Receiving
from rdc.session.vanished import Vanished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection

    from rdc.catalog.signer import FileSigner
    from rdc.model.kept import Kept
    from rdc.model.sync import SyncOptions
    from rdc.protocol.messages import Start
    from rdc.session.commands import Conversation
    from rdc.session.news import News
    from rdc.session.place import Place
    from rdc.tree.filters import FilterList

__all__ = ["UNEXPECTED", "ChangesTurn"]

UNEXPECTED = ExitCode.VANISHED
"""Code of a Done: what is here is not what the source takes it for; the whole trees have to be compared."""


class ChangesTurn:
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
        kept: Kept,
    ) -> None:
        """`kept`: what this side keeps."""
        if place.name is not None:
            raise ProtocolError("changes of what is no directory")
        self._kept = kept = kept.both(start.kept)
        self._only = start.only
        self._root = place.root
        self._filters = filters
        self._options = options
        self._news = news
        self._leftovers = Leftovers(place.root)
        self._receiving = Receiving(
            place, start, options, filters, secret, signer, self._leftovers, news, kept=kept, seeks=True
        )
        self._wanted = self._receiving.wanted
        self._landing = self._receiving.landing
        self._transfers = self._receiving.transfers
        self._deletion = self._receiving.deletion
        self._directories = self._receiving.directories
        self._extras = self._receiving.extras
        self._directories.expected.clear()
        self._announced: dict[bytes, Announced] = {}
        """Directories of which something was told, as they were announced."""
        self._renamed_into: dict[int, bytes] = {}
        """Of each device, a directory that something was renamed into."""
        self._unexpected = False
        self._round = 0
        self.source_files = 0
        """Regular files of the source's whole tree, as the turn told."""

    def run(self, round_: int) -> Conversation[Done]:
        """Takes what changed, fetches what differs, deletes, and ends with its account."""
        try:
            end, round_ = yield from self._gather(round_)
            self.source_files = end.files
            if not self._unexpected:
                yield from self._bring_up(end, round_)
            self._make_renames_durable()
        except BaseException:
            self._receiving.wind_down()
            raise
        round_ = self._round
        yield from self._news.tell(round_)
        done = self._receiving.account(UNEXPECTED if self._unexpected else ExitCode.OK)
        yield Send(done, round_)
        return done

    def _gather(self, round_: int) -> Conversation[tuple[TurnEnd, int]]:
        """Compares directories as they are told; contents are asked for once all are known."""
        while True:
            received = yield Receive()
            if received is None:
                continue
            self._round = round_ = max(round_, received.round + 1)
            message = received.message
            if isinstance(message, TurnEnd):
                return message, round_
            if isinstance(message, Renamed):
                for path in (message.old, message.new):
                    directory, _, name = path.rpartition(b"/")
                    self._check_within(directory, (name,))
                    check_path(path, message.entry is Kind.DIRECTORY, self._filters)
                self._rename(message)
            elif isinstance(message, Changed):
                self._check_within(message.path, (*message.listing.names, *strings(message.gone)))
                self._compare(message)
            elif not self._news.take(message):
                raise ProtocolError(f"expected what changed, found {type(message).__name__}")

    def _bring_up(self, end: TurnEnd, round_: int) -> Conversation[None]:
        directories, transfers = self._directories, self._transfers
        directories.give_up()
        extra = self._extras.found
        transfers.plan_known(
            lambda: Vanished(self._root, self._filters, extra, self._kept),
            rename=self._extras.may_go(end.entries, end.read_errors),
        )
        yield from self._fetch(round_)
        self._landing.flush()
        yield from transfers.move(self._deletion.spare, self._round)
        yield from self._fetch(self._round)
        self._landing.flush()
        if self._options.delete:
            self._extras.delete(end.entries, end.read_errors)
        directories.unblock(end.read_errors)
        self._deletion.finish()
        yield from self._fetch(self._round)
        self._landing.flush()
        self._leftovers.sweep()
        directories.finish()

    def _fetch(self, round_: int) -> Conversation[None]:
        """Until nothing is outstanding."""
        yield from self._transfers.pump(round_)
        while not self._transfers.idle:
            received = yield Receive()
            if received is None:
                continue
            self._round = max(self._round, received.round + 1)
            if not self._news.take(received.message):
                yield from self._transfers.take(received)
            yield from self._transfers.pump(received.round + 1)
            yield from self._news.tell(received.round + 1)

    def _check_within(self, directory: bytes, names: Collection[bytes]) -> None:
        """ProtocolError for what is told of entries of a directory beyond the one that was announced, or in a
        directory that the rules leave out."""
        if directory:
            check_announced((directory.partition(b"/")[0],), self._only)
        else:
            check_announced(names, self._only)
        while directory and self._filters:
            check_path(directory, True, self._filters)
            directory = directory.rpartition(b"/")[0]

    # Directories

    def _compare(self, part: Changed) -> None:
        path = part.path
        if self._unexpected:
            return
        announced = self._directories.expected.get(path) or self._announced.get(path)
        if announced is None:
            announced = Announced(part.metadata, new=False, touched=True, lost=False)
        announced = replace(announced, metadata=part.metadata, touched=True)
        known = path in self._announced
        self._announced[path] = announced
        self._directories.expected[path] = announced
        held = self._held(path, part, new=announced.new and not known)
        if held is None and not announced.lost:
            self._unexpected = True
            return
        first = len(self._wanted)
        if self._wanted.number(path) is None or self._wanted.directories[-1] == path:
            self._wanted.extend(path, part.listing.packed())
        else:
            raise ProtocolError(f"two listings of {printable(path)!r}")
        self._directories.compare(path, first, part.listing, held, frozenset(part.doubtful))

    def _held(self, path: bytes, part: Changed, *, new: bool) -> Listing | None:
        """Of our directory, the entries that the source names. None: it cannot be read."""
        if new:
            return EMPTY_LISTING
        stale: list[bytes] = []
        try:
            packed = self._root.list_packed(path, on_temporary=stale.append)
        except FileError:
            return None
        if stale:
            self._leftovers.note(path, stale)
        named = {*part.listing.names, *strings(part.gone)}
        rows = [row for row, name in enumerate(strings(packed.names)) if name in named]
        return packed.rows(rows).unpacked()

    # Renames

    def _rename(self, message: Renamed) -> None:
        """In one step. A file that is not as expected is left to the comparison; a directory, of whose
        contents nothing will be told, is not."""
        if self._unexpected:
            return
        if message.entry is Kind.DIRECTORY:
            if not self._rename_directory(message.old, message.new):
                self._unexpected = True
        else:
            self._rename_file(message)

    def _rename_directory(self, old: bytes, new: bytes) -> bool:
        try:
            if not self._may_go(old, Kind.DIRECTORY) or not move_directory(self._root, old, new):
                return False
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
            told, found = message.metadata.mtime_ns, identity.mtime_ns
            if identity.size != message.size or self._kept.mtime(found) != self._kept.mtime(told):
                return
            if move_file(root, old, new, identity) is not Moved.DONE:
                return
        except FileError:
            return
        self._renamed(old, new, Kind.FILE)

    def _may_go(self, path: bytes, kind: Kind) -> bool:
        """Without --delete nothing leaves its path; nor does what a filter rule protects."""
        return (
            self._options.delete
            and not self._options.dry_run
            and self._root.kind(path) is kind
            and not self._filters.excluded(path, kind is Kind.DIRECTORY)
        )

    def _renamed(self, old: bytes, new: bytes, kind: Kind) -> None:
        parent = new.rpartition(b"/")[0]
        self._renamed_into.setdefault(self._root.identity(parent).device, parent)
        mark = b"/" if kind is Kind.DIRECTORY else b""
        self._landing.report(ItemChanged(RENAMING, old + mark, new + mark))

    def _make_renames_durable(self) -> None:
        if self._options.fsync and self._renamed_into:
            try:
                make_durable(self._root, self._renamed_into.values())
            except FileError as error:
                self._news.report(Problem(writing_code(error), error.path, str(error)))
