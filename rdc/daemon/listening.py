"""The daemon's listening sockets, and when it accepts connections from them."""

from __future__ import annotations

import errno
import os
import select
import socket
import time
from collections.abc import Callable
from functools import partial

from rdc.daemon.config import Address
from rdc.errors import ExitCode, RdcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.daemon.event_loop import EventLoop
    from rdc.daemon.log import Log

__all__ = ["Listeners", "address_of", "bind"]

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
    """Listening sockets. RdcError (10) names an address that is in use."""
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
    """A socket's address; an IPv4-mapped IPv6 address becomes IPv4."""
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
    """Whether a connection waits to be accepted."""
    poll = select.poll()
    poll.register(listener, select.POLLIN)
    return bool(poll.poll(0))
