"""What a relay does with each message of one sync."""

from __future__ import annotations

from rdc.errors import ExitCode, ProtocolError, one_line
from rdc.progress import Problem
from rdc.protocol import messages
from rdc.session.trees.announced_entries import announced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.protocol.connection import Received
    from rdc.session.far.hop import Hop
    from rdc.session.runtime.event_relay import EventRelay

__all__ = ["SyncJunction", "problem_at"]


def problem_at(hop: Hop, notice: messages.Notice) -> Problem:
    """The problem that a host tells of, with its name: a path alone could be on either."""
    message = one_line(notice.message)
    return Problem(ExitCode(notice.code), notice.path, f"{message} (on {hop.name})")


class SyncJunction:
    """A Junction: the user here sees the reports of both hosts, and the rest passes."""

    def __init__(self, source: Hop, destination: Hop, events: EventRelay, asked: bytes) -> None:
        """`asked`: what the source was asked for, in the form of announced()."""
        self._source = source
        self._destination = destination
        self._events = events
        self._asked = asked
        self.done: messages.Done | None = None
        self.files = 0
        """Regular files of the source after filters, as it announced them last."""
        self.total_bytes = 0

    @property
    def over(self) -> bool:
        return self.done is not None

    @property
    def idle_since(self) -> None:
        """A sync always has something to do."""

    def from_source(self, received: Received) -> Iterator[Received]:
        message = received.message
        if isinstance(message, (messages.Hello, messages.Opened)):
            return
        if isinstance(message, messages.Notice):
            self._events.report(problem_at(self._source, message))
            return
        if isinstance(message, (messages.Watch, messages.Condition)):
            raise ProtocolError(f"the far side sent {message.name}, and nothing is watched")
        if isinstance(message, messages.Start):
            # The destination takes any Start of a dialler. This machine's user asked for one entry.
            announced(received, self._asked)
        elif isinstance(message, (messages.Manifest, messages.ListingEnd)):
            self.files, self.total_bytes = message.files, message.bytes
        yield received

    def from_destination(self, received: Received) -> Iterator[Received]:
        message = received.message
        if isinstance(message, (messages.Hello, messages.Opened)):
            return
        if isinstance(message, messages.Follow):
            raise ProtocolError("the far side asks to follow the source, and nothing is watched")
        if isinstance(message, messages.Notice):
            self._events.report(problem_at(self._destination, message))
            return
        if self._events.take(message):
            return
        yield received
        if isinstance(message, messages.Done):
            self.done = message
