"""The processes in which sessions run: begun by fork, told to end, killed when they do not, and counted."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

from rdc.daemon.log import fault
from rdc.limits import EXPIRY_NOTICE_DAYS
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.daemon.log import Log
    from rdc.daemon.session import Visitor

__all__ = ["SIGNALS", "Processes", "STOP_SECONDS"]

STOP_SECONDS = 20.0
"""How long sessions may take to end in order after SIGTERM; the unit file allows more."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
"""What the daemon heeds."""

FAULT = 70
"""Exit status of a session that ended by an error that should not be."""


@dataclass(slots=True)
class _Running:
    visitor: Visitor
    killed_at: float | None
    """When a session that should have ended by itself, or was told to, is no longer waited for."""


class Processes:
    """A process and not a thread for each session: what it allocates is its own and given back whole, the
    kernel binds it (RLIMIT_DATA, RLIMIT_CPU), it can be killed, and a fault in native code ends one session.
    Forked and not started anew: 5 ms instead of 200, and the pages of the program are shared."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._running: dict[int, _Running] = {}
        """By process id."""

    def __len__(self) -> int:
        return len(self._running)

    def of(self, pin: str) -> int:
        """How many of them this key has."""
        return sum(running.visitor.pin == pin for running in self._running.values())

    @property
    def due(self) -> float | None:
        """When the next of them is to be killed."""
        return min((r.killed_at for r in self._running.values() if r.killed_at is not None), default=None)

    def begin(self, visitor: Visitor, work: Callable[[], int], *, seconds: float) -> bool:
        """Runs `work` in a new process, whose exit status it returns, for `seconds` and STOP_SECONDS at most;
        False where none can be had."""
        ours = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            pid = os.fork()
            if pid == 0:
                self._become(visitor, work, ours)
        except OSError as error:
            self._log("error", "fork_failed", session=visitor.session, message=error.strerror)
            return False
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, ours)
        self._running[pid] = _Running(visitor, time.monotonic() + seconds + STOP_SECONDS)
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
        """In the new process; never returns."""
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
        """Tells those sessions to end in order, for `grace` seconds; then they are killed. How many."""
        told = 0
        for pid, running in self._running.items():
            if unwanted(running.visitor):
                told += 1
                running.killed_at = time.monotonic() + grace
                _signal(pid, signal.SIGTERM)
        return told

    def expire(self, now: float) -> None:
        for pid, running in self._running.items():
            if running.killed_at is not None and running.killed_at <= now:
                running.killed_at = None
                _signal(pid, signal.SIGKILL)

    def reap(self) -> None:
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


def _signal(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
