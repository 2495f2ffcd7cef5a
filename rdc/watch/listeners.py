"""Who hears what the source's side of a watch has to say: the user here, or the one at the far side."""

from __future__ import annotations

from rdc.errors import ExitCode, printable
from rdc.limits import UNTOLD_EVENTS
from rdc.model.watch import Halted, Limited, Resumed
from rdc.progress import Problem
from rdc.protocol.messages import Condition, Notice, SourceState
from rdc.session.commands import Send
from rdc.session.news import News
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.watch import WatchEvent
    from rdc.progress import Event
    from rdc.protocol.messages import Message
    from rdc.session.commands import Conversation

__all__ = ["FarUser", "HeardNews", "Listener", "NearUser"]


class Listener(Protocol):
    is_near: bool
    """What the destination tells is for the listener too."""

    def report(self, event: Event) -> None:
        """Of single entries."""

    def tell(self, event: WatchEvent) -> None: ...

    def flush(self) -> Conversation[None]:
        """Sends what waits, between two turns."""


class NearUser:
    is_near = True

    def __init__(self, report: Callable[[Event], None], tell: Callable[[WatchEvent], None]) -> None:
        self.report = report
        self.tell = tell

    def flush(self) -> Conversation[None]:
        yield from ()


class FarUser:
    """The destination's side knows by itself how turns end; it hears of the rest as messages."""

    is_near = False

    def __init__(self) -> None:
        self._waiting: list[Message] = []

    def report(self, event: Event) -> None:
        if isinstance(event, Problem) and len(self._waiting) < UNTOLD_EVENTS:
            self._waiting.append(Notice(event.code, event.path, event.message))

    def tell(self, event: WatchEvent) -> None:
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


class HeardNews(News):
    """For the source's half of a turn: what arises here and what the destination tells, each to its taker."""

    def __init__(self, here: Callable[[Event], None], there: Callable[[Event], None]) -> None:
        super().__init__(here)
        self._there = there

    def take(self, message: Message) -> bool:
        if isinstance(message, Notice):
            self._there(Problem(ExitCode(message.code), message.path, printable(message.message)))
            return True
        return super().take(message)
