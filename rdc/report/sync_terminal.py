"""A sync as text: names as rsync prints them on stdout, problems and the summary on stderr."""

from __future__ import annotations

from collections.abc import Callable

from rdc.errors import ExitCode, RdcError, printable
from rdc.model.sync import SyncReport
from rdc.progress import Event, ItemChanged
from rdc.records import dataclass
from rdc.report.sizes import counted, exact_text, size_text
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["SyncTerminal", "TerminalStyle", "item_line", "name_line", "stats_block", "summary_line"]


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """Selects what is shown of a sync."""

    names: bool = False
    """-v: the name of each changed entry."""
    itemize: bool = False
    """-i: rsync's 11-character code and the name of each changed entry."""
    stats: bool = False
    human: bool = False
    """-h: rounded sizes in the statistics instead of exact ones."""
    quiet: bool = False
    """Errors only."""
    dry_run: bool = False
    progress: bool = False
    """--progress: always shown, as lines where no bar can be drawn."""


class SyncTerminal:
    """A Reporter for terminals. A bar is shown only if stderr is a terminal and no names are listed on it."""

    def __init__(
        self,
        style: TerminalStyle,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: ProgressBar | ProgressLines | None = None,
    ) -> None:
        """`data` writes whole lines to stdout, `talk` to stderr."""
        self._style = style
        self._data = data
        self._talk = talk
        self._trouble = Trouble(talk, bar, quiet=style.quiet)

    def start(self) -> None:
        """Prints nothing before the first event."""

    def __call__(self, event: Event, /) -> None:
        self._trouble(event)
        if isinstance(event, ItemChanged):
            self._item(event)

    def finish(self, report: SyncReport) -> None:
        self.close()
        if self._style.quiet:
            return
        if self._style.stats:
            self._data(stats_block(report, human=self._style.human))
        self._talk(summary_line(report, dry_run=self._style.dry_run) + "\n")

    def fail(self, error: RdcError) -> None:
        """Only removes the bar: the command line prints the error in the same way for every command."""
        self.close()

    def close(self) -> None:
        self._trouble.close()

    def _item(self, event: ItemChanged) -> None:
        if self._style.quiet:
            return
        if self._style.itemize:
            self._data(item_line(event) + "\n")
        elif self._style.names and (line := name_line(event)) is not None:
            self._data(line + "\n")


def item_line(event: ItemChanged) -> str:
    """rsync's `%i %n%L`: change code, name, and ` -> target` of a symlink, ` => name` of a hard link."""
    return f"{event.change} {_name(event)}"


def name_line(event: ItemChanged) -> str | None:
    """The line of -v. None for a file whose metadata alone changed: as in rsync, only -i shows it."""
    if event.change.startswith("*deleting"):
        return f"deleting {_name(event)}"
    if event.change[:1] == "." and event.change[1:2] != "d":
        return None
    return _name(event)


def _name(event: ItemChanged) -> str:
    if event.target is None:
        return printable(event.path)
    arrow = "=>" if event.change[:1] == "h" else "->"
    return f"{printable(event.path)} {arrow} {printable(event.target)}"


def summary_line(report: SyncReport, *, dry_run: bool = False) -> str:
    """The last line of a run: bytes and round trips, savings, and whether it was complete."""
    line = (
        f"sent {size_text(report.bytes_sent)}, received {size_text(report.bytes_received)}, "
        f"reused {size_text(report.reused_bytes)} in {counted(report.round_trips, 'round trip')}"
    )
    if dry_run:
        line += " (dry run: nothing was changed)"
    if report.exit is not ExitCode.OK:
        trouble = counted(report.errors, "problem") if report.errors else "stopped early"
        line += f"; {trouble}, exit code {int(report.exit)}"
    return line


def stats_block(report: SyncReport, *, human: bool) -> str:
    """The lines of --stats, each `label: value`, then the bytes of each kind of message, largest first."""
    size = size_text if human else exact_text
    rows = [
        ("Files in the source", f"{report.files:,}"),
        ("Their size", size(report.total_bytes)),
        ("Entries changed", f"{report.changed:,}"),
        ("Entries deleted", f"{report.deleted:,}"),
        ("Content sent as is", size(report.literal_bytes)),
        ("Content reused", size(report.reused_bytes)),
        ("Bytes sent", size(report.bytes_sent)),
        ("Bytes received", size(report.bytes_received)),
        ("Round trips", f"{report.round_trips:,}"),
    ]
    lines = [f"{label + ':':<22}{value}" for label, value in rows]
    if report.by_kind:
        lines.append("Bytes both ways:")
        for purpose, total in report.by_purpose.items():
            lines.append(f"  {purpose.value + ':':<20}{size(total)}")
            for cost in sorted(report.by_kind, key=lambda cost: (-cost.bytes, cost.name)):
                if cost.purpose is purpose:
                    lines.append(f"    {printable(cost.name) + ':':<18}{size(cost.bytes)} in {cost.count:,}")
    return "\n".join(lines) + "\n"
