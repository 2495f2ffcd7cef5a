"""The end of a session from outside: SIGTERM and the signals of its limits.

A signal arrives between any two instructions. An exception out of its handler could leave an unrecorded new
file, or half a TLS record. So the handler only records the signal, and the session ends at its next exchange
with the peer, several times a second. A session that computes longer is ended after FORCE_SECONDS wherever it
is. The next run takes up or removes what it leaves.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType

from rdc.errors import ExitCode, RdcError
from rdc.transport.base import timed_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.transport.base import Exchange
    from rdc.transport.tls import TlsTransport

__all__ = ["FORCE_SECONDS", "EndableTransport", "Ending"]

FORCE_SECONDS = 3.0
"""Seconds from the signal to a forced end: well below the time after which the daemon or the kernel kills."""

SLICE_SECONDS = 0.25
"""Seconds of one wait for the peer, the longest delay before a signal is noticed."""


class Ending:
    """The first requested end. Later ones are dropped, so none interrupts the last messages."""

    def __init__(self, late: Callable[[], str]) -> None:
        """late: the message of a session whose time is over."""
        self._late = late
        self._error: RdcError | None = None
        self._reported = False

    def heed(self) -> None:
        """Install this object's handlers for the process's signals."""
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
            signal.signal(number, self._note)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def check(self) -> None:
        """Raise RdcError, once, if the session is to end."""
        if self._error is not None and not self._reported:
            self._reported = True
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise self._error

    def _note(self, number: int, _frame: FrameType | None) -> None:
        if self._error is not None:
            if number == signal.SIGALRM:
                self.check()
            return
        if number == signal.SIGTERM:
            self._error = RdcError(
                "the daemon ended the session: it stops, or trusts this key no more",
                code=ExitCode.INTERRUPTED,
            )
        elif number == signal.SIGALRM:
            self._error = RdcError(self._late(), code=ExitCode.BUSY)
        else:
            self._error = RdcError(
                "the session used more processor time than the daemon allows", code=ExitCode.BUSY
            )
        signal.setitimer(signal.ITIMER_REAL, FORCE_SECONDS)


class EndableTransport:
    """`inner` with a check for the session's end in each exchange."""

    def __init__(self, inner: TlsTransport, ending: Ending) -> None:
        self._inner = inner
        self._ending = ending

    def fileno(self) -> int:
        return self._inner.fileno()

    @property
    def events(self) -> int:
        return self._inner.events

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        moved, began = self._moved, time.monotonic()
        while True:
            self._ending.check()
            if timeout == 0:
                return self._inner.exchange(outgoing, want_input, 0)
            left = SLICE_SECONDS if timeout is None else began + timeout - time.monotonic()
            if timeout is not None and left <= 0:
                raise timed_out(timeout)
            try:
                return self._inner.exchange(outgoing, want_input, min(left, SLICE_SECONDS))
            except RdcError as error:
                if error.code is not ExitCode.TIMEOUT:
                    raise
            if moved != self._moved:
                # Part of a record arrived: a slow line is not a silent one.
                moved, began = self._moved, time.monotonic()

    @property
    def _moved(self) -> int:
        return self._inner.bytes_sent + self._inner.bytes_received

    def close_write(self) -> None:
        self._inner.close_write()

    def close(self) -> None:
        self._inner.close()
