"""A sync as text: names as rsync prints them on stdout, problems and the summary on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable

from rdc.errors import ExitCode, printable
from rdc.lean.records import dataclass
from rdc.model.runs import SyncReport
from rdc.progress import ItemChanged
from rdc.report.output import TerminalOutput
from rdc.report.text import binary_text, counted, elapsed_text, exact_text, rate_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.output import Bar
    from rdc.report.sync_log import Copy, OutFormat

__all__ = ["SyncTerminal", "TerminalStyle", "item_line", "name_line", "stats_block", "summary_line"]


@dataclass(frozen=True, slots=True)
class TerminalStyle:
    """Selects what is shown of a sync."""

    names: bool = False
    """-v: the name of each changed entry."""
    itemize: bool = False
    """-i: rsync's 11-character code and the name of each changed entry."""
    stats: bool = False
    level: int = 1
    """How sizes are shown in the statistics: 0 as digits, 1 exactly, 2 in units of 1000, 3 of 1024."""
    quiet: bool = False
    """Errors only."""
    dry_run: bool = False
    local: bool = False
    """Both sides are this machine, so nothing is sent or received."""
    progress: bool = False
    """--progress: always shown, as lines where no bar can be drawn."""
    unchanged: bool = False
    """-vv or -ii: unchanged entries are named, too."""
    deletions: bool = False
    """--info=del: deleted entries are named."""
    summary: bool = True
    """The last line."""
    on_stderr: bool = False
    """--stderr=all: names go to stderr."""
    format: OutFormat | None = None
    """--out-format: of the lines about changes."""
    copy: Copy | None = None
    """What `format` is about. Not None if `format` is not."""

    @property
    def lists(self) -> bool:
        """Return whether changed entries are listed."""
        listing = self.names or self.itemize or self.deletions or self.format is not None
        return listing and not self.quiet


class SyncTerminal(TerminalOutput):
    """A bar is shown only if stderr is a terminal and no names are listed on it."""

    def __init__(
        self,
        style: TerminalStyle,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: Bar | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`data` writes whole lines to stdout, `talk` to stderr. `clock` returns seconds."""
        super().__init__(talk if style.on_stderr else data, talk, bar, quiet=style.quiet)
        self._style = style
        self._clock = clock
        self._began = clock()

    def __call__(self, event: object, /) -> None:
        super().__call__(event)
        if isinstance(event, ItemChanged):
            self._item(event)

    def finish(self, report: SyncReport) -> None:
        self.close()
        if self._style.quiet:
            return
        if self._style.stats:
            self._data(stats_block(report, level=self._style.level))
        if self._style.summary:
            self._talk(summary_line(report, self._style, self._clock() - self._began) + "\n")

    def _item(self, event: ItemChanged) -> None:
        if self._style.quiet:
            return
        style, deleting = self._style, event.change.startswith("*deleting")
        line: str | None = None
        if style.format is not None and style.copy is not None:
            coded = style.format.has("io" if deleting else "i")
            shown = coded or (not deleting and not is_unchanged(event) and self._named(event))
            line = style.format.line(event, style.copy) if shown else name_line(event) if deleting else None
        elif style.itemize:
            line = item_line(event)
        elif style.names or (style.deletions and deleting):
            line = self._named(event)
        if line is not None:
            self._data(line + "\n")

    def _named(self, event: ItemChanged) -> str | None:
        return name_line(event, metadata=self._style.unchanged)


def item_line(event: ItemChanged) -> str:
    """rsync's `%i %n%L`: change code, name, and ` -> target` of a symlink, ` => name` of a hard link."""
    return f"{event.change} {_name(event)}"


def is_unchanged(event: ItemChanged) -> bool:
    """Return whether the event is about an entry that nothing happened to."""
    return event.change[2:].isspace() and event.change[:1] == "."


def name_line(event: ItemChanged, *, metadata: bool = False) -> str | None:
    """The line of -v. None for a file whose metadata alone changed, unless `metadata`: as in rsync, -v does
    not show it, and -vv does."""
    if event.change.startswith("*deleting"):
        return f"deleting {_name(event)}"
    if is_unchanged(event):
        return None if event.change[1:2] == "d" else f"{printable(event.path)} is uptodate"
    if not metadata and event.change[:1] == "." and event.change[1:2] != "d":
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


def stats_block(report: SyncReport, *, level: int) -> str:
    """The lines of --stats, each `label: value`, then the bytes of each kind of message, largest first."""
    size = (str, exact_text, size_text, binary_text)[level]
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
