"""A conversation and its connection, without I/O: commands are performed until bytes must move first."""

from __future__ import annotations

import contextlib

from rdc.errors import ProtocolError, RdcError, StreamError
from rdc.protocol.messages import Refused
from rdc.session.commands import Flush, Idle, Pace, Press, Receive, Send
from rdc.session.pressure import Pressure
from rdc.typed import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from rdc.errors import ExitCode
    from rdc.protocol.connection import Connection, Received
    from rdc.session.commands import Command, Conversation
    from rdc.session.heartbeat import Heartbeat

__all__ = ["RefusedError", "Runner", "unknown_there"]

T = TypeVar("T")

PENDING_HIGH = 256 << 10
"""Queued bytes at which a conversation that sends is held up: two blocks, so that the pipe never runs dry."""


class RefusedError(RdcError):
    """The far side's reason; marks errors that it knows already."""

    def __init__(self, reason: str, *, code: ExitCode) -> None:
        super().__init__(f"the far side: {reason}", code=code)
        self.reason = reason
        """As it was said there."""


class Runner(Generic[T]):
    """A conversation and its connection, without I/O: goes on until bytes must move first."""

    def __init__(self, conversation: Conversation[T], connection: Connection) -> None:
        self.connection = connection
        self.over = False
        self.pace: Pace | None = None
        """What the conversation asked for since this was last taken."""
        self.heartbeat: Heartbeat | None = None
        self.rested = False
        """What an Idle waited for is there, but for a message."""
        self.pressure = Pressure()
        self._conversation = conversation
        self._command: Command | None = None
        self._value: T | None = None

    @property
    def value(self) -> T:
        """What the conversation returned, once it is over."""
        return self._value  # type: ignore[return-value]

    @property
    def waits(self) -> bool:
        """Only input lets it go on, or the news that there will be none."""
        return isinstance(self._command, Idle) or (isinstance(self._command, Receive) and self._command.wait)

    @property
    def idle(self) -> Idle | None:
        """What it waits for between two turns of a session that stays open."""
        return self._command if isinstance(self._command, Idle) else None

    @property
    def sends(self) -> bool:
        """It has more to send than may be queued."""
        return isinstance(self._command, Send)

    def advance(self, polled: bool) -> None:
        """Perform commands until it is over or one needs I/O first: too much is queued, or no message there.

        polled: bytes were just moved, so a Receive(wait=False) may be answered with None, once.
        """
        if self._command is None:
            self._reply(None)
        connection = self.connection
        while not self.over:
            command = self._command
            if command.__class__ is Send:  # first and without a match: most commands are
                if connection.pending >= PENDING_HIGH:
                    return
                connection.send(command.message, command.round)
                self._reply(None)
                continue
            match command:
                case Flush():
                    self.connection.flush()
                    if self.connection.pending and not polled:
                        return
                    polled = False
                    self._reply(None)
                case Press(content, size):
                    self.connection.press(self.pressure.pressing(content, size))
                    self._reply(None)
                case Pace() as pace:
                    self.pace = pace
                    self._reply(None)
                case Idle():
                    received = self.receive()
                    if received is None and not self.rested:
                        return
                    self.rested = False
                    self._reply(received)
                case Receive(wait):
                    received = self.receive()
                    if received is None:
                        if wait or not polled:
                            return
                        polled = False
                    self._reply(received)
                case _:
                    raise TypeError(f"a conversation yielded {type(command).__name__}, which is no command")

    def receive(self) -> Received | None:
        """The connection's next message; the far side's Refused becomes an error with its code."""
        received = self.connection.next()
        if received is not None and isinstance(received.message, Refused):
            raise RefusedError(received.message.message, code=received.message.code)
        return received

    def fail(self, error: RdcError) -> NoReturn:
        """Raise `error` where the conversation waits, so that it can clean up; then what came of it."""
        if not self.over and self._command is not None:
            self.over = True
            # A conversation that swallows the error has still lost its connection.
            with contextlib.suppress(StopIteration):
                self._conversation.throw(error)
        try:
            raise error
        finally:
            # A frame that holds its own exception is a cycle, which would keep descriptors open.
            del error

    def _reply(self, received: Received | None) -> None:
        try:
            if self.heartbeat is None:
                self._command = self._conversation.send(received)
            else:
                with self.heartbeat.working():
                    self._command = self._conversation.send(received)
        except StopIteration as stop:
            self._value = stop.value
            self.over = True
        except BaseException:
            self.over = True
            raise


def unknown_there(error: RdcError) -> bool:
    """Whether the far side can want to hear of `error`: not its own refusal, and not when it is gone."""
    return not isinstance(error, RefusedError) and (
        isinstance(error, ProtocolError) or type(error) is not StreamError
    )
