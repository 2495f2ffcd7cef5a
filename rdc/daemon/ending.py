"""How a session is ended from outside, by SIGTERM and the signals of its limits: in order, where that can be.

A signal comes between any two instructions. What a handler raises there can leave a file that was just made
without anybody who knows of it, or half a TLS record. So a handler only takes note, and the session ends the
next time it turns to its peer, which is several times a second. One that computes for longer than that is
ended wherever it is after FORCE_SECONDS: what it leaves behind the next run takes up or sweeps away.
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
"""From the signal until it is not waited for any more; well below what the daemon and the kernel wait before
they kill."""

SLICE_SECONDS = 0.25
"""One wait for the peer: how long a signal may go unnoticed in it."""


class Ending:
    """The one end that was asked for; those after it are dropped, so that none breaks into the last words."""

    def __init__(self, late: Callable[[], str]) -> None:
        """`late`: what is said of a session whose time is over."""
        self._late = late
        self._error: RdcError | None = None
        self._told = False

    def heed(self) -> None:
        """From here on the process's signals are this."""
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGXCPU):
            signal.signal(number, self._note)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def check(self) -> None:
        """Raises RdcError, once, when the session is to end."""
        if self._error is not None and not self._told:
            self._told = True
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
    """`inner`, in which every exchange may be the one that ends the session."""

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
                # Part of a record: a slow line is not a silent one.
                moved, began = self._moved, time.monotonic()

    @property
    def _moved(self) -> int:
        return self._inner.bytes_sent + self._inner.bytes_received

    def close_write(self) -> None:
        self._inner.close_write()

    def close(self) -> None:
        self._inner.close()
