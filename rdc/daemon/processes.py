"""The processes of the sessions: started by fork, told to end, killed if they do not, and counted."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable

from rdc.daemon.log import fault
from rdc.lean.records import dataclass
from rdc.limits.sessions import EXPIRY_NOTICE_DAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.daemon.log import Log
    from rdc.daemon.session import Visitor

__all__ = ["SIGNALS", "Processes", "STOP_SECONDS"]

STOP_SECONDS = 20.0
"""Seconds that sessions get to end after SIGTERM; the unit file allows more."""

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
"""The signals that the daemon handles."""

FAULT = 70
"""Exit status of a session that ended by an unexpected error."""


@dataclass(slots=True)
class _Running:
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
        """Number of sessions of this key."""
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
