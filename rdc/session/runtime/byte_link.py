"""Moves bytes between a connection and its transport, within bandwidth and time limits."""

from __future__ import annotations

import contextlib
import select
import time
from collections import deque
from itertools import groupby

from rdc.errors import ExitCode, RdcError, StreamError
from rdc.limits.wire import INBOUND_BYTES
from rdc.progress import STOP_SECONDS, check_stop
from rdc.protocol.messages import Refused
from rdc.transport.base import Exchange, timed_out, waitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import StopSignal
    from rdc.protocol.connection import Connection
    from rdc.session.runtime.bandwidth import TokenBucket
    from rdc.session.runtime.commands import Idle
    from rdc.transport.base import Transport

__all__ = ["BEATS", "ByteLink"]

NOTHING = memoryview(b"")

LONG_BYTES = 32 << 10
"""Shorter pieces are copied together before writing. That costs less than one write per piece."""

BEATS = 4
"""Signs of life per time limit of the far side. With four, a late one does no harm."""

BEAT_BYTES = 64
"""Most waiting bytes that one sign of life moves: few enough to ignore a bandwidth limit."""

REFUSE_SECONDS = 5.0
"""How long to try to send the far side the reason for stopping. The far side may be stuck."""


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
        """Whether the last write took its whole piece."""
        self._spoke = self._heard = time.monotonic()

    @property
    def queued(self) -> int:
        """Bytes that the transport has not taken yet."""
        return self._waiting

    @property
    def spoke(self) -> float:
        """When this side last wrote or tried to, by time.monotonic()."""
        return self._spoke

    @property
    def heard(self) -> float:
        """When the last input came."""
        return self._heard

    def step(self, wait: bool, inbound: int = INBOUND_BYTES) -> bool:
        """One exchange with the transport. Returns True if input or the end of the stream came.

        `wait`: wait until bytes move or the bandwidth limit allows a write. `inbound`: with so many bytes
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
        """Waits as `idle` says. Returns True if the wait is over, False if bytes came.

        Raises RdcError (exit code 30) if the time limit passes without a byte from the far side.
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
        raise StreamError("the far side ended the session")

    def _deadlines(self) -> tuple[float, ...]:
        """When this side has to send a sign of life, and when the far side's time limit ends."""
        if self.timeout is None:
            return ()
        return self._spoke + self.timeout / BEATS, self._heard + self.timeout

    def _give_signs_of_life(self) -> None:
        """Sends a sign of life if due. Raises RdcError if the far side is overdue.

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
        """Writes at least one byte if the transport takes one. Never waits."""
        self._spoke = time.monotonic()
        self._fill()
        if not self._outgoing:
            self._connection.beat()
            self._fill()
        moved = self._transport.exchange(self._first[:BEAT_BYTES], False, 0)
        self._sent(moved.written)

    def drain(self, until: int) -> tuple[int, float]:
        """Writes until fewer than `until` bytes wait or the far side ends the stream.

        Returns the bytes written and the seconds it took. Reads input meanwhile, so that two ends that both
        write do not block each other.
        """
        self._fill()
        before, begun = self._waiting, time.monotonic()
        while self._waiting >= until and not self.ended:
            self.step(wait=True)
        return before - self._waiting, time.monotonic() - begun

    def refuse(self, error: RdcError) -> None:
        """Tries to send the far side the reason for stopping, for REFUSE_SECONDS. Never raises RdcError.

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
                # Read and drop input: a far side that cannot write might never read.
                moved = self._transport.exchange(self._first, True, left)
                self._sent(moved.written)
                if moved.eof:
                    return

    def _fill(self) -> None:
        """Moves the connection's output to the queue."""
        parts = self._connection.parts_to_send()
        self._waiting += sum(map(len, parts))
        for long, some in groupby(parts, key=lambda part: len(part) >= LONG_BYTES):
            parts = list(some)
            self._outgoing += map(memoryview, parts if long else [b"".join(parts)])

    @property
    def _first(self) -> memoryview:
        return self._outgoing[0] if self._outgoing else NOTHING

    def _sent(self, count: int) -> None:
        """Removes `count` written bytes from the queue."""
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
