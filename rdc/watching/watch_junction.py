"""What a relay does with each message of a watch whose source and destination are both on other hosts."""

from __future__ import annotations

import time

from rdc.errors import ExitCode, ProtocolError, one_line
from rdc.model.watch import Halted, InStep, Limited, Resumed
from rdc.progress import PlanKnown
from rdc.protocol import messages
from rdc.session.far.sync_junction import problem_at
from rdc.session.runtime.event_relay import EventRelay
from rdc.session.trees.announced_entries import announced
from rdc.watching.follower import Meter
from rdc.watching.troubles import Troubles

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.progress import Event
    from rdc.protocol.connection import Received
    from rdc.session.far.hop import Hop
    from rdc.watching.listeners import Listener

__all__ = ["WatchJunction"]


class WatchJunction:
    """A Junction of one session; it ends by an error, or when the process is stopped.

    The source was sent Follow with its Open, so it takes Describe only after its Watch: that of the
    destination, which knows nothing of it, waits here.
    """

    def __init__(self, source: Hop, destination: Hop, user: Listener, *, asked: bytes, mark: bytes) -> None:
        """asked: what the source was asked for, in the form of announced(). mark: as in Follow."""
        self._source = source
        self._destination = destination
        self._user = user
        self._asked = asked
        self.mark = mark
        """The origin of the source's Watch, or of an earlier one."""
        self._watched = False
        """Whether the source has sent Watch."""
        self._describe: Received | None = None
        """The destination's Describe, if it waits for Watch."""
        self._events = EventRelay(self._take)
        self._troubles = Troubles()
        self._troubles.begin(whole=True)
        self._whole = True
        self.idle_since: float | None = None
        """When the last turn ended; None during a turn."""
        self._began, self._before = time.monotonic(), Meter(0, 0)
        self.in_step = False
        """Whether the first comparison is complete."""
        self.files = 0
        """Number of the source's files, as last announced."""

    @property
    def over(self) -> bool:
        """Only an error or a signal ends a watch."""
        return False

    @property
    def meter(self) -> Meter:
        """The bytes on both hops."""
        both = (self._source.traffic, self._destination.traffic)
        return Meter(sum(each.sent for each in both), sum(each.received for each in both))

    def from_source(self, received: Received) -> Iterator[Received]:
        message = received.message
        if isinstance(message, (messages.Hello, messages.Opened)):
            return
        if isinstance(message, messages.Notice):
            # The source has already decided that it is to be seen.
            self._user.report(problem_at(self._source, message))
            return
        if isinstance(message, messages.Condition):
            self._show(message)
            return
        if isinstance(message, messages.Watch):
            self.mark, self._watched = message.origin, True
            if self._describe is not None:
                self._source.pass_on(self._describe.message, self._describe.round)
                self._describe = None
        elif isinstance(message, messages.Start):
            announced(received, self._asked)
        elif isinstance(message, messages.Turn):
            self._whole, self._began = message.whole, time.monotonic()
            self.idle_since = None
            self._troubles.begin(whole=message.whole)
        elif isinstance(message, (messages.Manifest, messages.ListingEnd, messages.TurnEnd)):
            self.files = message.files
        yield received

    def from_destination(self, received: Received) -> Iterator[Received]:
        message = received.message
        if isinstance(message, (messages.Hello, messages.Opened)):
            return
        if isinstance(message, messages.Follow):
            raise ProtocolError("the far side asks to follow the source, which is this machine's affair")
        if isinstance(message, messages.Describe) and not self._watched:
            self._describe = received
            return
        if isinstance(message, messages.Notice):
            self._take(problem_at(self._destination, message))
            if message.code is ExitCode.OK:
                return
            # The source decides what is tried again.
        elif self._events.take(message):
            return
        yield received
        if isinstance(message, messages.Done):
            self._ended(message)

    def _ended(self, done: messages.Done) -> None:
        """A turn ended."""
        now, before = self.meter, self._before
        self._before = now
        self.in_step = True
        self.idle_since = time.monotonic()
        sent, got = now.sent - before.sent, now.received - before.received
        seconds = time.monotonic() - self._began
        self._user.emit(InStep(self._whole, self.files, done.changed, done.deleted, sent, got, seconds))

    def _show(self, condition: messages.Condition) -> None:
        reason = f"{self._source.name}: {one_line(condition.reason)}"
        if condition.state is messages.SourceState.HALTED:
            self._user.emit(Halted(reason))
        elif condition.state is messages.SourceState.LIMITED:
            self._user.emit(Limited(reason, condition.seconds))
        else:
            self._user.emit(Resumed())

    def _take(self, event: Event) -> None:
        """Handles an event of the destination."""
        if not (isinstance(event, PlanKnown) and self.in_step) and self._troubles.take(event):
            self._user.report(event)
