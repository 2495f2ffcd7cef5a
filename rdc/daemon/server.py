"""The daemon's main process: it accepts connections, authenticates peers, and gives each session a process.

It has one thread and one loop, which waits for no peer. Handshakes advance as their bytes arrive
(rdc.daemon.arrivals). A trusted peer's connection passes by fork to a process of its own
(rdc.daemon.server, rdc.daemon.session).
"""

from __future__ import annotations

import contextlib
import gc
import os
import selectors
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

from rdc.daemon.arrivals import Arrivals, EventLoop, Listeners
from rdc.daemon.log import Log, fault
from rdc.daemon.session import Slots, Visitor, serve_session
from rdc.errors import ExitCode, RdcError, TrustError
from rdc.lean.records import Record
from rdc.limits import EXPIRY_NOTICE_DAYS
from rdc.transport.tls import TlsTransport, answering_context, days_until

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.daemon.config import Address, DaemonConfig
    from rdc.session.serve import Following, Meeting


# The processes of the sessions: started by fork, told to end, killed if they do not, and counted.

STOP_SECONDS = 20.0
"""Seconds that sessions get to end after SIGTERM; the unit file allows more."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
"""The signals that the daemon handles."""

FAULT = 70
"""Exit status of a session that ended by an unexpected error."""


class _Running(Record, frozen=False):
    visitor: Visitor
    killed_at: float | None
    """The time at which a session that should have ended is killed; None before that."""


class Processes:
    """One process per session, not a thread.

    Its memory returns whole, the kernel limits it (RLIMIT_DATA, RLIMIT_CPU), it can be killed, and a fault in
    native code ends one session only. A fork takes 5 ms where a new start takes 200 ms, and shares the pages
    of the program.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._running: dict[int, _Running] = {}
        """Running sessions by process id."""

    def __len__(self) -> int:
        return len(self._running)

    def of(self, pin: str) -> int:
        """Return the number of sessions of this key."""
        return sum(running.visitor.pin == pin for running in self._running.values())

    @property
    def due(self) -> float | None:
        """Time of the next kill."""
        return min((r.killed_at for r in self._running.values() if r.killed_at is not None), default=None)

    def begin(self, visitor: Visitor, work: Callable[[], int], *, seconds: float) -> bool:
        """Run `work` in a new process with its result as the exit status, for at most `seconds` plus
        STOP_SECONDS. False if no process can be created."""
        running = _Running(visitor, time.monotonic() + seconds + STOP_SECONDS)
        ours = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._become(visitor, work, ours)
        except (OSError, MemoryError) as error:
            why = (error.strerror if isinstance(error, OSError) else None) or str(error) or "out of memory"
            self._log("error", "fork_failed", session=visitor.session, message=why)
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, ours)
        self._running[pid] = running
        soon = visitor.days_left is not None and visitor.days_left < EXPIRY_NOTICE_DAYS
        self._log(
            "warning" if soon else "info",
            "connect",
            session=visitor.session,
            peer=visitor.name,
            pin=visitor.pin,
            address=visitor.address,
            pid=pid,
            key_days_left=visitor.days_left if soon else None,
            sessions=len(self._running),
        )
        return True

    def _become(self, visitor: Visitor, work: Callable[[], int], mask: set[int | signal.Signals]) -> None:
        """Run in the new process; never returns."""
        code = FAULT
        try:
            signal.set_wakeup_fd(-1)
            for number in SIGNALS:
                signal.signal(number, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
            code = work()
        except BaseException as error:  # noqa: BLE001 - whatever it is, this process ends here
            self._log("error", "internal", session=visitor.session, message=fault(error))
        finally:
            os._exit(int(code))

    def end(self, unwanted: Callable[[Visitor], bool], *, grace: float = STOP_SECONDS) -> int:
        """Tell these sessions to end, and kill them after `grace` seconds. Returns their number."""
        count = 0
        for pid, running in self._running.items():
            if unwanted(running.visitor):
                count += 1
                running.killed_at = time.monotonic() + grace
                _signal(pid, signal.SIGTERM)
        return count

    def drop_overdue(self, now: float) -> None:
        for pid, running in self._running.items():
            if running.killed_at is not None and running.killed_at <= now:
                running.killed_at = None
                _signal(pid, signal.SIGKILL)

    def reap(self) -> None:
        """Reap all processes that have ended; one signal may stand for many."""
        while True:
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
                signal=None if died is None else _name(died),
                cpu=round(usage.ru_utime + usage.ru_stime, 3),
                rss_kb=usage.ru_maxrss,
                sessions=len(self._running),
            )


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"  # Python names no real-time signals but the first and the last


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


FAULT_SECONDS = 0.1
"""Seconds of pause after a failed wait for events, perhaps for lack of memory. A busy loop would not help."""


class Server:
    """Invariant: whatever a peer, a session or a reload raises, `turn` returns and the next one serves all
    others. Settings change together, after everything that can fail."""

    def __init__(
        self,
        config: DaemonConfig,
        load: Callable[[], DaemonConfig],
        listeners: list[socket.socket],
        log: Log,
        following: Following | None = None,
        meeting: Meeting | None = None,
        selector: selectors.BaseSelector | None = None,
    ) -> None:
        """load: reads the configuration again, or raises RdcError. selector: the system's best by default."""
        self._config = config
        self._load = load
        self._following = following
        self._meeting = meeting
        self._log = log
        self._loop = EventLoop(selector or selectors.DefaultSelector(), log)
        context = answering_context(config.keys)
        self._arrivals = Arrivals(self._loop, log, context, config.limits, self._welcome)
        self._listeners = Listeners(
            listeners,
            self._loop,
            log,
            self._arrivals.make_room,
            self._arrivals.drop_one,
            self._arrivals.take,
        )
        self._processes = Processes(log)
        self._slots = Slots()
        self._sessions = 0
        self._caught: set[int] = set()
        self._stopping = False

    # The loop

    def run(self, ready: Callable[[], None]) -> ExitCode:
        """Serve until SIGTERM or SIGINT, then end all sessions. ready: called after the signal handlers are
        installed."""
        reader, writer = socket.socketpair()
        reader.setblocking(False)
        writer.setblocking(False)
        self._loop.watch(reader.fileno(), lambda _events: _drain(reader))
        self.start()
        before = self._catch_signals(writer.fileno())
        self._warn(self._config.overlaps)
        ready()
        # Existing objects are shared with every session for good. The collector would write into all of them.
        gc.collect()
        gc.freeze()
        try:
            while not self.stopped:
                self.turn()
        finally:
            signal.set_wakeup_fd(-1)
            for number, handler in before.items():
                signal.signal(number, handler)
            self.close()
            reader.close()
            writer.close()
        self._log("info", "stopped")
        return ExitCode.OK

    def start(self) -> None:
        """Start to listen. Raises OSError."""
        for name in self._config.modules:
            self._slots.know(name)
        self._listeners.start()

    @property
    def stopped(self) -> bool:
        """Return whether the daemon was told to stop and all sessions have ended."""
        return self._stopping and not len(self._processes)

    def turn(self) -> None:
        """Wait for one batch of events, then do everything that is due."""
        if not self._guarded(self._loop.turn, self._wait()):
            time.sleep(FAULT_SECONDS)
        self._heed()
        now = time.monotonic()
        for part in (self._arrivals, self._processes, self._listeners):
            self._guarded(part.drop_overdue, now)

    def close(self) -> None:
        self._arrivals.close()
        self._loop.close()

    def _guarded(self, act: Callable[..., object], *given: object) -> bool:
        """Call `act`. False: it raised, which is logged."""
        try:
            act(*given)
        except Exception as error:  # noqa: BLE001 - nothing that goes wrong may end the daemon
            self._log.internal(error)
            return False
        return True

    def _wait(self) -> float | None:
        """Return the seconds until the next deadline."""
        dues = (self._arrivals.due, self._processes.due, self._listeners.due)
        times = [due for due in dues if due is not None]
        return min(times) - time.monotonic() if times else None

    # Signals

    def _catch_signals(self, fd: int) -> dict[int, signal._HANDLER]:
        def note(number: int, _frame: FrameType | None) -> None:
            self.notice(number)

        signal.set_wakeup_fd(fd, warn_on_full_buffer=False)
        return {number: signal.signal(number, note) for number in SIGNALS}

    def notice(self, number: int) -> None:
        """Record a signal, which the end of the turn handles."""
        self._caught.add(number)

    def _heed(self) -> None:
        caught, self._caught = self._caught, set()
        if signal.SIGCHLD in caught:
            self._guarded(self._processes.reap)
        if signal.SIGHUP in caught and not self._stopping:
            self._guarded(self._reload)
        if signal.SIGTERM in caught or signal.SIGINT in caught:
            self._guarded(self._stop)

    def _stop(self) -> None:
        again, self._stopping = self._stopping, True
        self._log("info", "stopping", sessions=len(self._processes))
        if not again:
            self._listeners.stop()
            self._arrivals.close()
        # A second signal means that the user does not want to wait.
        self._processes.end(lambda _: True, grace=0.0 if again else STOP_SECONDS)

    def _reload(self) -> None:
        """Reload the configuration. Everything that can fail precedes the first change."""
        try:
            config = self._load()
            context = answering_context(config.keys)
            overlaps = config.overlaps
        except Exception as error:  # noqa: BLE001 - whatever it is, the daemon has settings that are right
            reason = str(error) if isinstance(error, RdcError) else fault(error)
            self._log("error", "reload_failed", message=f"{reason}; the old configuration stays")
            return
        before, self._config = self._config, config
        self._arrivals.context, self._arrivals.limits = context, config.limits
        self._log.as_json = config.json_log
        for name in config.modules:
            self._slots.know(name)
        ended = self._processes.end(lambda visitor: not config.names_of(visitor.pin))
        for name in ("listen", "user", "group"):
            if getattr(config, name) != getattr(before, name):
                self._log("warning", "needs_restart", setting=name)
        self._warn(overlaps)
        self._log(
            "info",
            "reloaded",
            modules=len(config.modules),
            keys=len(config.keys.trusted),
            ended_sessions=ended,
        )

    def _warn(self, overlaps: list[str]) -> None:
        for line in overlaps:
            self._log("warning", "overlap", message=line)

    # Sessions

    def _welcome(self, transport: TlsTransport, address: Address) -> str | None:
        """Start a session for a peer with a trusted certificate, or return the reason for none."""
        pin, limits = transport.peer_pin, self._config.limits
        names = self._config.names_of(pin)
        if not names:
            raise TrustError(f"the certificate {pin} is not one that is trusted")
        mine = self._processes.of(pin)
        if len(self._processes) >= limits.connections:
            busy = f"the daemon is busy: it serves {limits.connections} sessions already; try again later"
        elif mine >= limits.connections_per_peer:
            busy = f"this key has {mine} sessions already; let one end, then try again"
        elif self._begin(transport, address, names):
            transport.forsake()
            return None
        else:
            busy = "the daemon has no process for the session: the system is short of them; try again later"
        self._log("warning", "busy", peer=min(names), address=str(address), message=busy)
        return busy

    def _begin(self, transport: TlsTransport, address: Address, names: frozenset[str]) -> bool:
        """Start a process that serves the peer. False: no process can be created."""
        self._sessions += 1
        days = days_until(transport.peer_expires, time.time())
        visitor = Visitor(self._sessions, min(names), names, transport.peer_pin, str(address), days)
        return self._processes.begin(
            visitor,
            lambda: self._serve(transport, visitor),
            seconds=self._config.limits.session_seconds,
        )

    def _serve(self, transport: TlsTransport, visitor: Visitor) -> int:
        """Run in the session's process, which keeps only the log and its own connection of the daemon's."""
        self._arrivals.forsake()
        self._listeners.forsake()
        self._loop.close()
        return serve_session(
            transport, visitor, self._config, self._slots, self._log, self._following, self._meeting
        )


def _drain(reader: socket.socket) -> None:
    """Discard the bytes that signals have written to wake the loop."""
    with contextlib.suppress(OSError):
        while reader.recv(4096):
            pass
