"""The sockets on which a daemon listens, and when it takes connections from them."""

from __future__ import annotations

import os
import selectors
import socket
import time
from collections.abc import Callable

from rdc.daemon.config import Address
from rdc.errors import ExitCode, RdcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.daemon.log import Log

__all__ = ["Listeners", "address_of", "bind"]

BACKLOG = 1024
"""Connections the kernel holds until they are accepted. Those past it have to try again, after 1 second, 2,
4: with few, who floods the daemon would make others wait. Accepting so many takes a third of a second."""

ACCEPTS = 32
"""Accepted at a time before the others get a turn."""

PAUSE_SECONDS = 1.0
"""Before the next accept after one that failed for want of descriptors or memory."""

ROOM_SECONDS = 0.05
"""Before the next look whether there is room for one more."""


def bind(addresses: tuple[Address, ...]) -> list[socket.socket]:
    """Sockets that listen. Raises RdcError (10) naming the address, for one that is in use."""
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
    except OSError as error:
        raise RdcError(
            f"cannot listen on {address}: {os.strerror(error.errno or 0) if error.errno else error};"
            " is another daemon running, or is the address of another machine?",
            code=ExitCode.UNREACHABLE,
        ) from error


def address_of(name: tuple[str, int]) -> Address:
    """A socket's address; IPv4 in IPv6's clothes is IPv4."""
    return Address(name[0].removeprefix("::ffff:"), name[1])


class Listeners:
    """Hands each connection to `arrived` while `room` says that there is some. What cannot be accepted for
    want of something waits a moment, in the kernel."""

    def __init__(
        self,
        sockets: list[socket.socket],
        selector: selectors.BaseSelector,
        log: Log,
        room: Callable[[], bool],
        arrived: Callable[[socket.socket, Address], None],
    ) -> None:
        self._sockets = sockets
        self._selector = selector
        self._log = log
        self._room = room
        self._arrived = arrived
        self._open = False
        self.due: float | None = None
        """When accepting goes on after a pause."""

    def start(self) -> None:
        if not self._open:
            self._open = True
            for sock in self._sockets:
                sock.setblocking(False)
                self._selector.register(sock, selectors.EVENT_READ, self._accept)

    def _pause(self, seconds: float) -> None:
        self._open = False
        for sock in self._sockets:
            self._selector.unregister(sock)
        self.due = time.monotonic() + seconds

    def expire(self, now: float) -> None:
        if self.due is not None and self.due <= now:
            self.due = None
            self.start()

    def stop(self) -> None:
        """For good: nobody can connect any more."""
        if self._open:
            for sock in self._sockets:
                self._selector.unregister(sock)
        self._open, self.due = False, None
        self.forsake()

    def forsake(self) -> None:
        """Close this process's descriptors; in a session's process the daemon's stay open."""
        for sock in self._sockets:
            sock.close()

    def _accept(self, listener: socket.socket, _events: int) -> None:
        for _ in range(ACCEPTS):
            if not self._room():
                self._pause(ROOM_SECONDS)
                return
            try:
                sock, name = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._log("error", "accept_failed", message=error.strerror)
                self._pause(PAUSE_SECONDS)
                return
            self._arrived(sock, address_of(name))
