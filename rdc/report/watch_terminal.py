"""A watch as text: a status line where one can be redrawn, and a line per problem."""

from __future__ import annotations

import time
from collections.abc import Callable

from rdc.errors import RdcError, one_line
from rdc.model.watch import Disconnected, Halted, InStep, Limited, Resumed, WatchEvent, WatchReport
from rdc.progress import Event, Progressed
from rdc.report.progress_track import PhaseProgress, progress_text
from rdc.report.sizes import counted, duration_text, size_text
from rdc.report.status_line import StatusLine
from rdc.report.sync_terminal import SyncTerminal, TerminalStyle

__all__ = ["WatchTerminal", "trouble_line"]


SHOW_AFTER = 0.5
"""Seconds of a turn after which its progress is shown."""

REFRESH_SECONDS = 0.1
"""Seconds between two redraws for progress."""


class WatchTerminal:
    """`status` is None if no line can be redrawn."""

    def __init__(
        self,
        style: TerminalStyle,
        data: Callable[[str], None],
        flush: Callable[[], None],
        talk: Callable[[str], None],
        status: StatusLine | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        time_of_day: Callable[[], str] = lambda: time.strftime("%H:%M:%S"),
    ) -> None:
        """`data` writes to stdout, `flush` flushes stdout, `talk` writes to stderr. All take whole lines.
        `clock`: seconds that never go back."""
        self._style = style
        self._flush = flush
        self._talk = talk
        self._status = status
        self._clock = clock
        self._time_of_day = time_of_day
        self._sync = SyncTerminal(style, data, self._say)
        self._turns = self._changed = self._deleted = self._sent = self._received = 0
        self._trouble: str | None = None
        """The last problem printed that stops the watch; None while it runs."""
        self._status_words: tuple[str, ...] = ("resumed",)
        """The status at the end of the last turn."""
        self._began: float | None = None
        """Time of this turn's first progress event."""
        self._drawn = 0.0

    def start(self) -> None:
        """Prints nothing before the first event."""

    def report(self, event: Event) -> None:
        self._sync(event)
        if self._status is not None and isinstance(event, Progressed):
            self._progress(self._status, event)

    def emit(self, event: WatchEvent) -> None:
        if isinstance(event, InStep):
            self._in_step(event)
        elif isinstance(event, Resumed):
            self._trouble = None
            self._say("rdc: resumed: the source is back\n")
            self._show(*self._status_words, good=True)
        elif isinstance(event, Limited):
            self._say(f"rdc: {trouble_line(event)}\n")
        else:
            line = trouble_line(event)
            if line != self._trouble:
                # A far side that is away for a night is reported once, not every minute.
                self._trouble = line
                self._say(f"rdc: {line}\n")
            later = f"next try in {event.seconds:g} s" if isinstance(event, Disconnected) else ""
            self._show(*filter(None, (line, later)), good=False)

    def finish(self, report: WatchReport) -> None:
        self.close()
        if not self._style.quiet:
            self._talk(
                f"stopped after {counted(report.turns, 'turn')}: {report.changed:,} changed, "
                f"{report.deleted:,} deleted, sent {size_text(report.bytes_sent)}, "
                f"received {size_text(report.bytes_received)}\n"
            )

    def fail(self, error: RdcError) -> None:
        """Only removes the line: the command line prints the error in the same way for every command."""
        self.close()

    def close(self) -> None:
        self._sync.settle()
        if self._status is not None:
            self._status.close()

    def _in_step(self, event: InStep) -> None:
        self._sync.settle()
        self._flush()
        first, again = not self._turns, self._trouble is not None
        self._trouble, self._began = None, None
        self._turns += 1
        self._changed += event.changed
        self._deleted += event.deleted
        self._sent += event.bytes_sent
        self._received += event.bytes_received
        if again or (first and self._status is None and not self._style.quiet):
            self._say(f"in step{' again' if again else ''}: {counted(event.files, 'file')}; watching\n")
        self._status_words = (
            f"in step: {counted(event.files, 'file')}",
            f"last {self._time_of_day()}, {_short(event.seconds)}",
            f"{self._changed:,} changed",
            f"{self._deleted:,} deleted",
            f"sent {size_text(self._sent)}",
            f"received {size_text(self._received)}",
        )
        self._show(*self._status_words, good=True)

    def _progress(self, status: StatusLine, event: Progressed) -> None:
        """Shows the progress of a turn that takes longer than SHOW_AFTER."""
        now = self._clock()
        if self._began is None:
            self._began = now
        if now - self._began >= SHOW_AFTER and now - self._drawn >= REFRESH_SECONDS:
            self._drawn = now
            status.show([progress_text(PhaseProgress(event.phase, event.done, event.total))])

    def _show(self, *parts: str, good: bool) -> None:
        if self._status is not None:
            self._status.show(parts, good=good)

    def _say(self, text: str) -> None:
        if self._status is None or not self._status.line(text.rstrip("\n")):
            self._talk(text)


def trouble_line(event: Halted | Limited | Disconnected) -> str:
    """Describes what keeps a watch from working."""
    reason = one_line(event.reason)
    if isinstance(event, Halted):
        return f"halted: {reason}"
    if isinstance(event, Limited):
        return (
            f"not every directory can be watched: {reason}; the tree is read every {event.seconds} seconds"
            " instead"
        )
    return f"interrupted: {reason}"


def _short(seconds: float) -> str:
    """`85 ms`, `3.2 s`, `12:34`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else duration_text(seconds)
