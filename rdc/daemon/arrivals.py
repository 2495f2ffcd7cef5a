"""Connections before authentication, and connections that were refused."""

from __future__ import annotations

import contextlib
import select
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from rdc.chunking import SYNC_PARAMS
from rdc.errors import ExitCode, RdcError, StreamError, TrustError
from rdc.lean.records import dataclass
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Refused
from rdc.session.serve import greeting
from rdc.transport.tls import TlsTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from rdc.daemon.config import Address, Limits
    from rdc.daemon.event_loop import EventLoop
    from rdc.daemon.log import Log

__all__ = ["Arrivals"]

SHAKE_SECONDS = 0.5
"""Seconds that each started handshake gets, whatever the load: two round trips around the world."""

FAREWELL_SECONDS = 2.0
"""Seconds that a refused peer gets to read the reason."""

FAREWELL_BYTES = 1 << 20
"""Bytes that a refused peer may still send: the start of a session, with long filter lists."""


@dataclass(eq=False, slots=True)
class _Arrival:
    sock: socket.socket
    fd: int
    """Descriptor of `sock`, even after its close."""
    transport: TlsTransport
    address: Address
    since: float
    deadline: float
    farewell: bool = False
    dropped: int = 0
    """Bytes that came after the refusal."""


class Arrivals:
    """Connections in the handshake or after a refusal. No code waits for a peer; handshakes advance as their
    bytes arrive.

    A stranger takes some 50 KB, for `handshake_seconds` and FAREWELL_SECONDS at most; there are at most
    `handshakes` of them.

    Invariant: an arrival is in `_arrivals` if and only if the loop watches it. No method raises for an act of
    a peer or for a lack of memory or descriptors: that peer's connection is closed.
    """

    def __init__(
        self,
        loop: EventLoop,
        log: Log,
        context: ssl.SSLContext,
        limits: Limits,
        welcome: Callable[[TlsTransport, Address], str | None],
    ) -> None:
        """welcome: takes over a connection after its handshake and returns None, or returns the line that
        refuses it, or raises TrustError."""
        self._loop = loop
        self._log = log
        self._welcome = welcome
        self.context = context
        self.limits = limits
        self._arrivals: dict[int, _Arrival] = {}
        """Arrivals by file descriptor, oldest first."""

    @property
    def due(self) -> float | None:
        """The next deadline of an arrival."""
        return min((arrival.deadline for arrival in self._arrivals.values()), default=None)

    def __len__(self) -> int:
        return len(self._arrivals)

    def take(self, sock: socket.socket, address: Address) -> None:
        """Take a new connection, for which there is room. Owns `sock`."""
        try:
            transport = TlsTransport(sock, self.context, server_side=True)
            now = time.monotonic()
            deadline = now + self.limits.handshake_seconds
            arrival = _Arrival(sock, sock.fileno(), transport, address, now, deadline)
            self._watch(arrival)
        except Exception as error:  # noqa: BLE001 - one connection must not cost the daemon all others
            self._log.internal(error, address=str(address))
            sock.close()
            return
        self._advance(arrival, selectors.EVENT_READ)

    def drop_overdue(self, now: float) -> None:
        for arrival in [a for a in self._arrivals.values() if a.deadline <= now]:
            if not arrival.farewell:
                self._log.stranger("timeout", address=str(arrival.address), phase="handshake")
            self._forget(arrival)

    def close(self) -> None:
        for arrival in list(self._arrivals.values()):
            self._forget(arrival)

    def forsake(self) -> None:
        """In a session's process: close this process's copies, so other peers' connections end when the
        daemon closes them."""
        for arrival in self._arrivals.values():
            arrival.transport.forsake()

    def make_room(self) -> bool:
        """Make room for one more arrival. False: it must wait, since all started handshakes still have
        time."""
        while len(self._arrivals) >= self.limits.handshakes:
            if not self.drop_one():
                return False
        return True

    def drop_one(self) -> bool:
        """Close one connection to make room. False if none may be closed yet.

        The address with the most connections loses one: the oldest that has sent nothing, or else the one
        that has waited longest, after SHAKE_SECONDS. A flood of connections thus displaces itself and not
        other peers.
        """
        if not self._arrivals:
            return False
        hosts = Counter(arrival.address.host for arrival in self._arrivals.values())
        (crowded, _), *_rest = hosts.most_common(1)
        from_host = [a for a in self._arrivals.values() if a.address.host == crowded]
        idle = (a for a in from_host if a.farewell or not a.transport.bytes_received)
        latest = time.monotonic() - SHAKE_SECONDS
        begun = (a for a in from_host if a.since <= latest)
        victim = next(idle, None) or next(begun, None)
        if victim is None:
            return False
        self._log.stranger("crowded_out", address=str(victim.address), handshakes=len(self._arrivals))
        self._forget(victim)
        return True

    def _advance(self, arrival: _Arrival, _events: int) -> None:
        try:
            if arrival.farewell:
                self._drop_input(arrival)
            else:
                self._shake(arrival)
        except Exception as error:  # noqa: BLE001 - one connection must not cost the daemon all others
            self._log.internal(error, address=str(arrival.address))
            self._forget(arrival)

    def _shake(self, arrival: _Arrival) -> None:
        transport = arrival.transport
        try:
            if not transport.shake():
                wants_out = transport.events & select.POLLOUT
                self._loop.change(
                    arrival.fd, selectors.EVENT_READ | (selectors.EVENT_WRITE if wants_out else 0)
                )
                return
            # A session's process must not find the connection in the daemon's selector.
            self._release(arrival)
            refusal = self._welcome(transport, arrival.address)
        except (TrustError, StreamError) as error:
            self._log.stranger("unknown_peer", address=str(arrival.address), message=str(error))
            self._bid_farewell(arrival)
            return
        if refusal is not None:
            self._refuse(transport, refusal)
            self._bid_farewell(arrival)

    def _refuse(self, transport: TlsTransport, why: str) -> None:
        connection = Connection(False, greeting(SYNC_PARAMS), compress=False)
        connection.send(Refused(ExitCode.BUSY, why), 0)
        connection.flush()
        # The line is below the size of any socket buffer: it leaves at once, or the peer never read.
        with contextlib.suppress(RdcError):
            transport.exchange(memoryview(connection.data_to_send()), False, 0)

    def _bid_farewell(self, arrival: _Arrival) -> None:
        """The refusal has left. Now the peer closes, or its time runs out. A close with unread input would
        reset the connection, and the reset can overtake the refusal."""
        self._release(arrival)
        arrival.farewell = True
        arrival.deadline = time.monotonic() + FAREWELL_SECONDS
        with contextlib.suppress(OSError):
            arrival.sock.shutdown(socket.SHUT_WR)
        self._watch(arrival)

    def _drop_input(self, arrival: _Arrival) -> None:
        try:
            data = arrival.sock.recv(1 << 16)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        arrival.dropped += len(data)
        if not data or arrival.dropped > FAREWELL_BYTES:
            self._forget(arrival)

    def _forget(self, arrival: _Arrival) -> None:
        self._release(arrival)
        arrival.transport.forsake()

    def _watch(self, arrival: _Arrival) -> None:
        self._loop.watch(arrival.fd, partial(self._advance, arrival))
        self._arrivals[arrival.fd] = arrival

    def _release(self, arrival: _Arrival) -> None:
        if self._arrivals.get(arrival.fd) is arrival:
            del self._arrivals[arrival.fd]
            self._loop.unwatch(arrival.fd)
