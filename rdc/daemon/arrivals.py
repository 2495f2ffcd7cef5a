"""Connections that have not shown who they are, or that were told that they are refused."""

from __future__ import annotations

import contextlib
import select
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable

from rdc.chunking.params import SYNC_PARAMS
from rdc.daemon.log import fault
from rdc.errors import ExitCode, RdcError, StreamError, TrustError
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Refused
from rdc.records import dataclass
from rdc.session.serve import greeting
from rdc.transport.tls import TlsTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from rdc.daemon.config import Address, Limits
    from rdc.daemon.log import Log

__all__ = ["Arrivals"]

SHAKE_SECONDS = 0.5
"""What each handshake that has begun may take however many want one: two round trips to the other end of the
world."""

FAREWELL_SECONDS = 2.0
"""How long a peer that is refused may take to read why."""

FAREWELL_BYTES = 1 << 20
"""What it may still send meanwhile: the start of a session, long filter lists included."""


@dataclass(slots=True)
class _Arrival:
    transport: TlsTransport
    address: Address
    since: float
    deadline: float
    farewell: bool = False
    dropped: int = 0
    """Bytes that came after the refusal."""


class Arrivals:
    """Handshakes advance as their bytes come, and nothing waits for a peer. A stranger holds some 50 KB, for
    `handshake_seconds` and FAREWELL_SECONDS at most, and there are `handshakes` of them at most."""

    def __init__(
        self,
        selector: selectors.BaseSelector,
        log: Log,
        context: ssl.SSLContext,
        limits: Limits,
        welcome: Callable[[TlsTransport, Address], str | None],
    ) -> None:
        """`welcome` takes over a connection whose handshake is done and returns None, or returns the line by
        which to refuse it, or raises TrustError."""
        self._selector = selector
        self._log = log
        self._welcome = welcome
        self.context = context
        self.limits = limits
        self._arrivals: dict[int, _Arrival] = {}
        """By file descriptor, in order of age."""

    @property
    def due(self) -> float | None:
        """When the next of them has had its time."""
        return min((arrival.deadline for arrival in self._arrivals.values()), default=None)

    def take(self, sock: socket.socket, address: Address) -> None:
        """A new connection, for which there is room."""
        transport = TlsTransport(sock, self.context, server_side=True)
        now = time.monotonic()
        deadline = now + self.limits.handshake_seconds
        self._arrivals[sock.fileno()] = _Arrival(transport, address, now, deadline)
        self._selector.register(sock, selectors.EVENT_READ, self._advance)
        self._advance(sock, selectors.EVENT_READ)

    def expire(self, now: float) -> None:
        for arrival in [a for a in self._arrivals.values() if a.deadline <= now]:
            if not arrival.farewell:
                self._log.stranger("timeout", address=str(arrival.address), phase="handshake")
            self._forget(arrival)

    def close(self) -> None:
        for arrival in list(self._arrivals.values()):
            self._forget(arrival)

    def forsake(self) -> None:
        """In a session's process: other peers' connections end when the daemon closes them, not when this
        session does."""
        for arrival in self._arrivals.values():
            arrival.transport.forsake()

    def make_room(self) -> bool:
        """Before one more is taken; False where it has to wait for a moment, so that all that have begun have
        theirs.

        Of the address that has most goes one that has said nothing, or else the one that waits longest, once
        it had SHAKE_SECONDS: so a flood of connections pushes out itself, not those who come to work.
        """
        if len(self._arrivals) < self.limits.handshakes:
            return True
        hosts = Counter(arrival.address.host for arrival in self._arrivals.values())
        (crowded, _), *_rest = hosts.most_common(1)
        theirs = [a for a in self._arrivals.values() if a.address.host == crowded]
        idle = (a for a in theirs if a.farewell or not a.transport.bytes_received)
        latest = time.monotonic() - SHAKE_SECONDS
        begun = (a for a in theirs if a.since <= latest)
        victim = next(idle, None) or next(begun, None)
        if victim is None:
            return False
        self._log.stranger("crowded_out", address=str(victim.address), handshakes=len(self._arrivals))
        self._forget(victim)
        return True

    def _advance(self, sock: socket.socket, _events: int) -> None:
        arrival = self._arrivals[sock.fileno()]
        if arrival.farewell:
            self._drop_input(sock, arrival)
            return
        transport = arrival.transport
        try:
            if not transport.shake():
                events = selectors.EVENT_READ
                if transport.events & select.POLLOUT:
                    events |= selectors.EVENT_WRITE
                self._selector.modify(sock, events, self._advance)
                return
            self._release(arrival)
            refusal = self._welcome(transport, arrival.address)
        except (TrustError, StreamError) as error:
            self._log.stranger("unknown_peer", address=str(arrival.address), message=str(error))
            self._bid_farewell(sock, arrival)
            return
        except Exception as error:  # noqa: BLE001 - one connection must not cost the daemon all others
            self._log("error", "internal", address=str(arrival.address), message=fault(error))
            self._release(arrival)
            transport.forsake()
            return
        if refusal is not None:
            self._refuse(transport, refusal)
            self._bid_farewell(sock, arrival)

    def _refuse(self, transport: TlsTransport, why: str) -> None:
        connection = Connection(False, greeting(SYNC_PARAMS), compress=False)
        connection.send(Refused(ExitCode.BUSY, why), 0)
        connection.flush()
        # Less than any socket buffer: it is gone at once, or its reader never read.
        with contextlib.suppress(RdcError):
            transport.exchange(memoryview(connection.data_to_send()), False, 0)

    def _bid_farewell(self, sock: socket.socket, arrival: _Arrival) -> None:
        """What was said has left; now the peer closes, or the time is over. To close first would reset the
        connection if anything of the peer's is unread, and the reset can overtake what we said."""
        self._release(arrival)
        arrival.farewell = True
        arrival.deadline = time.monotonic() + FAREWELL_SECONDS
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        self._arrivals[sock.fileno()] = arrival
        self._selector.register(sock, selectors.EVENT_READ, self._advance)

    def _drop_input(self, sock: socket.socket, arrival: _Arrival) -> None:
        try:
            data = sock.recv(1 << 16)
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

    def _release(self, arrival: _Arrival) -> None:
        fd = arrival.transport.fileno()
        if self._arrivals.pop(fd, None) is not None:
            self._selector.unregister(fd)
