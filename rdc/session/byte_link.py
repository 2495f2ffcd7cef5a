"""The bytes between a connection and its transport: moved, waited for, counted against limits of time."""

from __future__ import annotations

import contextlib
import select
import time
from collections import deque
from itertools import groupby

from rdc.errors import ExitCode, RdcError, StreamError
from rdc.limits import INBOUND_BYTES
from rdc.protocol.messages import Refused
from rdc.transport.base import Exchange, timed_out, waitable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.protocol.connection import Connection
    from rdc.session.bandwidth import TokenBucket
    from rdc.session.commands import Idle
    from rdc.transport.base import Transport

__all__ = ["BEATS", "ByteLink"]

NOTHING = memoryview(b"")

LONG_BYTES = 32 << 10
"""Pieces on their way out that are shorter are copied together: less work than a write for each."""

BEATS = 4
"""Signs of life in a far side's time limit: one that comes late does no harm."""

BEAT_BYTES = 64
"""Bytes that a sign of life may move of what waits: no more than a bandwidth limit can overlook."""

REFUSE_SECONDS = 5.0
"""How long to try to tell the far side why we stop: it may be stuck, and our user waits for the reason."""


class ByteLink:
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
        transport = waitable(self._transport)
        if transport is None:
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
        """Try to tell the far side why this one stops; for REFUSE_SECONDS, and never raising.

        Without regard to a limit of bandwidth: the reason stands behind what is queued already, some 256 KiB,
        which at a low rate would take longer than anybody waits for it.
        """
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
