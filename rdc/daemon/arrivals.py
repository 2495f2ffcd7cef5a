"""Connections before their sessions: the event loop, the listening sockets, handshakes and refusals."""

from __future__ import annotations

import contextlib
import errno
import os
import select
import selectors
import socket
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from rdc.chunking import SYNC_PARAMS
from rdc.daemon.config import Address, Limits
from rdc.errors import ExitCode, RdcError, StreamError, TrustError
from rdc.lean.records import Record
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Refused
from rdc.session.serve import greeting
from rdc.transport.tls import TlsTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl

    from rdc.daemon.log import Log


# The descriptors that the daemon waits for, and the handlers of their events.
#
# One wait returns a batch of events. The handler of the first may close the connection of the next, and a new
# connection may get that descriptor's number at once. So an event is delivered only if its registration still
# exists.

WAIT_SECONDS = 3_600.0
"""Longest wait in seconds. epoll counts milliseconds in 31 bits and refuses more; deadlines may be years
away."""


class _Registration(Record, frozen=False, eq=False):
    """The identity of this object distinguishes successive uses of a descriptor number."""

    handle: Callable[[int], None]


class EventLoop:
    """Calls back when a registered descriptor is ready. Invariant: a descriptor is in the selector exactly
    while it is in `_registered`."""

    def __init__(self, selector: selectors.BaseSelector, log: Log) -> None:
        self._selector = selector
        self._log = log
        self._registered: dict[int, _Registration] = {}

    def watch(self, fd: int, handle: Callable[[int], None]) -> None:
        """Deliver events of `fd` to `handle`, only input until `change`.

        OSError if the kernel has no memory for it, KeyError if `fd` is already watched.
        """
        registration = _Registration(handle)
        self._selector.register(fd, selectors.EVENT_READ, registration)
        self._registered[fd] = registration

    def change(self, fd: int, events: int) -> None:
        """Set the events of a watched `fd`: EVENT_READ, EVENT_WRITE or both."""
        if self._selector.get_key(fd).events != events:
            self._selector.modify(fd, events, self._registered[fd])

    def unwatch(self, fd: int) -> None:
        """Stop watching `fd`, before its close. Undelivered events of this batch are dropped. Harmless for an
        unwatched descriptor."""
        if self._registered.pop(fd, None) is not None and fd in self._selector.get_map():
            self._selector.unregister(fd)

    def turn(self, seconds: float | None) -> None:
        """Wait for one batch, at most `seconds`, and deliver it.

        An exception of a handler is logged and ends the watch of that descriptor, nothing else.
        """
        bound = WAIT_SECONDS if seconds is None else min(max(seconds, 0.0), WAIT_SECONDS)
        for key, events in self._selector.select(bound):
            registration = self._registered.get(key.fd)
            if registration is None or registration is not key.data:
                continue
            try:
                registration.handle(events)
            except Exception as error:  # noqa: BLE001 - one descriptor must not cost the daemon all others
                self._log.internal(error)
                if self._registered.get(key.fd) is registration:
                    self.unwatch(key.fd)

    def close(self) -> None:
        """Close the selector. In a session's process this changes nothing for the daemon."""
        self._registered.clear()
        self._selector.close()


BACKLOG = 1024
"""Connections that the kernel holds until they are accepted. Later ones retry after 1, 2 and 4 seconds. With
a short queue, a flood would make others wait. Accepting a full queue takes a third of a second."""

ACCEPTS = 32
"""Connections accepted at a time before other work gets a turn."""

PAUSE_SECONDS = 1.0
"""Seconds before the next accept after a lack of descriptors or memory."""

ROOM_SECONDS = 0.05
"""Seconds before the next check for room for one more."""

SHORT = {errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS}
"""Errors of accept(2) for a lack of descriptors or memory. Waiting connections hold some of both."""

GONE = {
    errno.ECONNABORTED, errno.EPERM, errno.EPROTO, errno.ENOPROTOOPT, errno.ENETDOWN, errno.ENETUNREACH,
    errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ENONET, errno.ETIMEDOUT,
}  # fmt: skip
"""Errors of accept(2) for a connection that is already unusable; the next one may be fine."""


def bind(addresses: tuple[Address, ...]) -> list[socket.socket]:
    """Return sockets that listen at `addresses`. Raises RdcError (10), which names an address in use."""
    bound: list[socket.socket] = []
    try:
        for address in addresses:
            bound.append(_listen(address))
    except BaseException:
        for sock in bound:
            sock.close()
        raise
    return bound


def _listen(address: Address) -> socket.socket:
    everywhere = not address.host and socket.has_dualstack_ipv6()
    v6 = everywhere or ":" in address.host
    try:
        return socket.create_server(
            (address.host, address.port),
            family=socket.AF_INET6 if v6 else socket.AF_INET,
            backlog=BACKLOG,
            dualstack_ipv6=everywhere,
        )
    except (OSError, UnicodeError, TypeError) as error:
        raise RdcError(
            f"cannot listen on {address}: {_reason(error)}; is another daemon running, or is the address of"
            " another machine?",
            code=ExitCode.UNREACHABLE,
        ) from error


def _reason(error: OSError | UnicodeError | TypeError) -> str:
    # A name that cannot be encoded is a TypeError of bind. Resolver errors have negative numbers.
    if not isinstance(error, OSError) or (error.errno or 0) < 0:
        return "no address is known for this name"
    return os.strerror(error.errno) if error.errno else str(error)


def address_of(name: tuple[str, int]) -> Address:
    """Return a socket's address; an IPv4-mapped IPv6 address becomes IPv4."""
    return Address(name[0].removeprefix("::ffff:"), name[1])


class Listeners:
    """Passes each connection to `arrived` while `room` reports space. A connection that cannot be accepted
    waits in the kernel.

    Invariant: `_open` is true exactly while all sockets are watched. Otherwise `due` gives the time of the
    next attempt, or the listeners have stopped.
    """

    def __init__(
        self,
        sockets: list[socket.socket],
        loop: EventLoop,
        log: Log,
        room: Callable[[], bool],
        drop_one: Callable[[], bool],
        arrived: Callable[[socket.socket, Address], None],
    ) -> None:
        """drop_one: closes a waiting connection for its descriptor and memory, or returns False."""
        self._sockets = sockets
        self._loop = loop
        self._log = log
        self._room = room
        self._drop_one = drop_one
        self._arrived = arrived
        self._open = False
        self.due: float | None = None
        """The time at which accepting resumes after a pause."""

    def start(self) -> None:
        """Start to accept. OSError if the kernel has no memory to watch the sockets."""
        if not self._open:
            for sock in self._sockets:
                sock.setblocking(False)
                self._loop.watch(sock.fileno(), partial(self._accept, sock))
            self._open = True

    def _pause(self, seconds: float) -> None:
        self._open = False
        for sock in self._sockets:
            self._loop.unwatch(sock.fileno())
        self.due = time.monotonic() + seconds

    def drop_overdue(self, now: float) -> None:
        if self.due is not None and self.due <= now:
            self.due = None
            try:
                self.start()
            except Exception as error:  # noqa: BLE001 - try again, or nobody would get in any more
                self._log.internal(error)
                self._pause(PAUSE_SECONDS)

    def stop(self) -> None:
        """Stop for good: no peer can connect any more."""
        for sock in self._sockets:
            self._loop.unwatch(sock.fileno())
        self._open, self.due = False, None
        self.forsake()

    def forsake(self) -> None:
        """Close this process's descriptors. In a session's process the daemon's stay open."""
        for sock in self._sockets:
            sock.close()

    def _accept(self, listener: socket.socket, _events: int) -> None:
        try:
            for number in range(ACCEPTS):
                # No waiting connection is dropped for a newcomer that does not exist.
                if (number and not _waiting(listener)) or not self._accept_one(listener):
                    return
        except Exception as error:  # noqa: BLE001 - a connection that was accepted in vain is closed with its object
            self._log.internal(error)
            self._pause(PAUSE_SECONDS)

    def _accept_one(self, listener: socket.socket) -> bool:
        """Accept one connection. False: none for now."""
        if not self._room():
            self._pause(ROOM_SECONDS)
            return False
        try:
            sock, name = listener.accept()
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            if error.errno in GONE:
                return True
            if error.errno in SHORT and self._drop_one():
                return True
            self._log("error", "accept_failed", message=error.strerror or str(error))
            self._pause(PAUSE_SECONDS)
            return False
        self._arrived(sock, address_of(name))
        return True


def _waiting(listener: socket.socket) -> bool:
    """Return whether a connection waits to be accepted."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    return bool(poll.poll(0))


SHAKE_SECONDS = 0.5
"""Seconds that each started handshake gets, whatever the load: two round trips around the world."""

FAREWELL_SECONDS = 2.0
"""Seconds that a refused peer gets to read the reason."""

FAREWELL_BYTES = 1 << 20
"""Bytes that a refused peer may still send: the start of a session, with long filter lists."""


class _Arrival(Record, frozen=False, eq=False):
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
        """Close this process's copies of the sockets; called in a session's process. Other peers' connections
        then end when the daemon closes them."""
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
        """Wait for the peer to close, or for its time to run out, now that the refusal is sent. A close with
        unread input would reset the connection, and the reset can overtake the refusal."""
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
