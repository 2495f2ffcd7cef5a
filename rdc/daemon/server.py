"""The daemon's own process: accepts connections, learns who is there, and gives each session a process.

One thread, one loop. Nothing in it waits for a peer: handshakes advance as their bytes come, and a peer that
is trusted is handed on by fork, with its connection, to a process of its own (rdc.daemon.session). What a
stranger can make this process hold is bounded by `handshakes` connections of some 50 KB for
`handshake_seconds`.
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import selectors
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from rdc.chunking.params import SYNC_PARAMS
from rdc.daemon.config import Address
from rdc.daemon.session import Visitor, serve_session
from rdc.daemon.slots import Slots
from rdc.errors import ExitCode, RdcError, StreamError, TrustError
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Refused
from rdc.session.serve import greeting
from rdc.transport.tls import TlsTransport, answering_context

if TYPE_CHECKING:
    from rdc.daemon.config import DaemonConfig
    from rdc.daemon.log import Log
    from rdc.session.serve import Following

__all__ = ["Server", "bind"]

BACKLOG = 128
"""Connections the kernel holds until they are accepted."""

ACCEPTS = 32
"""Accepted at a time before the others get a turn."""

FAREWELL_SECONDS = 2.0
"""How long a peer that is refused may take to read why."""

FAREWELL_BYTES = 1 << 20
"""What it may still send meanwhile: the start of a session, long filter lists included."""

STOP_SECONDS = 20.0
"""How long sessions may take to end in order after SIGTERM; the unit file allows more."""

PAUSE_SECONDS = 1.0
"""Before the next accept after one that failed for want of descriptors or memory."""


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


@dataclass(slots=True)
class _Arrival:
    """A connection that has not shown who it is, or was told that it is refused."""

    transport: TlsTransport
    address: Address
    deadline: float
    farewell: bool = False
    dropped: int = 0
    """Bytes that came after the refusal."""


@dataclass(slots=True)
class _Running:
    visitor: Visitor
    killed_at: float | None
    """When a session that should have ended by itself, or was told to, is no longer waited for."""


class Server:
    """`load` reads the configuration anew; it raises RdcError."""

    def __init__(
        self,
        config: DaemonConfig,
        load: Callable[[], DaemonConfig],
        listeners: list[socket.socket],
        log: Log,
        following: Following | None = None,
    ) -> None:
        self._config = config
        self._context = answering_context(config.keys)
        self._load = load
        self._following = following
        self._log = log
        self._listeners = listeners
        self._selector = selectors.DefaultSelector()
        self._arrivals: dict[int, _Arrival] = {}
        """By file descriptor, in order of age."""
        self._running: dict[int, _Running] = {}
        """By process id."""
        self._slots = Slots()
        self._sessions = 0
        self._paused_until: float | None = None
        self._caught: set[int] = set()
        self._stopping: float | None = None

    # The loop

    def run(self, ready: Callable[[], None]) -> ExitCode:
        """Serves until SIGTERM or SIGINT, then ends all sessions in order. `ready` is called once signals
        mean what they mean to a daemon."""
        for name in self._config.modules:
            self._slots.know(name)
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        self._selector.register(reader, selectors.EVENT_READ, self._woken)
        self._accepting(True)
        before = self._catch_signals(writer.fileno())
        ready()
        # What is there now is shared with every session for good: the collector would write into all of it.
        gc.collect()
        gc.freeze()
        try:
            while self._stopping is None or self._running:
                for key, events in self._selector.select(self._wait()):
                    key.data(key.fileobj, events)
                self._heed()
                self._expire()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._close_arrivals()
            self._selector.close()
            reader.close()
            writer.close()
        self._log("info", "stopped")
        return ExitCode.OK

    def _wait(self) -> float | None:
        """Seconds until something is due."""
        times = [arrival.deadline for arrival in self._arrivals.values()]
        times += [running.killed_at for running in self._running.values() if running.killed_at is not None]
        times += [self._paused_until] if self._paused_until is not None else []
        return max(0.0, min(times) - time.monotonic()) if times else None

    def _expire(self) -> None:
        now = time.monotonic()
        for arrival in [a for a in self._arrivals.values() if a.deadline <= now]:
            if not arrival.farewell:
                self._log.stranger("timeout", address=str(arrival.address), phase="handshake")
            self._forget(arrival)
        for pid, running in self._running.items():
            if running.killed_at is not None and running.killed_at <= now:
                running.killed_at = None
                _signal(pid, signal.SIGKILL)
        if self._paused_until is not None and self._paused_until <= now:
            self._paused_until = None
            self._accepting(self._stopping is None)

    # Signals

    def _catch_signals(self, fd: int) -> dict[int, signal._HANDLER]:
        def note(number: int, _frame: FrameType | None) -> None:
            self._caught.add(number)

        signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
        wanted = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
        return {number: signal.signal(number, note) for number in wanted}

    def _woken(self, reader: socket.socket, _events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while reader.recv(4096):
                pass

    def _heed(self) -> None:
        caught, self._caught = self._caught, set()
        if signal.SIGCHLD in caught:
            self._reap()
        if signal.SIGHUP in caught and self._stopping is None:
            self._reload()
        if signal.SIGTERM in caught or signal.SIGINT in caught:
            self._stop()

    def _stop(self) -> None:
        now = time.monotonic()
        again, self._stopping = self._stopping is not None, now
        self._log("info", "stopping", sessions=len(self._running))
        if not again:
            self._accepting(False)
            for listener in self._listeners:
                listener.close()
            self._close_arrivals()
        for pid, running in self._running.items():
            # Whoever asks twice does not want to wait.
            self._end(pid, running, 0.0 if again else STOP_SECONDS)

    def _end(self, pid: int, running: _Running, grace: float) -> None:
        running.killed_at = time.monotonic() + grace
        _signal(pid, signal.SIGTERM)

    def _reload(self) -> None:
        try:
            config = self._load()
            context = answering_context(config.keys)
        except RdcError as error:
            self._log("error", "reload_failed", message=f"{error}; the old configuration stays")
            return
        for name in ("listen", "user", "group"):
            if getattr(config, name) != getattr(self._config, name):
                self._log("warning", "needs_restart", setting=name)
        self._config, self._context = config, context
        self._log.as_json = config.json_log
        for name in config.modules:
            self._slots.know(name)
        ended = 0
        for pid, running in self._running.items():
            if not config.names_of(running.visitor.pin):
                ended += 1
                self._end(pid, running, STOP_SECONDS)
        self._log(
            "info",
            "reloaded",
            modules=len(config.modules),
            keys=len(config.keys.trusted),
            ended_sessions=ended,
        )

    def _reap(self) -> None:
        while self._running:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            running = self._running.pop(pid, None)
            if running is None:
                continue
            died = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
            self._log(
                "info" if died is None else "error",
                "end",
                session=running.visitor.session,
                peer=running.visitor.name,
                signal=None if died is None else signal.Signals(died).name,
                cpu=round(usage.ru_utime + usage.ru_stime, 3),
                rss_kb=usage.ru_maxrss,
                sessions=len(self._running),
            )

    # Arrivals

    def _accepting(self, wanted: bool) -> None:
        registered = {key.fd for key in self._selector.get_map().values()}
        for listener in self._listeners:
            if wanted and listener.fileno() not in registered:
                listener.setblocking(False)
                self._selector.register(listener, selectors.EVENT_READ, self._accept)
            elif not wanted and listener.fileno() in registered:
                self._selector.unregister(listener)

    def _accept(self, listener: socket.socket, _events: int) -> None:
        for _ in range(ACCEPTS):
            try:
                sock, name = listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._log("error", "accept_failed", message=error.strerror)
                self._paused_until = time.monotonic() + PAUSE_SECONDS
                self._accepting(False)
                return
            self._make_room()
            transport = TlsTransport(sock, self._context, server_side=True)
            deadline = time.monotonic() + self._config.limits.handshake_seconds
            arrival = _Arrival(transport, address_of(name), deadline)
            self._arrivals[sock.fileno()] = arrival
            self._selector.register(sock, selectors.EVENT_READ, self._advance)
            self._advance(sock, selectors.EVENT_READ)

    def _make_room(self) -> None:
        """Whoever waits longest of the address that has most goes: a handshake takes two round trips, so that
        a flood of connections that say nothing pushes out itself, not those who come to work."""
        if len(self._arrivals) < self._config.limits.handshakes:
            return
        hosts = Counter(arrival.address.host for arrival in self._arrivals.values())
        (crowded, _), *_rest = hosts.most_common(1)
        oldest = next(a for a in self._arrivals.values() if a.address.host == crowded)
        self._log.stranger("crowded_out", address=str(oldest.address), handshakes=len(self._arrivals))
        self._forget(oldest)

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
            names = self._config.names_of(transport.peer_pin)
            if not names:
                raise TrustError(f"the certificate {transport.peer_pin} is not one that is trusted")
        except (TrustError, StreamError) as error:
            self._log.stranger("unknown_peer", address=str(arrival.address), message=str(error))
            self._bid_farewell(sock, arrival)
            return
        self._welcome(sock, arrival, names)

    def _welcome(self, sock: socket.socket, arrival: _Arrival, names: frozenset[str]) -> None:
        pin, limits = arrival.transport.peer_pin, self._config.limits
        mine = sum(running.visitor.pin == pin for running in self._running.values())
        if len(self._running) >= limits.connections:
            busy = f"the daemon is busy: it serves {limits.connections} sessions already; try again later"
        elif mine >= limits.connections_per_peer:
            busy = f"this key has {mine} sessions already; let one end, then try again"
        else:
            self._sessions += 1
            visitor = Visitor(self._sessions, min(names), names, pin, str(arrival.address))
            self._spawn(arrival, visitor)
            return
        self._log("warning", "busy", peer=min(names), address=str(arrival.address), message=busy)
        connection = Connection(False, greeting(SYNC_PARAMS), compress=False)
        connection.send(Refused(ExitCode.BUSY, busy), 0)
        connection.flush()
        # Less than any socket buffer: it is gone at once, or its reader never read.
        with contextlib.suppress(RdcError):
            arrival.transport.exchange(memoryview(connection.data_to_send()), False, 0)
        self._bid_farewell(sock, arrival)

    def _bid_farewell(self, sock: socket.socket, arrival: _Arrival) -> None:
        """What was said has left; now the peer closes, or the time is over. To close first would reset the
        connection if anything of the peer's is unread, and the reset can overtake what we said."""
        arrival.farewell = True
        arrival.deadline = time.monotonic() + FAREWELL_SECONDS
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_WR)
        self._selector.modify(sock, selectors.EVENT_READ, self._advance)

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
        self._release(arrival).forsake()

    def _release(self, arrival: _Arrival) -> TlsTransport:
        fd = arrival.transport.fileno()
        self._selector.unregister(fd)
        del self._arrivals[fd]
        return arrival.transport

    def _close_arrivals(self) -> None:
        for arrival in list(self._arrivals.values()):
            self._forget(arrival)

    # Sessions

    def _spawn(self, arrival: _Arrival, visitor: Visitor) -> None:
        """Hands the connection to a new process.

        A process and not a thread: what a session allocates is its own and given back whole, the kernel binds
        it (RLIMIT_DATA, RLIMIT_CPU), it can be killed, and a fault in native code ends one session. Forked
        and not started anew: 5 ms instead of 200, and the pages of the program are shared.
        """
        transport = self._release(arrival)
        ours = signal.pthread_sigmask(
            signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
        )
        try:
            pid = os.fork()
            if pid == 0:
                self._become_session(transport, visitor, ours)
        except OSError as error:
            self._log("error", "fork_failed", session=visitor.session, message=error.strerror)
            pid = None
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, ours)
        transport.forsake()
        if pid is not None:
            longest = self._config.limits.session_seconds + STOP_SECONDS
            self._running[pid] = _Running(visitor, time.monotonic() + longest)
            self._log(
                "info",
                "connect",
                session=visitor.session,
                peer=visitor.name,
                pin=visitor.pin,
                address=visitor.address,
                pid=pid,
                sessions=len(self._running),
            )

    def _become_session(
        self, transport: TlsTransport, visitor: Visitor, mask: set[int | signal.Signals]
    ) -> None:
        """In the new process; never returns."""
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            # Other peers' connections end when the daemon closes them, not when this session does.
            for arrival in self._arrivals.values():
                arrival.transport.forsake()
            for listener in self._listeners:
                listener.close()
            self._selector.close()
            code = serve_session(transport, visitor, self._config, self._slots, self._log, self._following)
        except BaseException as error:  # noqa: BLE001 - whatever it is, this process ends here
            self._log(
                "error", "internal", session=visitor.session, message=f"{type(error).__name__}: {error}"
            )
        finally:
            os._exit(int(code))


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
