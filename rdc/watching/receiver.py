"""The destination's side of a watch that it dialled: a far source is followed, and the user here is
informed."""

from __future__ import annotations

from rdc.errors import ExitCode, ProtocolError, StreamError, one_line
from rdc.progress import Problem
from rdc.protocol.messages import Condition, Describe, Follow, Notice, Watch
from rdc.session.destination.following import LiveDestination
from rdc.session.runtime.commands import Idle, Send
from rdc.session.runtime.event_relay import EventRelay
from rdc.session.transfer.destination import Terms
from rdc.session.trees.destination_root import keeps, wants_listing
from rdc.session.trees.sites import ANYWHERE
from rdc.watching.listeners import FarSourceTurns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.signer import FileSigner
    from rdc.model.watch import WatchOptions
    from rdc.progress import Event
    from rdc.protocol.messages import Done, Message
    from rdc.session.far.far_host import Traffic
    from rdc.session.runtime.commands import Conversation
    from rdc.tree.filters import FilterList
    from rdc.watching.listeners import Listener


class Receiver:
    """One session; an Audience of its turns. user: receives their events."""

    def __init__(
        self,
        path: bytes,
        options: WatchOptions,
        filters: FilterList,
        secret: bytes,
        signer: FileSigner,
        user: Listener,
        traffic: Callable[[], Traffic],
        *,
        asked: bytes,
        origin: bytes,
        again: bool,
    ) -> None:
        """asked: requested of the source, in the form of announced(). origin: the directory that an earlier
        session followed, empty without one. again: that session brought `path` in step, and not empty."""
        self._path = path
        self._asked = asked
        self._options = options
        self._filters = filters
        self._secret = secret
        self._signer = signer
        self._user = user
        self.origin = origin
        self._again = again
        self.turns = FarSourceTurns(user, traffic)

    def run(self, opening: Conversation[None]) -> Conversation[None]:
        """Receive until an error, or until the process is stopped. opening: the messages up to the source's
        Opened."""
        options = self._options.sync
        destination = LiveDestination(
            self._path,
            ANYWHERE,
            Terms(options, self._filters, self._secret, self._signer),
            whole=wants_listing(self._path, options),
            preserved=keeps(self._path, options, catalog=self._signer.catalog),
            audience=self,
            asked=self._asked,
        )
        if self._again:
            destination.check_again()
        yield from opening
        yield Send(Follow(self._options.rescan, self.origin if self._again else b""), 0)
        while (received := (yield Idle())) is not None:
            message = received.message
            if isinstance(message, Watch):
                self.origin = message.origin
                yield Send(Describe(destination.whole, destination.preserved), received.round + 1)
                yield from destination.run(message)
                break
            if not self.hear(message):
                raise ProtocolError(f"expected Watch, found {type(message).__name__}")
        # A source asked to follow never ends the session itself.
        raise StreamError("the far side ended the session")

    # As an Audience

    def begins(self) -> None:
        self.turns.begin(whole=False)

    def events(self) -> EventRelay:
        return _TurnRelay(self.turns.take, self._user.report)

    def ended(self, done: Done, *, whole: bool, files: int) -> None:
        self.turns.files = files
        self.turns.end(done, whole=whole)

    def hear(self, message: Message) -> bool:
        if isinstance(message, Condition):
            self.turns.show(message)
            return True
        return self.events().take(message)


class _TurnRelay(EventRelay):
    """Also reports this side's problems to the source, which decides about retries."""

    def __init__(self, here: Callable[[Event], None], there: Callable[[Problem], None]) -> None:
        super().__init__(here)
        self._there = there

    def report(self, event: Event) -> None:
        super().report(event)
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._waiting.append(event)

    def take(self, message: Message) -> bool:
        if isinstance(message, Notice):
            self._there(Problem(ExitCode(message.code), message.path, one_line(message.message)))
            return True
        return super().take(message)
