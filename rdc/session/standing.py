"""The destination of a session that stays open: turn after turn, until the source has had enough."""

from __future__ import annotations

from rdc.errors import ExitCode, ProtocolError, RdcError, printable
from rdc.protocol.messages import Describe, TopTier, Turn
from rdc.session.announcement import announced
from rdc.session.changes import ChangesTurn
from rdc.session.commands import Idle, Receive, Send
from rdc.session.destination import Destination
from rdc.session.news import News
from rdc.session.place import keeps, open_destination, wants_listing
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.signer import FileSigner
    from rdc.model.kept import Kept
    from rdc.model.sync import SyncOptions
    from rdc.protocol.connection import Received
    from rdc.protocol.messages import Done, Message, Start, Watch
    from rdc.session.commands import Conversation
    from rdc.session.place import Place, Site
    from rdc.tree.filters import FilterList

__all__ = ["Audience", "Standing"]


class Audience(Protocol):
    """Who hears how the turns go."""

    def news(self) -> News:
        """For the events of one more turn."""

    def begins(self) -> None:
        """A turn."""

    def ended(self, done: Done, *, whole: bool, files: int) -> None:
        """The turn; `files`: regular files of the source."""

    def hear(self, message: Message) -> bool:
        """What came between two turns; False where it makes no sense."""


class _FarAudience:
    """The source's side sits with the user, and hears of all by messages."""

    def news(self) -> News:
        return News(None)

    def begins(self) -> None:
        pass

    def ended(self, done: Done, *, whole: bool, files: int) -> None:
        pass

    def hear(self, message: Message) -> bool:
        return News(None).take(message)


FAR_AUDIENCE: Audience = _FarAudience()


class Standing:
    """Serves the turns of one session. Before `run`, a Describe(whole, kept) went to the source."""

    def __init__(
        self,
        path: bytes,
        site: Site,
        options: SyncOptions,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        *,
        whole: bool,
        kept: Kept,
        audience: Audience = FAR_AUDIENCE,
        asked: bytes | None = None,
    ) -> None:
        """`path` is one of `site` and opened at each turn: kept open between turns it could not be
        unmounted, and one that was replaced would go on being written unseen. `asked`: as announced() has
        it."""
        self._asked = asked
        self._path = path
        self._site = site
        self._options = options
        self._filters = filters
        self._secret = secret
        self._signer = signer
        self.whole = whole
        self._audience = audience
        self.kept = kept
        self._start: Start | None = None
        self._root: tuple[int, int] | None = None
        """Device and inode of the destination's root."""

    def check_again(self) -> None:
        """Of a session that goes on where another one was lost: raises RdcError (11) where nothing is left of
        the copy, rather than fill the place where a file system was mounted."""
        if self._site.is_bare(self._path):
            raise RdcError(
                f"{printable(self._path)}: there was a copy here, now there is nothing; is it unmounted?",
                code=ExitCode.FILE_IO,
            )

    def run(self, watch: Watch) -> Conversation[None]:
        """Until the source ends the stream between two turns."""
        if watch.again:
            self.check_again()
        yield from self._compare_all()
        while (received := (yield from self._next_turn())) is not None:
            self._audience.begins()
            turn, round_ = received.message, received.round + 1
            if isinstance(turn, Turn) and turn.whole:
                self.whole = wants_listing(self._path, self._options, self._site)
                self.kept = keeps(self._path, self._options, self._site)
                yield Send(Describe(self.whole, self.kept), round_)
                yield from self._compare_all()
            else:
                yield from self._take_changes(round_)

    def _next_turn(self) -> Conversation[Received | None]:
        while (received := (yield Idle())) is not None:
            if isinstance(received.message, Turn):
                return received
            # Of the last turn, sent before its Done was there.
            if not isinstance(received.message, TopTier) and not self._audience.hear(received.message):
                raise ProtocolError(f"expected Turn, found {type(received.message).__name__}")
        return None

    def _compare_all(self) -> Conversation[None]:
        self._start, round_ = announced((yield Receive()), self._asked)
        place = self._place(self._start)
        try:
            half = Destination(
                place,
                self._start,
                self._options,
                self._filters,
                self._secret,
                self._signer,
                self._audience.news(),
                whole=self.whole,
                kept=self.kept,
                settlements=self._signer.catalog,
            )
            done = yield from half.run(round_)
            self._audience.ended(done, whole=True, files=half.source_files)
        finally:
            place.root.release()

    def _take_changes(self, round_: int) -> Conversation[None]:
        if self._start is None:
            raise ProtocolError("changes of a tree that was never described")
        place = self._place(self._start)
        try:
            turn = ChangesTurn(
                place,
                self._start,
                self._options,
                self._filters,
                self._secret,
                self._signer,
                self._audience.news(),
                kept=self.kept,
            )
            done = yield from turn.run(round_)
            self._audience.ended(done, whole=False, files=turn.source_files)
        finally:
            place.root.release()

    def _place(self, start: Start) -> Place:
        if self._root is not None and not self._site.has(self._path):
            # Not made anew: where the copy was there may now be a mount point.
            raise RdcError(
                f"{printable(self._path)}: there was a copy here, now there is nothing; is it unmounted?",
                code=ExitCode.FILE_IO,
            )
        place = open_destination(self._path, start, self._options, self._site)
        found = place.root.identity(b"")
        if self._root is not None and self._root != (found.device, found.inode):
            place.root.release()
            raise RdcError(
                f"{printable(self._path)}: another directory is here than a moment ago; is it unmounted?",
                code=ExitCode.FILE_IO,
            )
        self._root = (found.device, found.inode)
        return place
