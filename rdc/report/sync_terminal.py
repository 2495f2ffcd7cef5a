"""A sync as text: names as rsync prints them on stdout, problems and the summary on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable

from rdc.errors import ExitCode, RdcError, printable
from rdc.model.sync import SyncReport
from rdc.progress import Event, ItemChanged
from rdc.records import dataclass
from rdc.report.sizes import counted, elapsed_text, exact_text, rate_text, size_text
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
    local: bool = False
    """Both sides are this machine, so nothing is sent or received."""
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`data` writes whole lines to stdout, `talk` to stderr. `clock` returns seconds."""
        self._style = style
        self._clock = clock
        self._began = clock()
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
        self._talk(summary_line(report, self._style, self._clock() - self._began) + "\n")

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


def summary_line(report: SyncReport, style: TerminalStyle, seconds: float) -> str:
    """The last line of a run: entries, bytes, time and rate, and whether it was complete."""
    parts = [_entries_text(report, dry_run=style.dry_run), _bytes_text(report, style, seconds)]
    if report.exit is not ExitCode.OK:
        trouble = counted(report.errors, "problem") if report.errors else "stopped early"
        parts.append(f"{trouble}, exit code {int(report.exit)}")
    return "; ".join(parts)


def _entries_text(report: SyncReport, *, dry_run: bool) -> str:
    """`3 entries changed, 500 deleted, 2 moved`; in a dry run `3 entries to change, 500 to delete`."""
    words = ("to change", "to delete", "to move") if dry_run else ("changed", "deleted", "moved")
    counts = (report.changed - report.moved, report.deleted, report.moved)
    found = [(count, word) for count, word in zip(counts, words, strict=True) if count]
    if not found:
        return "nothing to change" if dry_run else "nothing changed"
    first, *others = found
    texts = [f"{counted(first[0], 'entry', 'entries')} {first[1]}"]
    return ", ".join(texts + [f"{count:,} {word}" for count, word in others])


def _bytes_text(report: SyncReport, style: TerminalStyle, seconds: float) -> str:
    """`sent 48.0 KB, received 1.2 KB, reused 1.2 GB in 4 round trips, 2.0 s, 24.6 KB/s`. The rate is that of
    the line, or of the contents in a local run."""
    reused = f"reused {size_text(report.reused_bytes)}"
    if style.local and style.dry_run:
        return f"{elapsed_text(seconds)} (dry run: nothing was changed)"
    if style.local:
        done = report.literal_bytes + report.reused_bytes
        text = f"copied {size_text(report.literal_bytes)}, {reused} in {elapsed_text(seconds)}"
    else:
        done = report.bytes_sent + report.bytes_received
        text = (
            f"sent {size_text(report.bytes_sent)}, received {size_text(report.bytes_received)}, {reused} in "
            f"{counted(report.round_trips, 'round trip')}, {elapsed_text(seconds)}"
        )
    if done and seconds > 0:
        text += f", {rate_text(done, seconds)}"
    return text + (" (dry run: nothing was changed)" if style.dry_run else "")


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
