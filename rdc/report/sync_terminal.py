"""A sync as text: on a terminal, in lines of a format that the user chose, and in a log file.

On a terminal, names as rsync prints them go to stdout, problems and the summary to stderr. Formats have
rsync's %-escapes (rsyncd.conf(5)); the log is that of rsync's --log-file.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable

from rdc.errors import ExitCode, RdcError, UsageError, one_line, printable
from rdc.lean.records import Record
from rdc.model.runs import SyncReport
from rdc.progress import ItemChanged, Problem
from rdc.report.output import (
    Bar,
    Output,
    TerminalOutput,
    binary_text,
    counted,
    elapsed_text,
    exact_text,
    size_text,
)

TYPE_CHECKING = False


FORMAT_CHARACTERS = 4096
"""The longest format: longer than any line that a person reads."""

WIDTH_DIGITS = 3
"""Digits of the longest minimum width."""

DEFAULT_LOG_FORMAT = "%i %n%L"

_ESCAPE = rf"%('{{0,3}})(-?\d{{0,{WIDTH_DIGITS}}})(.?)"

_OF_ENTRY = frozenset("lMBUG")
"""Escapes that need the entry itself, on this machine."""


class Copy(Record):
    """The entries of one sync, as this machine can see them."""

    operation: str
    """rsync's word for a changed entry: "send", or "recv" where the source is far away."""
    top: bytes
    """The directory on this machine that the paths of the events are relative to."""

    def look(self, path: bytes) -> os.stat_result | None:
        """Return the entry at a path of an event; None if there is none, for example after it was deleted."""
        try:
            return os.lstat(os.path.join(self.top, path))
        except (OSError, ValueError):
            return None


class OutFormat(Record):
    """A parsed format."""

    parts: tuple[tuple[str, int, str], ...]
    """Texts and escapes in turn: (text, 0, "") or (quotes, minimum width, letter); a width below 0 pads on
    the right."""

    def has(self, letters: str) -> bool:
        """Return whether one of these escapes occurs."""
        return any(letter and letter in letters for _, _, letter in self.parts)

    @property
    def looks(self) -> bool:
        """Return whether lines need the entries themselves."""
        return self.has("".join(_OF_ENTRY))

    def line(self, event: ItemChanged, copy: Copy) -> str:
        """Return the line about one change, without its end."""
        found = copy.look(event.path_bytes) if self.looks else None
        return "".join(
            _padded(_value(letter, len(text), event, copy, found), width) if letter else text
            for text, width, letter in self.parts
        )


def parse_format(text: str) -> OutFormat:
    """Parse a format. Raises ValueError, which names an unknown escape."""
    if len(text) > FORMAT_CHARACTERS:
        raise ValueError(f"{len(text)} characters, the limit is {FORMAT_CHARACTERS}")
    import re  # a sync without a format needs none

    parts: list[tuple[str, int, str]] = []
    at = 0
    for match in re.finditer(_ESCAPE, text, re.DOTALL | re.ASCII):
        parts.append((printable_text(text[at : match.start()]), 0, ""))
        quotes, width, letter = match.groups()
        at = match.end()
        if letter == "%" and not quotes and not width:
            parts.append(("%", 0, ""))
        elif letter in _VALUES:
            parts.append((quotes, int(width) if width.strip("-") else 0, letter))
        else:
            known = " ".join(f"%{one}" for one in (*_VALUES, "%"))
            raise ValueError(f"rdc does not know the escape {printable(match[0])}; it knows {known}")
    parts.append((printable_text(text[at:]), 0, ""))
    return OutFormat(tuple(part for part in parts if part[0] or part[2]))


def printable_text(text: str) -> str:
    """Return `text` of a format with control characters escaped. A backslash stays: it is no name."""
    return printable(text).replace("\\\\", "\\")


def grouped(count: int, level: int) -> str:
    """Return `count` by rsync's levels: 0 digits, 1 with separators, 2 in units of 1000, 3 in units of
    1024."""
    unit = 1024 if level >= 3 else 1000
    if level < 2 or count < unit:
        return f"{count:,}" if level else str(count)
    value = float(count)
    for letter in "KMGTP":
        value /= unit
        if value < unit or letter == "P":
            break
    return f"{value:.2f}{letter}"


def _arrow(event: ItemChanged) -> str:
    if event.target_bytes is None:
        return ""
    return f" {'=>' if event.change[:1] == 'h' else '->'} {printable(event.target_bytes)}"


def _value(letter: str, level: int, event: ItemChanged, copy: Copy, found: os.stat_result | None) -> str:
    if letter == "l":
        return grouped(0 if found is None else found.st_size, level)
    return _VALUES[letter](event, copy, found)


def _padded(text: str, width: int) -> str:
    return text.rjust(width) if width > 0 else text.ljust(-width)


def _deletes(event: ItemChanged) -> bool:
    return event.change.startswith("*deleting")


def _path_here(event: ItemChanged, copy: Copy) -> bytes:
    """Return where the entry is, without a leading slash as in rsync."""
    if _deletes(event):
        return event.path_bytes
    return os.path.normpath(os.path.join(copy.top, event.path_bytes)).lstrip(b"/")


def _moment(seconds: float, pattern: str) -> str:
    try:
        return time.strftime(pattern, time.localtime(seconds))
    except (ValueError, OverflowError, OSError):
        return str(int(seconds))


_VALUES: dict[str, Callable[[ItemChanged, Copy, os.stat_result | None], str]] = {
    "i": lambda event, copy, found: event.change,
    "n": lambda event, copy, found: printable(event.path_bytes),
    "L": lambda event, copy, found: _arrow(event),
    "f": lambda event, copy, found: printable(_path_here(event, copy)),
    "o": lambda event, copy, found: "del." if _deletes(event) else copy.operation,
    "l": lambda event, copy, found: str(0 if found is None else found.st_size),
    "M": lambda event, copy, found: _moment(0 if found is None else found.st_mtime, "%Y/%m/%d-%H:%M:%S"),
    "B": lambda event, copy, found: stat.filemode(0 if found is None else found.st_mode)[1:],
    "U": lambda event, copy, found: str(0 if found is None else found.st_uid),
    "G": lambda event, copy, found: str(0 if found is None else found.st_gid),
    "p": lambda event, copy, found: str(os.getpid()),
    "t": lambda event, copy, found: _moment(time.time(), "%Y/%m/%d %H:%M:%S"),
}


_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LogFile:
    """A Reporter that appends to a file. Each line is one write, so two runs never share a line.

    A line that cannot be written is lost, such as on a full disk, and the run goes on: that is told once.
    """

    def __init__(self, path: str, format_: OutFormat | None, copy: Copy, *, report: Callable[[object], None]):
        """`format_`: of changed entries; None: they are not logged. `report`: takes each event after it was
        logged. Raises UsageError if `path` is no regular file, RdcError if it cannot be opened."""
        self._path = path
        self._format = format_
        self._copy = copy
        self._report = report
        self._lost = 0
        """Lines since the last one that was written."""
        self._told = self._torn = False
        """The user knows that lines are lost; the last one was written in part."""
        from rdc.files.own.output_file import OpenedPath

        try:
            # O_NONBLOCK: a fifo without a reader must not block the run.
            with OpenedPath(os.fsencode(path), last=False) as opened:
                self._fd = os.open(opened.name, _FLAGS, 0o600, dir_fd=opened.directory)
        except OSError as error:
            raise RdcError(f"{path}: cannot open the log: {error.strerror}", code=ExitCode.FILE_IO) from error
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise UsageError(f"{path}: a log goes to a regular file, and this is none")

    def __call__(self, event: object, /) -> None:
        if isinstance(event, ItemChanged) and self._format is not None:
            self.write(self._format.line(event, self._copy))
        elif isinstance(event, Problem):
            self.write(f"rdc: {one_line(event.message)}")
        self._report(event)

    def begin(self) -> None:
        """Log that the run begins."""
        self.write("comparing the two sides")

    def end(self, report: SyncReport) -> None:
        """Log the totals."""
        self.write(
            f"sent {report.bytes_sent} bytes  received {report.bytes_received} bytes"
            f"  total size {report.total_bytes}"
        )

    def fail(self, error: RdcError) -> None:
        """Log the error that ends the run."""
        self.write(f"rdc: {error} (exit code {int(error.code)})")

    def write(self, text: str) -> None:
        """Append one line."""
        missing = f"{self._lost:,} lines before this one are lost"
        if self._lost and not self._append(missing):
            self._lost += 1
        else:
            self._lost = int(not self._append(text))

    def _append(self, text: str) -> bool:
        """Return whether the line was written."""
        moment = time.strftime("%Y/%m/%d %H:%M:%S")
        line = f"{moment} [{os.getpid()}] {text}\n".encode(errors="backslashreplace")
        try:
            written = os.write(self._fd, b"\n" * self._torn + line) - self._torn
            self._torn = 0 <= written < len(line)
            reason = "no space for a whole line" if self._torn else None
        except OSError as error:
            reason = error.strerror
        if reason is not None and not self._told:
            self._told = True
            told = f"{printable(self._path)}: cannot log: {reason}; some lines are lost, the run continues"
            self._report(Problem(ExitCode.OK, b"", told))
        return reason is None

    def close(self) -> None:
        os.close(self._fd)


class LogChoice(Record):
    """A log file, and the format of its lines about changes; None: it has none."""

    path: str
    format: OutFormat | None
    copy: Copy


class LoggedOutput(Output):
    """Passes everything to another output, after it was logged."""

    def __init__(self, output: Output, choice: LogChoice) -> None:
        """Open the log. Raises as LogFile does."""
        self._output = output
        self._log = LogFile(choice.path, choice.format, choice.copy, report=output)

    def start(self) -> None:
        self._output.start()
        self._log.begin()

    def __call__(self, event: object, /) -> None:
        self._log(event)

    def finish(self, report: SyncReport) -> None:
        self._log.end(report)
        self._output.finish(report)

    def fail(self, error: RdcError) -> None:
        self._log.fail(error)
        self._output.fail(error)

    def close(self) -> None:
        self._log.close()
        self._output.close()


# A sync as text: names as rsync prints them on stdout, problems and the summary on stderr.


class TerminalStyle(Record):
    """Selects what is shown of a sync."""

    names: bool = False
    """-v: the name of each changed entry."""
    itemize: bool = False
    """-i: rsync's 11-character code and the name of each changed entry."""
    stats: bool = False
    level: int = 1
    """The form of sizes in the statistics: 0 as digits, 1 exactly, 2 in units of 1000, 3 of 1024."""
    quiet: bool = False
    """Errors only."""
    dry_run: bool = False
    carried: str = "sent"
    """The verb for content: it is "copied" on this machine, "sent" from it, "received", or "transferred"
    between two others."""
    asked: bool = False
    """An option asked for more than errors, so that the last line comes without a terminal, too."""
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
    """The subject of `format`. Not None if `format` is not."""

    @property
    def local(self) -> bool:
        """Return whether both sides are this machine, so that nothing is sent or received."""
        return self.carried == "copied"

    @property
    def lists(self) -> bool:
        """Return whether changed entries are listed."""
        listing = self.names or self.itemize or self.deletions or self.format is not None
        return listing and not self.quiet


class SyncTerminal(TerminalOutput):
    """Names on stdout, problems, a bar and the last line on stderr.

    A run that nobody sees and that has nothing to report prints no last line: cron would mail it.
    """

    def __init__(
        self,
        style: TerminalStyle,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: Bar | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        unseen: bool = False,
    ) -> None:
        """Take `data`, which writes whole lines to stdout, and `talk`, which writes them to stderr. `clock`
        returns seconds. `unseen`: neither stdout nor stderr is a terminal."""
        super().__init__(
            talk if style.on_stderr else data,
            talk,
            bar,
            quiet=style.quiet,
            unseen=unseen and not style.asked,
            dials=not style.local,
        )
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
        if self._style.summary and not self._is_silent(report.exit):
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
    """Return the line of -v. None for a file whose metadata alone changed, unless `metadata`: as in rsync, -v
    does not show it, and -vv does."""
    if event.change.startswith("*deleting"):
        return f"deleting {_name(event)}"
    if is_unchanged(event):
        return None if event.change[1:2] == "d" else f"{printable(event.path_bytes)} is uptodate"
    if not metadata and event.change[:1] == "." and event.change[1:2] != "d":
        return None
    return _name(event)


def _name(event: ItemChanged) -> str:
    if event.target_bytes is None:
        return printable(event.path_bytes)
    arrow = "=>" if event.change[:1] == "h" else "->"
    return f"{printable(event.path_bytes)} {arrow} {printable(event.target_bytes)}"


def summary_line(report: SyncReport, style: TerminalStyle, seconds: float) -> str:
    """Return the last line of a run: entries, bytes and time, and whether it was complete."""
    dry = "dry run, nothing was changed: " if style.dry_run else ""
    parts = [f"{dry}{_entries_text(report)}"]
    took = f"in {elapsed_text(seconds)}"
    if content := _bytes_text(report, style):
        parts.append(f"{content} {took}")
    else:
        parts[0] += f" {took}"
    if report.exit is not ExitCode.OK:
        trouble = counted(report.errors, "problem") if report.errors else "stopped early"
        parts.append(f"{trouble}, exit code {int(report.exit)}")
    return "; ".join(parts)


def _entries_text(report: SyncReport) -> str:
    """`12 new, 3 updated, 1 deleted, 40,112 unchanged`."""
    counts = (
        (report.created, "new"),
        (report.updated, "updated"),
        (report.moved, "moved"),
        (report.deleted, "deleted"),
    )
    found = [f"{count:,} {word}" for count, word in counts if count]
    if not found or report.unchanged:
        found.append(f"{report.unchanged:,} unchanged")
    return ", ".join(found)


LEAST_FACTOR = 2
"""The smallest factor between content and bytes on the line that is told."""


def _bytes_text(report: SyncReport, style: TerminalStyle) -> str:
    """`sent 8.0 MB of 1.2 GB (150x less)`: all bytes on the line, both ways, or those copied on this machine;
    and the size of the new, updated and moved files. "": nothing was copied on this machine."""
    done = report.literal_bytes if style.local else report.bytes_sent + report.bytes_received
    content = report.content_bytes
    if style.local and not content:
        return ""
    text = f"{style.carried} {size_text(done)}"
    if content:
        text += f" of {size_text(content)}"
        if 0 < done * LEAST_FACTOR <= content:
            text += f" ({content // done:,}x less)"
    return text


def stats_block(report: SyncReport, *, level: int) -> str:
    """Return the lines of --stats, each `label: value`, then the bytes of each kind of message, largest
    first."""
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
