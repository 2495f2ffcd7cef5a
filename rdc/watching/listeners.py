"""The listeners of a watch: the user on this machine, or at the remote side; and the events of a source that
another machine follows."""

from __future__ import annotations

import time

from rdc.errors import ExitCode, one_line
from rdc.lean.typed import Protocol
from rdc.limits import UNTOLD_EVENTS
from rdc.progress import Event, PlanKnown, Problem
from rdc.protocol.messages import Condition, Notice, SourceState
from rdc.session.far.far_host import Traffic
from rdc.session.runtime.commands import Conversation, EventRelay, Send
from rdc.watching.records import Halted, InStep, Limited, Resumed, WatchEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.protocol.messages import Done, Message


# Problems in the turns of a watch: each is reported once and tried again, and none ends the watch.


class Troubles:
    def __init__(self) -> None:
        self.failed: set[bytes] = set()
        """Files of this turn that the destination did not get, because they changed during the read."""
        self.errors = False
        """True if anything else failed in this turn."""
        self._said: set[tuple[bytes, str]] = set()

    def begin(self, *, whole: bool) -> None:
        """Start a turn. A comparison of the whole trees reports persistent problems again."""
        self.failed.clear()
        self.errors = False
        if whole:
            self._said.clear()

    def take(self, event: Event) -> bool:
        """Record a problem. True: the user should see it. A file that is being written is no error, since it
        is tried again."""
        if not isinstance(event, Problem):
            return True
        if event.code is ExitCode.VANISHED and event.path_bytes:
            self.failed.add(event.path_bytes)
            return False
        key = (event.path_bytes, event.message)
        self.errors = self.errors or event.code is not ExitCode.OK
        if key in self._said:
            return False
        self._said.add(key)
        return True


class Listener(Protocol):
    is_near: bool
    """True if the listener also receives what the destination reports."""

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
    """A user at the remote side. The destination's side itself knows how turns end; it receives all other
    events as messages."""

    is_near = False

    def __init__(self) -> None:
        self._waiting: list[Message] = []

    def report(self, event: Event) -> None:
        if isinstance(event, Problem) and len(self._waiting) < UNTOLD_EVENTS:
            self._waiting.append(Notice(event.code, event.path_bytes, event.message))

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
    """Events of this side and of the other one in a turn, each to its handler."""

    def __init__(self, here: Callable[[Event], None], there: Callable[[Event], None]) -> None:
        super().__init__(here)
        self._there = there

    def take(self, message: Message) -> bool:
        if isinstance(message, Notice):
            self._there(Problem(ExitCode(message.code), message.path, one_line(message.message)))
            return True
        return super().take(message)


class FarSourceTurns:
    """The turns of a watch whose source is followed on another machine, as the user here hears of them."""

    def __init__(self, user: Listener, traffic: Callable[[], Traffic], *, host: str = "") -> None:
        """`traffic`: the bytes of the session so far. `host`: named before what the source says."""
        self._user = user
        self._traffic = traffic
        self._prefix = f"{host}: " if host else ""
        self._troubles = Troubles()
        self._began, self._before = time.monotonic(), Traffic(0, 0)
        self.in_step = False
        """True if the first comparison is complete."""
        self.files = 0
        """Number of the source's files, as last announced."""

    def begin(self, *, whole: bool) -> None:
        self._began = time.monotonic()
        self._troubles.begin(whole=whole)

    def take(self, event: Event) -> None:
        """Report an event of the destination."""
        if not (isinstance(event, PlanKnown) and self.in_step) and self._troubles.take(event):
            self._user.report(event)

    def show(self, condition: Condition) -> None:
        """Report how the source is."""
        reason = self._prefix + one_line(condition.reason)
        if condition.state is SourceState.HALTED:
            self._user.emit(Halted(reason))
        elif condition.state is SourceState.LIMITED:
            self._user.emit(Limited(reason, condition.seconds))
        else:
            self._user.emit(Resumed())

    def end(self, done: Done, *, whole: bool) -> None:
        now, before = self._traffic(), self._before
        self._before = now
        self.in_step = True
        sent, received = now.sent - before.sent, now.received - before.received
        seconds = time.monotonic() - self._began
        self._user.emit(InStep(whole, self.files, done.changed, done.deleted, sent, received, seconds))
