"""A watch as people read it: one status line where it can be redrawn, a line for each trouble everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TextIO

from rdc.errors import RdcError, printable
from rdc.model.watch import Disconnected, Halted, InStep, Limited, Resumed, WatchEvent, WatchReport
from rdc.progress import Event
from rdc.report.progress_bar import ProgressBar
from rdc.report.sizes import counted, size_text
from rdc.report.sync_terminal import SyncTerminal, TerminalStyle

if TYPE_CHECKING:
    from rich.live import Live

__all__ = ["StatusLine", "WatchTerminal", "trouble_line"]


class StatusLine:
    """A line on `stream` that is drawn anew, until close(), which wipes it."""

    def __init__(self, stream: TextIO, *, color: bool) -> None:
        self._stream = stream
        self._color = color
        self._live: Live | None = None

    def show(self, text: str) -> None:
        from rich.text import Text

        if self._live is None:
            self._live = self._open()
        self._live.update(Text(text, no_wrap=True, overflow="ellipsis"), refresh=True)

    def line(self, text: str) -> bool:
        """Print `text` above; False where nothing is shown yet and the caller prints it."""
        if self._live is None:
            return False
        self._live.console.print(text, markup=False, highlight=False, soft_wrap=True)
        return True

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _open(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        console = Console(
            file=self._stream,
            force_terminal=True,
            no_color=not self._color,
            color_system="standard" if self._color else None,
        )
        live = Live(
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
        )
        live.start()
        return live


class WatchTerminal:
    """`bar` serves the first comparison, `status` what follows; None where nothing can be redrawn."""

    def __init__(
        self,
        style: TerminalStyle,
        data: Callable[[str], None],
        flush: Callable[[], None],
        talk: Callable[[str], None],
        bar: ProgressBar | None = None,
        status: StatusLine | None = None,
    ) -> None:
        """`data` writes to stdout, `flush` pushes that out, `talk` writes to stderr; all take whole lines."""
        self._style = style
        self._data = data
        self._flush = flush
        self._talk = talk
        self._status = status
        self._sync = SyncTerminal(style, data, self._say, bar)
        self._turns = self._changed = self._deleted = self._sent = 0

    def start(self) -> None:
        """Nothing to say before the first event."""

    def report(self, event: Event) -> None:
        self._sync(event)

    def tell(self, event: WatchEvent) -> None:
        if isinstance(event, InStep):
            self._in_step(event)
        else:
            self._sync.close()
            self._say(f"rdc: {trouble_line(event)}\n")

    def finish(self, report: WatchReport) -> None:
        self.close()
        if not self._style.quiet:
            self._talk(
                f"stopped after {counted(report.turns, 'turn')}: {report.changed:,} changed, "
                f"{report.deleted:,} deleted, sent {size_text(report.bytes_sent)}, "
                f"received {size_text(report.bytes_received)}\n"
            )

    def fail(self, error: RdcError) -> None:
        """Only the line goes away: the command line prints the error for every verb alike."""
        self.close()

    def close(self) -> None:
        self._sync.close()
        if self._status is not None:
            self._status.close()

    def _in_step(self, event: InStep) -> None:
        self._sync.close()
        self._flush()
        first = not self._turns
        if first:
            # Two things that are drawn anew on one terminal would tear each other apart.
            self._sync = SyncTerminal(self._style, self._data, self._say)
        self._turns += 1
        self._changed += event.changed
        self._deleted += event.deleted
        self._sent += event.bytes_sent
        if self._status is not None:
            self._status.show(
                f"in step: {counted(event.files, 'file')}; so far {self._changed:,} changed, "
                f"{self._deleted:,} deleted, sent {size_text(self._sent)} "
                f"(last turn {event.seconds * 1000:.0f} ms)"
            )
        elif first and not self._style.quiet:
            self._talk(f"in step: {counted(event.files, 'file')}; watching\n")

    def _say(self, text: str) -> None:
        if self._status is None or not self._status.line(text.rstrip("\n")):
            self._talk(text)


def trouble_line(event: Halted | Resumed | Limited | Disconnected) -> str:
    """What keeps a watch from its work, or no longer does."""
    if isinstance(event, Halted):
        return f"halted: {printable(event.reason)}"
    if isinstance(event, Resumed):
        return "resumed: the source is back"
    if isinstance(event, Limited):
        return (
            f"not every directory can be watched: {printable(event.reason)}; the tree is read every "
            f"{event.seconds} seconds instead"
        )
    return f"connection lost: {printable(event.reason)}; next try in {event.seconds:g} seconds"
