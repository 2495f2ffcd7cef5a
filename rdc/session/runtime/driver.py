"""Runs a conversation over a transport: its commands, its bytes, its limits of time and bandwidth."""

from __future__ import annotations

import contextlib
import select
import time
from collections import deque
from itertools import groupby

from rdc.errors import ExitCode, ProtocolError, RdcError, StreamError
from rdc.lean.typed import Generic, TypeVar
from rdc.limits import INBOUND_BYTES
from rdc.progress import STOP_SECONDS, StopSignal, check_stop
from rdc.protocol.messages import Refused
from rdc.session.runtime.commands import (
    AskAgreement,
    AskArrival,
    Command,
    CompressionPolicy,
    Conversation,
    Flush,
    Idle,
    Pace,
    Receive,
    Send,
    SetCompression,
)
from rdc.transport.base import Exchange, Transport, timed_out, waitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, NoReturn

    from rdc.protocol.connection import Connection, Received


# The bandwidth limit of a session: a token bucket.

BURST_SECONDS = 0.1
"""Size of a burst, in seconds of the rate. A longer burst would delay other traffic on the line; a shorter
one would cause a wait every few bytes."""

BURST_LEAST = 512
"""Smallest burst, in bytes. Even at the lowest rates, a frame's head and a small block leave in one piece."""


class TokenBucket:
    """Grants `rate` bytes a second on average and at most a burst at once. One thread at a time."""

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`rate`: bytes a second, above 0. `clock`: seconds that never go back."""
        self._rate = rate
        self._clock = clock
        self._burst = max(BURST_LEAST, int(rate * BURST_SECONDS))
        self._tokens = float(self._burst)
        self._filled = clock()

    @property
    def room(self) -> int:
        """Bytes that may be written now. After a wait of `delay` seconds a write is worthwhile."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        return max(0, int(self._tokens))

    def take(self, size: int) -> None:
        """Count `size` written bytes. More than `room` makes a debt, which lengthens the next delay."""
        self._tokens -= size

    @property
    def delay(self) -> float:
        """Seconds until half a burst may be written, or until a debt is paid; 0 if that is now."""
        wanted = self._burst / 2 if self._tokens >= 0 else 1.0
        return max(0.0, wanted - self._tokens) / self._rate


NOTHING = memoryview(b"")

LONG_BYTES = 32 << 10
"""Shorter pieces are copied together before writing. That costs less than one write per piece."""

BEATS = 4
"""Signs of life per time limit of the remote side. With four, a late one does no harm."""

BEAT_BYTES = 64
"""Most waiting bytes that one sign of life moves: few enough to ignore a bandwidth limit."""

REFUSE_SECONDS = 5.0
"""The time limit for sending the remote side the reason for stopping. The remote side may be stuck."""


class ByteLink:
    """The bytes between a connection and its transport."""

    def __init__(
        self,
        connection: Connection,
        transport: Transport,
        timeout: float | None,
        stop: StopSignal | None = None,
    ) -> None:
        """`stop`: once it is set, waits end with StoppedError."""
        self.ended = False
        self._stop = stop
        self._connection = connection
        self._transport = transport
        self.timeout = timeout
        self.bucket: TokenBucket | None = None
        self._outgoing: deque[memoryview] = deque()
        self._waiting = 0
        """Bytes in `_outgoing`."""
        self._all_taken = False
        """True if the last write took its whole piece."""
        self._spoke = self._heard = time.monotonic()

    @property
    def queued(self) -> int:
        """Bytes that the transport has not taken yet."""
        return self._waiting

    @property
    def spoke(self) -> float:
        """The time of this side's last attempt to write, by time.monotonic()."""
        return self._spoke

    @property
    def heard(self) -> float:
        """The time of the last input."""
        return self._heard

    def step(self, wait: bool, inbound: int = INBOUND_BYTES) -> bool:
        """One exchange with the transport. Returns True if input or the end of the stream came.

        `wait`: wait until bytes move or the bandwidth limit allows a write. `inbound`: with this many bytes
        that are not yet decoded, nothing is read.
        """
        self._fill()
        want_input = not self.ended and self._connection.buffered < inbound
        if wait and self._stop is not None:
            moved = self._exchange_or_stop(want_input)
        else:
            moved = self._exchange(want_input, wait)
        self._sent(moved.written)
        while moved.written and self._outgoing and self.bucket is None and self._all_taken:
            # The next piece is separate only because contents are not copied to join earlier pieces.
            self._sent(self._transport.exchange(self._first, False, 0).written)
        if moved.received:
            self._heard = time.monotonic()
            self._connection.receive_data(moved.received)
        if moved.eof:
            self.ended = True
            self._connection.receive_eof()
        return bool(moved.received) or moved.eof

    def _exchange_or_stop(self, want_input: bool) -> Exchange:
        """Like an exchange that waits, but looks at the stop signal meanwhile. Raises StoppedError."""
        transport = waitable(self._transport)
        end = None if self.timeout is None else time.monotonic() + self.timeout
        while True:
            check_stop(self._stop)
            moved = self._exchange(want_input, False)
            if moved.written or moved.received or moved.eof:
                return moved
            if transport is None or not want_input or (self.bucket is not None and self._outgoing):
                # A bandwidth limit waits for a fraction of a second. Without input, output ends the wait.
                return self._exchange(want_input, True)
            if self.timeout is not None and end is not None and time.monotonic() >= end:
                raise timed_out(self.timeout)
            poll = select.poll()
            poll.register(transport.fileno(), transport.events)
            poll.poll(STOP_SECONDS * 1000)

    def rest(self, idle: Idle) -> bool:
        """Wait as `idle` says. Returns True if the wait is over, False if bytes came.

        Raises RdcError (exit code 30) if the time limit passes without a byte from the remote side.
        """
        # long because it is the one wait of a session: each reason to wake up is a case
        before = self._connection.bytes_received
        self.drain(1)
        if self._connection.bytes_received != before:
            return False  # input came while output was written: it may be what the caller waits for
        transport = waitable(self._transport)
        if transport is None:
            if idle.bell is None:
                return self.ended or (self.step(wait=True) and self.ended)
            raise RdcError("this kind of connection cannot be kept open", code=ExitCode.USAGE)
        end = None if idle.seconds is None else time.monotonic() + idle.seconds
        while not self.ended:
            check_stop(self._stop)
            if self.step(wait=False):
                return idle.bell is None and self.ended
            self._give_signs_of_life()
            now = time.monotonic()
            if end is not None and now >= end:
                return True
            due = [moment - now for moment in (end, *self._deadlines()) if moment is not None]
            if self._stop is not None:
                due.append(STOP_SECONDS)
            poll = select.poll()
            poll.register(transport.fileno(), transport.events)
            if idle.bell is not None:
                poll.register(idle.bell, select.POLLIN)
            ready = poll.poll(max(0.0, min(due)) * 1000 if due else None)
            if any(fd == idle.bell for fd, _ in ready):
                return True
        if idle.bell is None:
            return True
        raise StreamError("the remote side ended the session")

    def _deadlines(self) -> tuple[float, ...]:
        """Return when this side has to send a sign of life, and when the remote side's time limit ends."""
        if self.timeout is None:
            return ()
        return self._spoke + self.timeout / BEATS, self._heard + self.timeout

    def _give_signs_of_life(self) -> None:
        """Send a sign of life if due. Raises RdcError if the remote side is overdue.

        The caller has just found no input: unread input would be a sign of life.
        """
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
        # This side causes the silence, for a fraction of a second, so no time limit applies.
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
        """Write at least one byte if the transport takes one. Never waits."""
        self._spoke = time.monotonic()
        self._fill()
        if not self._outgoing:
            self._connection.beat()
            self._fill()
        moved = self._transport.exchange(self._first[:BEAT_BYTES], False, 0)
        self._sent(moved.written)

    def drain(self, until: int) -> tuple[int, float]:
        """Write until fewer than `until` bytes wait or the remote side ends the stream.

        Returns the bytes written and the seconds it took. Reads input meanwhile, so that two ends that both
        write do not block each other.
        """
        self._fill()
        before, begun = self._waiting, time.monotonic()
        while self._waiting >= until and not self.ended:
            self.step(wait=True)
        return before - self._waiting, time.monotonic() - begun

    def refuse(self, error: RdcError) -> None:
        """Try to send the remote side the reason for stopping, for REFUSE_SECONDS. Never raises RdcError.

        Ignores the bandwidth limit: up to 256 KiB are queued before the reason, and at a low rate they would
        take too long.
        """
        if not self._connection.can_refuse:
            return
        # Round 0: it answers no message, and a Turn that restarts the rounds may cross it.
        self._connection.send(Refused(error.code, str(error)), 0)
        self._connection.flush()
        self._fill()
        deadline = time.monotonic() + REFUSE_SECONDS
        with contextlib.suppress(RdcError):
            while self._outgoing and (left := deadline - time.monotonic()) > 0:
                # Read and drop input: a remote side that cannot write might never read.
                moved = self._transport.exchange(self._first, True, left)
                self._sent(moved.written)
                if moved.eof:
                    return

    def _fill(self) -> None:
        """Move the connection's output to the queue."""
        parts = self._connection.parts_to_send()
        self._waiting += sum(map(len, parts))
        for long, some in groupby(parts, key=lambda part: len(part) >= LONG_BYTES):
            parts = list(some)
            self._outgoing += map(memoryview, parts if long else [b"".join(parts)])

    @property
    def _first(self) -> memoryview:
        return self._outgoing[0] if self._outgoing else NOTHING

    def _sent(self, count: int) -> None:
        """Remove `count` written bytes from the queue."""
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


class Keepalive:
    """Calls `beat` from its own thread every quarter of `timeout` seconds, but only inside `working`.

    Code inside `working` must not touch what `beat` touches: connection and transport belong to one thread at
    a time.
    """

    def __init__(self, beat: Callable[[], None], timeout: float) -> None:
        import threading  # few sessions have a time limit

        self._beat = beat
        self._interval = timeout / BEATS
        self._turn = threading.Lock()
        self._stopped = threading.Event()
        self._turn.acquire()
        self._thread = threading.Thread(target=self._run, name="rdc heartbeat", daemon=True)
        self._thread.start()

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Open a context in which `beat` may be called."""
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()

    def stop(self) -> None:
        """End the signs of life. Only the thread that made this may call it, outside `working`."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(self._interval):
            if not self._turn.acquire(timeout=self._interval):
                continue  # the main thread is moving bytes or waiting for them, so this side is not silent
            try:
                if not self._stopped.is_set():
                    # The next exchange will raise an error of the transport again.
                    with contextlib.suppress(RdcError, OSError, ValueError):
                        self._beat()
            finally:
                self._turn.release()


T = TypeVar("T")

PENDING_HIGH = 256 << 10
"""Queued bytes at which a sending conversation is held up. Two blocks keep the pipe filled."""


QUEUED_HIGH = 8 << 20
"""Bytes that a conversation may queue that looks for input after each message. Where the remote side is busy,
it works ahead; a slow link must not make it hold all that it sends."""


class RefusedError(RdcError):
    """An error that the remote side sent; it must not be sent back."""

    def __init__(self, reason: str, *, code: ExitCode) -> None:
        super().__init__(f"the remote side: {reason}", code=code)
        self.reason = reason
        """The remote side's text."""


class Runner(Generic[T]):
    """Performs a conversation's commands on its connection, without I/O."""

    def __init__(
        self,
        conversation: Conversation[T],
        connection: Connection,
        policy: CompressionPolicy | None = None,
    ) -> None:
        """`policy`: of compression; None for that of a session without options."""
        self.connection = connection
        self.over = False
        self.pace: Pace | None = None
        """The last Pace command that the driver has not applied yet."""
        self.heartbeat: Keepalive | None = None
        self.rested = False
        """An Idle is over without a message: the bell rang, time passed or the stream ended."""
        self.policy = policy or CompressionPolicy()
        self._handed_over = False
        """The transport was given what the Flush in hand has queued, and took what it could."""
        self.clock: Callable[[], float] | None = None
        """Tells when messages came; None: there is no line."""
        self.queued = 0
        """Bytes that were taken from the connection and that the transport has not taken yet."""
        self._conversation = conversation
        self._command: Command | None = None
        self._value: T | None = None

    @property
    def value(self) -> T:
        """Return what the conversation returned; valid once `over` is set."""
        return self._value  # type: ignore[return-value] # T may be None itself, so no check tells them apart

    @property
    def waits(self) -> bool:
        """Return whether the conversation needs input, or the end of the input, to go on."""
        return isinstance(self._command, Idle) or (isinstance(self._command, Receive) and self._command.wait)

    @property
    def idle(self) -> Idle | None:
        """The Idle command that the conversation waits in, if any."""
        return self._command if isinstance(self._command, Idle) else None

    @property
    def most_queued(self) -> int:
        """Return the bytes that may wait for the transport beside those of the connection."""
        return PENDING_HIGH if self.policy.is_trying else QUEUED_HIGH

    @property
    def sends(self) -> bool:
        """Return whether the conversation has more to send than may be queued."""
        return isinstance(self._command, Send)

    def advance(self, polled: bool) -> None:
        """Perform commands until the conversation is over or needs I/O.

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
                if connection.pending >= PENDING_HIGH or self.queued >= self.most_queued:
                    return
                connection.send(command.message, command.round)
                self._reply(None)
                continue
            match command:
                case Flush():
                    connection.flush()
                    if connection.pending and not self._handed_over:
                        # An earlier poll does not count: these bytes have not been tried yet.
                        self._handed_over = True
                        return
                    polled = self._handed_over = False
                    self._reply(None)
                case SetCompression(content, size):
                    self.policy.left = connection.bytes_sent - self.queued
                    self.policy.waiting = connection.pending + self.queued
                    connection.set_compression(self.policy.compression(content, size))
                    self._reply(None)
                case AskAgreement() as question:
                    if connection.agreement is not None:
                        question.features = connection.agreement.features
                    self._reply(None)
                case AskArrival() as arrival:
                    arrival.now = None if self.clock is None else self.clock()
                    arrival.received = connection.bytes_received
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
        """Return the connection's next message. Raises RefusedError if it is the remote side's Refused."""
        received = self.connection.next()
        if received is not None and isinstance(received.message, Refused):
            raise RefusedError(received.message.message, code=received.message.code)
        return received

    def fail(self, error: RdcError) -> NoReturn:
        """Raise `error` at the conversation's yield, so that it can clean up, and then here."""
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
        """Send an answer to the conversation and store its next command or its value."""
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
    """Return whether to send `error` to the remote side: not its own refusal, and not if it is gone."""
    return not isinstance(error, RefusedError) and (
        isinstance(error, ProtocolError) or type(error) is not StreamError
    )


# Runs a conversation over a transport: performs the commands that it yields.

PENDING_LOW = 64 << 10
"""Queued bytes below which a conversation that was held up goes on. So each wait writes at least 192 KiB,
not one message at a time."""


def run(
    conversation: Conversation[T],
    connection: Connection,
    transport: Transport,
    *,
    timeout: float | None = None,
    stop: StopSignal | None = None,
    policy: CompressionPolicy | None = None,
) -> T:
    """Run `conversation` to its end and return its value. All messages have then been written.

    policy: as in Runner. timeout: seconds without a byte moving; None for no limit. A Pace command replaces
    it. The caller closes the transport. Raises what the conversation raises, and RdcError with the remote
    side's code if that side refused. Raises StreamError, ProtocolError or IncompatiblePeerError, also at
    the conversation's yield. Raises StoppedError once `stop` is set. An RdcError that the remote side does
    not know yet is first sent to it.
    """
    runner = Runner(conversation, connection, policy)
    runner.clock = runner.policy.clock = time.monotonic
    link = ByteLink(connection, transport, timeout, stop)
    try:
        try:
            polled = False
            while True:
                check_stop(stop)
                runner.queued = link.queued
                runner.advance(polled)
                polled = True
                _set_pace(runner, link)
                if runner.over:
                    break
                if runner.sends:
                    # Bytes queued earlier may wait for a busy remote side, not for the link.
                    is_full = connection.pending >= PENDING_HIGH
                    until = PENDING_LOW if is_full else runner.most_queued // 2
                    runner.policy.note_delay(*link.drain(until), by_link=is_full)
                    if link.ended:
                        _raise_ended(runner)
                elif runner.idle is not None:
                    connection.flush()
                    runner.rested = link.rest(runner.idle)
                elif runner.waits:
                    if link.ended:
                        # This side still waits for a message.
                        raise StreamError("the remote side ended the session early")
                    connection.flush()
                    link.step(wait=True)
                else:
                    link.step(wait=False)
            connection.flush()
            link.drain(1)
        except RdcError as error:
            runner.fail(error)
    except RdcError as error:
        if unknown_there(error):
            link.refuse(error)
        raise
    finally:
        if runner.heartbeat is not None:
            runner.heartbeat.stop()
        conversation.close()
    return runner.value


def _set_pace(runner: Runner[Any], link: ByteLink) -> None:
    """Apply the limits of the last Pace command, if there is a new one."""
    pace, runner.pace = runner.pace, None
    if pace is None:
        return
    link.bucket = None
    if pace.bandwidth:
        link.bucket = TokenBucket(pace.bandwidth)
    runner.policy.limit(pace.bandwidth, tries=pace.tries, packs=pace.packs)
    if pace.timeout:
        link.timeout = pace.timeout
        if runner.heartbeat is None:
            runner.heartbeat = Keepalive(link.beat, pace.timeout)


def _raise_ended(runner: Runner[Any]) -> NoReturn:
    """Handle a stream that the remote side ended while this side was sending.

    Raises the remote side's reason if it sent one, else StreamError. Drops all other input.
    """
    while runner.receive() is not None:
        pass
    raise StreamError("the remote side ended the stream early")
