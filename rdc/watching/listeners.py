"""The listener of a watch's source side: the user on this machine, or the user at the far side."""

from __future__ import annotations

from rdc.errors import ExitCode, one_line
from rdc.limits.sessions import UNTOLD_EVENTS
from rdc.model.watch import Halted, Limited, Resumed
from rdc.progress import Problem
from rdc.protocol.messages import Condition, Notice, SourceState
from rdc.session.runtime.commands import Send
from rdc.session.runtime.event_relay import EventRelay
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.watch import WatchEvent
    from rdc.progress import Event
    from rdc.protocol.messages import Message
    from rdc.session.runtime.commands import Conversation

__all__ = ["FarUser", "SourceRelay", "Listener", "NearUser"]


class Listener(Protocol):
    is_near: bool
    """Whether the listener also receives what the destination reports."""

    def report(self, event: Event) -> None:
        """Report an event about a single entry."""

    def emit(self, event: WatchEvent) -> None: ...

    def flush(self) -> Conversation[None]:
        """Send waiting events, between two turns."""


class NearUser:
    is_near = True

    def __init__(self, report: Callable[[Event], None], emit: Callable[[WatchEvent], None]) -> None:
        self.report = report
        self.emit = emit

    def flush(self) -> Conversation[None]:
        yield from ()


class FarUser:
    """A user at the far side. The destination's side itself knows how turns end; it receives all other events
    as messages."""

    is_near = False

    def __init__(self) -> None:
        self._waiting: list[Message] = []

    def report(self, event: Event) -> None:
        if isinstance(event, Problem) and len(self._waiting) < UNTOLD_EVENTS:
            self._waiting.append(Notice(event.code, event.path, event.message))

    def emit(self, event: WatchEvent) -> None:
        if isinstance(event, Halted):
            self._waiting.append(Condition(SourceState.HALTED, event.reason, 0))
        elif isinstance(event, Limited):
            self._waiting.append(Condition(SourceState.LIMITED, event.reason, event.seconds))
        elif isinstance(event, Resumed):
            self._waiting.append(Condition(SourceState.FOLLOWED, "", 0))

    def flush(self) -> Conversation[None]:
        waiting, self._waiting = self._waiting, []
        for message in waiting:
            yield Send(message, 0)


class SourceRelay(EventRelay):
    """For the source's part of a turn: events of this side and of the destination, each to its handler."""

    def __init__(self, here: Callable[[Event], None], there: Callable[[Event], None]) -> None:
        super().__init__(here)
        self._there = there

    def take(self, message: Message) -> bool:
        if isinstance(message, Notice):
            self._there(Problem(ExitCode(message.code), message.path, one_line(message.message)))
            return True
        return super().take(message)
