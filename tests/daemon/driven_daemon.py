"""The daemon's loop in this process, one turn at a time: sockets and handshakes are real; the clock, the
processes of sessions, what the system is short of and the order of each batch are the test's."""

from __future__ import annotations

import errno
import os
import selectors
import signal
import socket
import ssl
import struct
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from unittest.mock import patch

from rdc.daemon import arrivals as arrivals_module
from rdc.daemon.access import Access
from rdc.daemon.arrivals import PAUSE_SECONDS, SHAKE_SECONDS, Arrivals, EventLoop, bind
from rdc.daemon.config import Address, DaemonConfig, Limits, Module
from rdc.daemon.log import Log
from rdc.daemon.server import Server
from rdc.errors import RdcError
from rdc.transport.keys import KeyRing
from rdc.transport.tls import TlsTransport, dialling_context
from tests.support.daemon.daemons import certificate
from tests.support.daemon.tls_pair import ring

__all__ = ["Batch", "DrivenDaemon", "Peer", "every_fault", "settings"]

Batch = list[tuple[selectors.SelectorKey, int]]

TURN_SECONDS = 0.1
"""Seconds that pass after each turn of `serve`."""

PAUSE_TURNS = round(PAUSE_SECONDS / TURN_SECONDS) + 2
"""Turns until a pause has ended, the listeners are watched, and the next event arrives."""

SHAKE_TURNS = round(SHAKE_SECONDS / TURN_SECONDS) + 2
"""Turns until a begun handshake may be crowded out: a check for room takes every other turn."""

OWN_TURNS = 6
"""Turns of a handshake that nothing delays."""


def settings(limits: Limits, *trusted: str) -> DaemonConfig:
    """A daemon with one module, which `trusted` may enter."""
    module = Module("data", "/", frozenset(trusted), Access("module 'data'", read_only=True), limits)
    listen = (Address("127.0.0.1", 0), Address("127.0.0.1", 0))
    return DaemonConfig(listen, ring("server", *trusted), None, None, False, "off", limits, {"data": module})


class Selector(selectors.EpollSelector):
    """Gives each batch in the order that `arrange` makes of it; fails where a fault is due."""

    def __init__(self, wrong: list[str]) -> None:
        super().__init__()
        self._wrong = wrong
        self.arrange: Callable[[Batch], Batch] = list
        self.batch = 0
        """Events in the last batch."""
        self.meant: list[object] = []
        """The registrations that they are for."""
        self.faults: deque[Exception] = deque()

    def select(self, timeout: float | None = None) -> Batch:
        if timeout is None or not 0 <= timeout < 1 << 21:
            self._wrong.append(f"epoll takes no wait of {timeout} seconds")
        if self.faults:
            raise self.faults.popleft()
        ready = super().select(0)
        self.batch, self.meant = len(ready), [key.data for key, _ in ready]
        return self.arrange(ready)


class Listener(socket.socket):
    """Fails to accept where a fault is due."""

    faults: deque[OSError]

    def accept(self) -> tuple[socket.socket, tuple[str, int]]:
        if self.faults:
            raise self.faults.popleft()
        return super().accept()


class Processes:
    """What rdc.daemon.server asks of `os`."""

    WNOHANG = os.WNOHANG
    WIFSIGNALED = staticmethod(os.WIFSIGNALED)
    WTERMSIG = staticmethod(os.WTERMSIG)

    def __init__(self, wrong: list[str]) -> None:
        self._wrong = wrong
        self.running: set[int] = set()
        self.ended: deque[tuple[int, int]] = deque()
        """Process ids and wait statuses that nobody has asked for."""
        self.begun = 0
        self.faults: deque[Exception] = deque()

    def fork(self) -> int:
        if self.faults:
            raise self.faults.popleft()
        self.begun += 1
        self.running.add(1_000_000 + self.begun)
        return 1_000_000 + self.begun

    def end(self, pid: int, status: int) -> None:
        self.running.remove(pid)
        self.ended.append((pid, status))

    def kill(self, pid: int, number: int) -> None:
        if pid not in self.running and pid not in dict(self.ended):
            self._wrong.append(f"signal {number} for process {pid}, which is none of ours")
        if pid in self.running and number == signal.SIGKILL:
            self.end(pid, int(number))

    def wait4(self, pid: int, options: int) -> tuple[int, int, object]:
        if (pid, options) != (-1, os.WNOHANG):
            self._wrong.append(f"a wait for process {pid}")
        if not self.running and not self.ended:
            raise ChildProcessError
        ended, status = self.ended.popleft() if self.ended else (0, 0)
        return ended, status, SimpleNamespace(ru_utime=0.0, ru_stime=0.0, ru_maxrss=1)


@dataclass(eq=False)
class Peer:
    """The other end of a connection; `tls` where it makes a handshake."""

    sock: socket.socket
    tls: TlsTransport | None = None
    shaken: bool = False

    @property
    def open(self) -> bool:
        return self.sock.fileno() >= 0

    @property
    def ended(self) -> bool:
        """Return whether the daemon has closed the connection, in one way or the other."""
        self.sock.setblocking(False)
        try:
            return not self.sock.recv(1)
        except BlockingIOError:
            return False
        except ConnectionResetError:
            return True

    def say(self, data: bytes) -> None:
        with suppress(OSError):
            self.sock.send(data)

    def shake(self) -> None:
        """What can be done of the handshake now; a peer that is refused leaves."""
        if self.tls is not None and self.open and not self.shaken:
            try:
                self.shaken = self.tls.shake()
            except RdcError:
                self.leave()

    def finish_sending(self) -> None:
        with suppress(OSError):
            self.sock.shutdown(socket.SHUT_WR)

    def leave(self) -> None:
        self.sock.close()

    def reset(self) -> None:
        if self.open:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.sock.close()


@dataclass
class DrivenDaemon:
    """Between turns `check` holds."""

    config: DaemonConfig
    now: float = 1000.0
    lines: list[bytes] = field(default_factory=list)
    peers: list[Peer] = field(default_factory=list)
    loaded: DaemonConfig | Exception | None = None
    """What the next reload finds."""
    arrival_faults: deque[Exception] = field(default_factory=deque)
    """Raised by the next handshakes that are advanced, or begun."""

    def __post_init__(self) -> None:
        self.wrong: list[str] = []
        """What was found where the daemon would catch an AssertionError."""
        self._stack = ExitStack()
        clock = SimpleNamespace(monotonic=lambda: self.now, time=time.time, sleep=self.pass_time)
        for module in ("arrivals", "server"):
            self._stack.enter_context(patch(f"rdc.daemon.{module}.time", clock))
        self.processes = Processes(self.wrong)
        self._stack.enter_context(patch("rdc.daemon.server.os", self.processes))
        self._stack.enter_context(patch.object(arrivals_module, "TlsTransport", self._transport))
        self._stack.enter_context(patch.object(EventLoop, "watch", self._checked_watch(EventLoop.watch)))
        self._stack.enter_context(patch.object(Arrivals, "_advance", self._checked(Arrivals._advance)))
        self._rings: Mapping[str, KeyRing] = {who: ring(who) for who in ("alice", "bob", "carol")}
        self._open_before = len(os.listdir("/proc/self/fd"))
        self.listeners = [Listener(fileno=sock.detach()) for sock in bind(self.config.listen)]
        for listener in self.listeners:
            listener.faults = deque()
        self.ports = [listener.getsockname()[1] for listener in self.listeners]
        self.selector = Selector(self.wrong)
        log = Log(as_json=False, write=self.lines.append, clock=lambda: self.now)
        self.server = Server(self.config, self._load, [*self.listeners], log, selector=self.selector)
        self.server.start()
        self._own = len(os.listdir("/proc/self/fd")) - self._open_before
        self._waiting = 0

    def __enter__(self) -> DrivenDaemon:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_given: object) -> None:
        """SIGTERM ends it in order, whatever it was in the middle of."""
        try:
            if kind is not None:
                return
            self.loaded = None
            self.clear_faults()
            self.server.notice(signal.SIGTERM)
            self.turn()
            assert len(self.server._arrivals) == 0
            self.pass_time(30)
            for _ in range(2):
                self.server.notice(signal.SIGCHLD)
                self.turn()
            assert self.server.stopped, "sessions that do not end are killed"
        finally:
            self.server.close()
            for peer in self.peers:
                peer.leave()
            for listener in self.listeners:
                listener.close()
            os.close(self.server._slots._fd)
            self._stack.close()

    # What happens around it

    def knock(self, who: str = "", *, listener: int = 0, host: int = 1) -> Peer:
        """A connection from 127.0.0.`host`; of `who`, where it is to make a handshake."""
        sock = socket.create_connection(("127.0.0.1", self.ports[listener]), 10, (f"127.0.0.{host}", 0))
        tls = None
        if who:
            context = dialling_context(self._rings[who], [certificate("server")])
            tls = TlsTransport(sock, context, server_side=False)
        peer = Peer(sock, tls)
        self.peers.append(peer)
        peer.shake()
        return peer

    def pass_time(self, seconds: float) -> None:
        self.now += seconds

    def reload(self, found: DaemonConfig | Exception) -> None:
        self.loaded = found
        self.server.notice(signal.SIGHUP)

    def clear_faults(self) -> None:
        for faults in (self.selector.faults, self.processes.faults, self.arrival_faults):
            faults.clear()
        for listener in self.listeners:
            listener.faults.clear()

    def turn(self, arrange: Callable[[Batch], Batch] = list) -> None:
        """One turn of the loop; what is ready is handled in the order that `arrange` gives it."""
        self.selector.arrange = arrange
        before, bound = self.server._arrivals.context, self.config.limits.handshakes
        self.server.turn()
        if isinstance(self.loaded, DaemonConfig):
            self.config = self.loaded
            assert self.server._arrivals.context is not before
        else:
            assert self.server._arrivals.context is before
        self.loaded = None
        waiting = len(self.server._arrivals)
        assert waiting <= max(self._waiting, bound), "no more wait than may, unless they did before a reload"
        self._waiting = waiting
        self.check()

    def serve(self, who: str = "alice") -> bool:
        """Return whether `who` gets a session as soon as DAEMON.md promises (Limits and their effects):
        after the pause that may be running, and SHAKE_SECONDS and a check for room for every `handshakes`
        connections that came before."""
        bound = self.config.limits.handshakes
        if isinstance(self.loaded, DaemonConfig):
            bound = min(bound, self.loaded.limits.handshakes)
        ahead = len(self.server._arrivals) + sum(accept_queue(listener) for listener in self.listeners)
        peer, begun = self.knock(who), self.processes.begun
        for _ in range(PAUSE_TURNS + SHAKE_TURNS * -(-ahead // bound) + OWN_TURNS):
            self.turn()
            peer.shake()
            if self.processes.begun > begun:
                return True
            self.pass_time(TURN_SECONDS)
        return False

    # What holds

    def check(self) -> None:
        server, arrivals = self.server, self.server._arrivals
        assert not self.wrong, self.wrong
        assert server._config is self.config and arrivals.limits is self.config.limits
        # The selector, the loop and those who wait know of the same descriptors, all of which are open.
        waiting = set(arrivals._arrivals)
        watched = {key.fd for key in self.selector.get_map().values()}
        open_listeners = {sock.fileno() for sock in self.listeners} if server._listeners._open else set()
        assert watched == set(server._loop._registered) == waiting | open_listeners
        for fd in watched:
            os.fstat(fd)
        assert server._listeners._open or server._listeners.due is not None or server._stopping
        # Sessions are the processes that there are.
        running = {pid: running.visitor.pin for pid, running in server._processes._running.items()}
        assert set(running) >= self.processes.running
        assert set(running) == self.processes.running | {pid for pid, _ in self.processes.ended}
        # No connection is open that nobody waits for.
        theirs = sum(peer.open for peer in self.peers)
        own = self._own if not server._stopping else self._own - len(self.listeners)
        now_open = len(os.listdir("/proc/self/fd")) - self._open_before
        assert now_open == own + theirs + len(waiting)

    def _load(self) -> DaemonConfig:
        assert self.loaded is not None
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded

    def _transport(self, sock: socket.socket, context: ssl.SSLContext, *, server_side: bool) -> TlsTransport:
        if self.arrival_faults:
            raise self.arrival_faults.popleft()
        return TlsTransport(sock, context, server_side=server_side)

    def _checked_watch(
        self, watch: Callable[[EventLoop, int, Callable[[int], None]], None]
    ) -> Callable[[EventLoop, int, Callable[[int], None]], None]:
        driven = self

        def checked(self: EventLoop, fd: int, handle: Callable[[int], None]) -> None:
            def noting(events: int) -> None:
                if registration not in driven.selector.meant:
                    driven.wrong.append("an event that was meant for an earlier use of the descriptor")
                handle(events)

            watch(self, fd, noting)
            registration = self._registered[fd]

        return checked

    def _checked(self, advance: Callable[..., None]) -> Callable[..., None]:
        driven = self

        def checked(self: Arrivals, arrival: arrivals_module._Arrival, events: int) -> None:
            if arrival.sock.fileno() != arrival.fd or self._arrivals.get(arrival.fd) is not arrival:
                driven.wrong.append("an event of a connection that is closed")
            if driven.arrival_faults:
                fault = driven.arrival_faults.popleft()
                with patch.object(TlsTransport, "shake", side_effect=fault):
                    advance(self, arrival, events)
            else:
                advance(self, arrival, events)

        return checked


def accept_queue(listener: socket.socket) -> int:
    """Connections that wait to be accepted: `tcpi_unacked` of a socket that listens (tcp(7), TCP_INFO)."""
    unacked: int = struct.unpack_from("I", listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 28), 24)[
        0
    ]
    return unacked


def every_fault() -> Iterator[Exception]:
    """What a system call or the interpreter may raise anywhere."""
    for number in (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS, errno.ECONNRESET, errno.EIO):
        yield OSError(number, os.strerror(number))
    yield from (MemoryError(), RecursionError("deep"), ValueError("value"), KeyError("key"))
