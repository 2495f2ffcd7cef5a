"""Runs a conversation on its connection, without I/O, until bytes have to move."""

from __future__ import annotations

import contextlib

from rdc.errors import ProtocolError, RdcError, StreamError
from rdc.lean.typed import Generic, TypeVar
from rdc.protocol.messages import Refused
from rdc.session.runtime.commands import AskAgreement, Flush, Idle, Pace, Receive, Send, SetCompression
from rdc.session.runtime.compression_policy import CompressionPolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from rdc.errors import ExitCode
    from rdc.protocol.connection import Connection, Received
    from rdc.session.runtime.commands import Command, Conversation
    from rdc.session.runtime.keepalive import Keepalive

__all__ = ["RefusedError", "Runner", "unknown_there"]

T = TypeVar("T")

PENDING_HIGH = 256 << 10
"""Queued bytes at which a sending conversation is held up. Two blocks keep the pipe filled."""


class RefusedError(RdcError):
    """An error that the far side sent; it must not be sent back."""

    def __init__(self, reason: str, *, code: ExitCode) -> None:
        super().__init__(f"the far side: {reason}", code=code)
        self.reason = reason
        """The far side's text."""


class Runner(Generic[T]):
    """Performs a conversation's commands on its connection, without I/O."""

    def __init__(self, conversation: Conversation[T], connection: Connection) -> None:
        self.connection = connection
        self.over = False
        self.pace: Pace | None = None
        """The last Pace command that the driver has not applied yet."""
        self.heartbeat: Keepalive | None = None
        self.rested = False
        """An Idle is over without a message: the bell rang, time passed or the stream ended."""
        self.policy = CompressionPolicy()
        self._conversation = conversation
        self._command: Command | None = None
        self._value: T | None = None

    @property
    def value(self) -> T:
        """What the conversation returned; valid once `over` is set."""
        return self._value  # type: ignore[return-value]

    @property
    def waits(self) -> bool:
        """Whether the conversation needs input, or the end of the input, to go on."""
        return isinstance(self._command, Idle) or (isinstance(self._command, Receive) and self._command.wait)

    @property
    def idle(self) -> Idle | None:
        """The Idle command that the conversation waits in, if any."""
        return self._command if isinstance(self._command, Idle) else None

    @property
    def sends(self) -> bool:
        """Whether the conversation has more to send than may be queued."""
        return isinstance(self._command, Send)

    def advance(self, polled: bool) -> None:
        """Performs commands until the conversation is over or needs I/O.

        It needs I/O if too much is queued or no message is there. polled: bytes were just moved, so one
        Receive(wait=False) may be answered with None.
        """
        # long because it is the one loop that answers each command of a conversation
        if self._command is None:
            self._reply(None)
        connection = self.connection
        while not self.over:
            command = self._command
            if command.__class__ is Send:  # tested first and outside `match`, because most commands are Sends
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
                case SetCompression(content, size):
                    self.connection.set_compression(self.policy.compression(content, size))
                    self._reply(None)
                case AskAgreement() as question:
                    if connection.agreement is not None:
                        question.features = connection.agreement.features
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
        """The connection's next message. Raises RefusedError if it is the far side's Refused."""
        received = self.connection.next()
        if received is not None and isinstance(received.message, Refused):
            raise RefusedError(received.message.message, code=received.message.code)
        return received

    def fail(self, error: RdcError) -> NoReturn:
        """Raises `error` at the conversation's yield, so that it can clean up, and then here."""
        if not self.over and self._command is not None:
            self.over = True
            # A conversation that swallows the error has still lost its connection.
            with contextlib.suppress(StopIteration):
                self._conversation.throw(error)
        try:
            raise error
        finally:
            # A frame that refers to its own exception is a cycle, which would keep descriptors open.
            del error

    def _reply(self, received: Received | None) -> None:
        """Sends an answer to the conversation and stores its next command or its value."""
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
    """Whether to send `error` to the far side: not its own refusal, and not if it is gone."""
    return not isinstance(error, RefusedError) and (
        isinstance(error, ProtocolError) or type(error) is not StreamError
    )
