"""The daemon's own process: accepts connections, learns who is there, and gives each session a process.

One thread, one loop. Nothing in it waits for a peer: handshakes advance as their bytes come
(rdc.daemon.arrivals), and a peer that is trusted is handed on by fork, with its connection, to a process of
its own (rdc.daemon.processes, rdc.daemon.session).
"""

from __future__ import annotations

import contextlib
import gc
import selectors
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

from rdc.daemon.arrivals import Arrivals
from rdc.daemon.listening import Listeners
from rdc.daemon.processes import SIGNALS, STOP_SECONDS, Processes
from rdc.daemon.session import Visitor, serve_session
from rdc.daemon.slots import Slots
from rdc.errors import ExitCode, RdcError, TrustError
from rdc.transport.tls_trust import answering_context, days_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.daemon.config import Address, DaemonConfig
    from rdc.daemon.log import Log
    from rdc.session.serve import Following
    from rdc.transport.tls import TlsTransport

__all__ = ["Server"]


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
        self._load = load
        self._following = following
        self._log = log
        self._selector = selectors.DefaultSelector()
        context = answering_context(config.keys)
        self._arrivals = Arrivals(self._selector, log, context, config.limits, self._welcome)
        self._listeners = Listeners(
            listeners, self._selector, log, self._arrivals.make_room, self._arrivals.take
        )
        self._processes = Processes(log)
        self._slots = Slots()
        self._sessions = 0
        self._caught: set[int] = set()
        self._stopping = False

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
        self._listeners.start()
        before = self._catch_signals(writer.fileno())
        self._warn()
        ready()
        # What is there now is shared with every session for good: the collector would write into all of it.
        gc.collect()
        gc.freeze()
        try:
            while not self._stopping or len(self._processes):
                for key, events in self._selector.select(self._wait()):
                    key.data(key.fileobj, events)
                self._heed()
                now = time.monotonic()
                self._arrivals.expire(now)
                self._processes.expire(now)
                self._listeners.expire(now)
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._arrivals.close()
            self._selector.close()
            reader.close()
            writer.close()
        self._log("info", "stopped")
        return ExitCode.OK

    def _wait(self) -> float | None:
        """Seconds until something is due."""
        dues = (self._arrivals.due, self._processes.due, self._listeners.due)
        times = [due for due in dues if due is not None]
        return max(0.0, min(times) - time.monotonic()) if times else None

    # Signals

    def _catch_signals(self, fd: int) -> dict[int, signal._HANDLER]:
        def note(number: int, _frame: FrameType | None) -> None:
            self._caught.add(number)

        signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
        return {number: signal.signal(number, note) for number in SIGNALS}

    def _woken(self, reader: socket.socket, _events: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while reader.recv(4096):
                pass

    def _heed(self) -> None:
        caught, self._caught = self._caught, set()
        if signal.SIGCHLD in caught:
            self._processes.reap()
        if signal.SIGHUP in caught and not self._stopping:
            self._reload()
        if signal.SIGTERM in caught or signal.SIGINT in caught:
            self._stop()

    def _stop(self) -> None:
        again, self._stopping = self._stopping, True
        self._log("info", "stopping", sessions=len(self._processes))
        if not again:
            self._listeners.stop()
            self._arrivals.close()
        # Whoever asks twice does not want to wait.
        self._processes.end(lambda _: True, grace=0.0 if again else STOP_SECONDS)

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
        self._config = config
        self._arrivals.context, self._arrivals.limits = context, config.limits
        self._log.as_json = config.json_log
        for name in config.modules:
            self._slots.know(name)
        ended = self._processes.end(lambda visitor: not config.names_of(visitor.pin))
        self._warn()
        self._log(
            "info",
            "reloaded",
            modules=len(config.modules),
            keys=len(config.keys.trusted),
            ended_sessions=ended,
        )

    def _warn(self) -> None:
        for line in self._config.overlaps:
            self._log("warning", "overlap", message=line)

    # Sessions

    def _welcome(self, transport: TlsTransport, address: Address) -> str | None:
        """A session for whoever showed a certificate that is trusted, or why there is none."""
        pin, limits = transport.peer_pin, self._config.limits
        names = self._config.names_of(pin)
        if not names:
            raise TrustError(f"the certificate {pin} is not one that is trusted")
        mine = self._processes.of(pin)
        if len(self._processes) >= limits.connections:
            busy = f"the daemon is busy: it serves {limits.connections} sessions already; try again later"
        elif mine >= limits.connections_per_peer:
            busy = f"this key has {mine} sessions already; let one end, then try again"
        else:
            self._sessions += 1
            days = days_until(transport.peer_expires, time.time())
            visitor = Visitor(self._sessions, min(names), names, pin, str(address), days)
            self._processes.begin(
                visitor, lambda: self._serve(transport, visitor), seconds=limits.session_seconds
            )
            transport.forsake()
            return None
        self._log("warning", "busy", peer=min(names), address=str(address), message=busy)
        return busy

    def _serve(self, transport: TlsTransport, visitor: Visitor) -> int:
        """In the session's process, which has nothing of the daemon's but the log and its own connection."""
        self._arrivals.forsake()
        self._listeners.forsake()
        self._selector.close()
        return serve_session(transport, visitor, self._config, self._slots, self._log, self._following)
