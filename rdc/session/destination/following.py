"""The destination of a session that stays open: it serves turns until the source ends the session."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, ProtocolError, RdcError, printable
from rdc.files.base.known_devices import same_entry
from rdc.lean.typed import Protocol
from rdc.protocol.messages import Describe, TopTier, Turn
from rdc.session.destination.change_turn import ChangeTurn
from rdc.session.destination.conversation import WholeTurn
from rdc.session.runtime.commands import Idle, Receive, Send
from rdc.session.runtime.event_relay import EventRelay
from rdc.session.transfer.destination import Destination
from rdc.session.trees.announced_entries import announced
from rdc.session.trees.destination_root import keeps, open_destination

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.preserved import FileSystemFacts, Preserved
    from rdc.protocol.connection import Received
    from rdc.protocol.messages import Done, Message, Start, Watch
    from rdc.session.runtime.commands import Conversation
    from rdc.session.transfer.destination import Terms
    from rdc.session.trees.destination_root import DestinationRoot, Site

__all__ = ["Audience", "LiveDestination"]


class Audience(Protocol):
    """Takes the events of turns."""

    def events(self) -> EventRelay:
        """A relay for the events of the next turn."""

    def begins(self) -> None:
        """A turn begins."""

    def ended(self, done: Done, *, whole: bool, files: int) -> None:
        """A turn ended. `whole`: it compared whole trees. `files`: number of regular files at the source."""

    def hear(self, message: Message) -> bool:
        """Takes a message that came between two turns; False if the message is not allowed there."""


class _FarAudience:
    """For a session whose user is at the source: all events go there as messages."""

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
        """What a turn has learned of its file system."""

    def check_again(self) -> None:
        """Checks the copy when a session continues a lost one.

        Raises RdcError (exit code 11) if the copy is gone, so that no mount point without its file system is
        filled.
        """
        if self._site.is_bare(self._path):
            raise RdcError(
                f"{printable(self._path)}: there was a copy here, now there is nothing; is it unmounted?",
                code=ExitCode.FILE_IO,
            )

    def run(self, watch: Watch) -> Conversation[None]:
        """Serves turns until the source ends the stream between two turns."""
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
        """The next Turn; None if the source ended the stream."""
        while (received := (yield Idle())) is not None:
            if isinstance(received.message, Turn):
                return received
            # The source may have sent it during the last turn, before it received Done.
            if not isinstance(received.message, TopTier) and not self._audience.hear(received.message):
                raise ProtocolError(f"expected Turn, found {type(received.message).__name__}")
        return None

    def _compare_all(self) -> Conversation[None]:
        """A turn that compares whole trees."""
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
        """A turn that receives only what changed."""
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
        """Opens the destination. Raises RdcError (exit code 11) if another directory took its place."""
        if self._root is not None and not self._site.has(self._path):
            # Do not make the directory again: its file system may have been unmounted.
            raise RdcError(
                f"{printable(self._path)}: there was a copy here, now there is nothing; is it unmounted?",
                code=ExitCode.FILE_IO,
            )
        destination_root = open_destination(
            self._path, start, self._terms.options, self.preserved, self._site
        )
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
        """Closes the destination, and keeps what the turn has learned of its file system."""
        storage = destination_root.root.storage
        if storage.is_learned:
            self._facts = storage.facts
        destination_root.release()
