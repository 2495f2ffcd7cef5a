"""The one performer of conversations: they yield what they want sent or received, this does it.

A conversation is a generator that yields commands and returns a value. It never touches a transport, so the
same one runs over ssh, between two threads, or against a script in a test.
"""

from __future__ import annotations

import contextlib
import select
import time
from collections import deque
from collections.abc import Generator
from itertools import groupby
from typing import TYPE_CHECKING, Generic, TypeVar

from rdc.errors import ExitCode, ProtocolError, RdcError, StreamError
from rdc.limits import INBOUND_BYTES
from rdc.protocol.connection import Connection, Received
from rdc.protocol.messages import Message, Refused
from rdc.protocol.pressing import PLAIN
from rdc.records import dataclass
from rdc.session.bandwidth import TokenBucket
from rdc.session.heartbeat import BEATS, Heartbeat
from rdc.session.pressure import Pressure
from rdc.transport.base import Exchange, Transport, Waitable, timed_out

if TYPE_CHECKING:
    from typing import Any, NoReturn, TypeAlias

__all__ = ["Command", "Conversation", "Flush", "Idle", "Pace", "Press", "Receive", "Send", "run"]

T = TypeVar("T")

PENDING_HIGH = 256 << 10
"""Queued bytes at which a conversation that sends is held up: two blocks, so that the pipe never runs dry."""

PENDING_LOW = 64 << 10
"""It goes on below this: a pump writes 192 KiB at least, not one message at a time."""

NOTHING = memoryview(b"")

LONG_BYTES = 32 << 10
"""Pieces on their way out that are shorter are copied together: less work than a write for each."""

BEAT_BYTES = 64
"""Bytes that a sign of life may move of what waits: no more than a bandwidth limit can overlook."""

REFUSE_SECONDS = 5.0
"""How long to try to tell the far side why we stop: it may be stuck, and our user waits for the reason."""


@dataclass(frozen=True, slots=True)
class Send:
    """Queue a message; the answer is None. It leaves at the next Receive(wait=True) at the latest."""

    message: Message
    round: int


@dataclass(frozen=True, slots=True)
class Receive:
    """The next message as Received. With wait=False None when none is there yet; what was queued then stays
    queued until it fills a block."""

    wait: bool = True


@dataclass(frozen=True, slots=True)
class Flush:
    """Hand everything queued to the transport, as far as it takes it, before long work without messages; the
    answer is None."""


@dataclass(frozen=True, slots=True)
class Pace:
    """From here on the connection keeps to these limits, 0 being none; the answer is None."""

    bandwidth: int
    """Bytes a second that this side writes."""
    timeout: int
    """Seconds without a byte moving, either way, after which the session ends."""


@dataclass(frozen=True, slots=True)
class Idle:
    """The next message, in a session that stays open between its turns: there may be none for days.

    None without one: the far side ended the stream, as it then may. With a `bell` None only says that it rang
    or that `seconds` passed, and the end of the stream is a StreamError. Under a time limit both sides give
    signs of life meanwhile, and one that has none of the other's for so long ends the session.
    """

    bell: int | None = None
    """A descriptor; it rings by becoming readable."""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Press:
    """How hard what is sent from here on is compressed, where it is; the answer is None."""

    hard: int
    """So many bytes hard, if they are few or the link is slow, else quickly; 0: neither of what follows."""


Command: TypeAlias = Send | Receive | Flush | Pace | Press | Idle
Conversation: TypeAlias = Generator[Command, Received | None, T]


class _RefusedError(RdcError):
    """The far side's reason; marks errors that it knows already."""


class _Runner(Generic[T]):
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
                case Press(hard):
                    self.connection.press(self.pressure.pressing(hard) if hard else PLAIN)
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
            raise _RefusedError(f"the far side: {received.message.message}", code=received.message.code)
        return received

    def fail(self, error: RdcError) -> NoReturn:
        """Raise `error` where the conversation waits, so that it can clean up; then what came of it."""
        if not self.over and self._command is not None:
            self.over = True
            # A conversation that swallows the error has still lost its connection.
            with contextlib.suppress(StopIteration):
                self._conversation.throw(error)
        raise error

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


class _Link:
    """The bytes between a connection and its transport."""

    def __init__(self, connection: Connection, transport: Transport, timeout: float | None) -> None:
        self.ended = False
        self._connection = connection
        self._transport = transport
        self.timeout = timeout
        self.bucket: TokenBucket | None = None
        self._outgoing: deque[memoryview] = deque()
        self._waiting = 0
        """Bytes in it."""
        self._all_taken = False
        """The last write took the whole of its piece."""
        self._spoke = self._heard = time.monotonic()
        """When this side last moved a byte, or tried to, and when the last one came."""

    def step(self, wait: bool) -> bool:
        """One exchange; `wait`: until something moves, or more may be written. True when input came."""
        self._fill()
        want_input = not self.ended and self._connection.buffered < INBOUND_BYTES
        moved = self._exchange(want_input, wait)
        self._sent(moved.written)
        while moved.written and self._outgoing and self.bucket is None and self._all_taken:
            # What is next is another piece only because content is not copied to follow what precedes it.
            self._sent(self._transport.exchange(self._first, False, 0).written)
        if moved.received:
            self._heard = time.monotonic()
            self._connection.receive_data(moved.received)
        if moved.eof:
            self.ended = True
            self._connection.receive_eof()
        return bool(moved.received) or moved.eof

    def rest(self, idle: Idle) -> bool:
        """Waits as `idle` says; True when it is over, False when bytes came.

        Raises RdcError (exit code 30) when a time limit passed without a byte of the far side's.
        """
        before = self._connection.bytes_received
        self.drain(1)
        if self._connection.bytes_received != before:
            return False  # it came while the last words left: perhaps all that there is to wait for
        transport = self._transport
        if not isinstance(transport, Waitable):
            if idle.bell is None:
                return self.ended or (self.step(wait=True) and self.ended)
            raise RdcError("this kind of connection cannot be kept open", code=ExitCode.USAGE)
        end = None if idle.seconds is None else time.monotonic() + idle.seconds
        while not self.ended:
            if self.step(wait=False):
                return idle.bell is None and self.ended
            self._give_signs_of_life()
            now = time.monotonic()
            if end is not None and now >= end:
                return True
            due = [moment - now for moment in (end, *self._deadlines()) if moment is not None]
            poll = select.poll()
            poll.register(transport.fileno(), transport.events)
            if idle.bell is not None:
                poll.register(idle.bell, select.POLLIN)
            ready = poll.poll(max(0.0, min(due)) * 1000 if due else None)
            if any(fd == idle.bell for fd, _ in ready):
                return True
        if idle.bell is None:
            return True
        raise StreamError("the far side ended the session")

    def _deadlines(self) -> tuple[float, ...]:
        """When this side has to say something, and when the far side should have."""
        if self.timeout is None:
            return ()
        return self._spoke + self.timeout / BEATS, self._heard + self.timeout

    def _give_signs_of_life(self) -> None:
        """After a look that found nothing: what is unread would tell that the far side lives."""
        if self.timeout is None:
            return
        now = time.monotonic()
        speak, hear = self._deadlines()
        if now >= hear:
            raise timed_out(self.timeout)
        if now >= speak:
            self.beat()

    def _exchange(self, want_input: bool, wait: bool) -> Exchange:
        if self.bucket is None or not self._outgoing:
            return self._transport.exchange(self._first, want_input, self.timeout if wait else 0)
        room = self.bucket.room
        if room:
            moved = self._transport.exchange(self._first[:room], want_input, self.timeout if wait else 0)
            self.bucket.take(moved.written)
            return moved
        # The silence is this side's own, and short: a fraction of a second.
        delay = self.bucket.delay if wait else 0
        if not want_input:
            time.sleep(delay)
            return Exchange(0, b"", False)
        try:
            return self._transport.exchange(NOTHING, True, delay)
        except RdcError as error:
            if error.code is not ExitCode.TIMEOUT:
                raise
            return Exchange(0, b"", False)

    def beat(self) -> None:
        """Moves a byte at least where the transport takes one, and waits for nothing."""
        self._spoke = time.monotonic()
        self._fill()
        if not self._outgoing:
            self._connection.beat()
            self._fill()
        moved = self._transport.exchange(self._first[:BEAT_BYTES], False, 0)
        self._sent(moved.written)

    def drain(self, until: int) -> tuple[int, float]:
        """Exchange until fewer than `until` of the bytes that are ready are left, or the far side ended; how
        many went meanwhile, and how long it took, in seconds.

        Input is taken at the same time: two ends that send to each other must not wait for each other.
        """
        self._fill()
        before, begun = self._waiting, time.monotonic()
        while self._waiting >= until and not self.ended:
            self.step(wait=True)
        return before - self._waiting, time.monotonic() - begun

    def refuse(self, error: RdcError) -> None:
        """Try to tell the far side why this one stops; for REFUSE_SECONDS, and never raising."""
        if not self._connection.can_refuse:
            return
        # It answers nothing, and may cross a Turn, with which rounds begin anew.
        self._connection.send(Refused(error.code, str(error)), 0)
        self._connection.flush()
        self._fill()
        deadline = time.monotonic() + REFUSE_SECONDS
        with contextlib.suppress(RdcError):
            while self._outgoing and (left := deadline - time.monotonic()) > 0:
                # What still comes is dropped: a far side that cannot send might never read.
                moved = self._transport.exchange(self._first, True, left)
                self._sent(moved.written)
                if moved.eof:
                    return

    def _fill(self) -> None:
        parts = self._connection.parts_to_send()
        self._waiting += sum(map(len, parts))
        for long, some in groupby(parts, key=lambda part: len(part) >= LONG_BYTES):
            pieces = list(some)
            self._outgoing += map(memoryview, pieces if long else [b"".join(pieces)])

    @property
    def _first(self) -> memoryview:
        return self._outgoing[0] if self._outgoing else NOTHING

    def _sent(self, count: int) -> None:
        if not count:
            self._all_taken = False
            return
        self._spoke = time.monotonic()
        self._waiting -= count
        first = self._outgoing[0]
        self._all_taken = count == len(first)
        if self._all_taken:
            self._outgoing.popleft()
        else:
            self._outgoing[0] = first[count:]


def run(
    conversation: Conversation[T],
    connection: Connection,
    transport: Transport,
    *,
    timeout: float | None = None,
) -> T:
    """Perform `conversation` to its end and return its value; everything it sent has then left.

    timeout: seconds without a byte moving, None for no limit; a Pace of the conversation's replaces it. The
    transport is the caller's to close.
    Raises whatever the conversation raises; RdcError with the far side's code when that refused; StreamError,
    ProtocolError or IncompatiblePeerError (also raised at the conversation's yield). An RdcError that the far
    side does not know yet is sent to it first.
    """
    runner = _Runner(conversation, connection)
    link = _Link(connection, transport, timeout)
    try:
        try:
            polled = False
            while True:
                runner.advance(polled)
                polled = True
                _set_pace(runner, link)
                if runner.over:
                    break
                if runner.sends:
                    runner.pressure.held_up(*link.drain(PENDING_LOW))
                    if link.ended:
                        _lament(runner)
                elif runner.idle is not None:
                    connection.flush()
                    runner.rested = link.rest(runner.idle)
                elif runner.waits:
                    if link.ended:
                        # Where it may end, but not here: this side still waits for something.
                        raise StreamError("the far side ended the session early")
                    connection.flush()
                    link.step(wait=True)
                else:
                    link.step(wait=False)
            connection.flush()
            link.drain(1)
        except RdcError as error:
            runner.fail(error)
    except RdcError as error:
        if _unknown_there(error):
            link.refuse(error)
        raise
    finally:
        if runner.heartbeat is not None:
            runner.heartbeat.stop()
        conversation.close()
    return runner.value


def _set_pace(runner: _Runner[Any], link: _Link) -> None:
    pace, runner.pace = runner.pace, None
    if pace is None:
        return
    link.bucket = TokenBucket(pace.bandwidth) if pace.bandwidth else None
    runner.pressure.limit(pace.bandwidth)
    if pace.timeout:
        link.timeout = pace.timeout
        if runner.heartbeat is None:
            runner.heartbeat = Heartbeat(link.beat, pace.timeout)


def _lament(runner: _Runner[Any]) -> NoReturn:
    """The far side ended its stream while this one has much to send: find its reason, drop the rest."""
    while runner.receive() is not None:
        pass
    raise StreamError("the far side ended the stream early")


def _unknown_there(error: RdcError) -> bool:
    """Whether the far side can want to hear of `error`: not its own refusal, and not when it is gone."""
    return not isinstance(error, _RefusedError) and (
        isinstance(error, ProtocolError) or type(error) is not StreamError
    )
