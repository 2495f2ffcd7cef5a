"""Lines about changed entries in a format that the user chose, with rsync's %-escapes (rsyncd.conf(5)), and
the log of a sync in a file, as rsync's --log-file has it."""

from __future__ import annotations

import os
import stat
import time

from rdc.errors import ExitCode, RdcError, UsageError, one_line, printable
from rdc.lean.records import dataclass
from rdc.progress import ItemChanged, Problem
from rdc.report.output import ForwardedOutput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.runs import SyncReport
    from rdc.report.output import Output

__all__ = [
    "DEFAULT_LOG_FORMAT",
    "FORMAT_CHARACTERS",
    "Copy",
    "LogChoice",
    "LogFile",
    "LoggedOutput",
    "OutFormat",
    "grouped",
    "parse_format",
]

FORMAT_CHARACTERS = 4096
"""The longest format: longer than any line that a person reads."""

WIDTH_DIGITS = 3
"""Digits of the longest minimum width."""

DEFAULT_LOG_FORMAT = "%i %n%L"

_ESCAPE = rf"%('{{0,3}})(-?\d{{0,{WIDTH_DIGITS}}})(.?)"

_OF_ENTRY = frozenset("lMBUG")
"""Escapes that need the entry itself, on this machine."""


@dataclass(frozen=True, slots=True)
class Copy:
    """The entries of one sync, as this machine can see them."""

    operation: str
    """rsync's word for a changed entry: "send", or "recv" where the source is far away."""
    top: bytes
    """The directory on this machine that the paths of the events are relative to."""

    def look(self, path: bytes) -> os.stat_result | None:
        """The entry at a path of an event; None if there is none, for example after it was deleted."""
        try:
            return os.lstat(os.path.join(self.top, path))
        except (OSError, ValueError):
            return None


@dataclass(frozen=True, slots=True)
class OutFormat:
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
        """The line about one change, without its end."""
        found = copy.look(event.path) if self.looks else None
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
    """`text` of a format with control characters escaped. A backslash stays: it is no name."""
    return printable(text).replace("\\\\", "\\")


def grouped(count: int, level: int) -> str:
    """`count` by rsync's levels: 0 digits, 1 with separators, 2 in units of 1000, 3 in units of 1024."""
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
    if event.target is None:
        return ""
    return f" {'=>' if event.change[:1] == 'h' else '->'} {printable(event.target)}"


def _value(letter: str, level: int, event: ItemChanged, copy: Copy, found: os.stat_result | None) -> str:
    if letter == "l":
        return grouped(0 if found is None else found.st_size, level)
    return _VALUES[letter](event, copy, found)


def _padded(text: str, width: int) -> str:
    return text.rjust(width) if width > 0 else text.ljust(-width)


def _deletes(event: ItemChanged) -> bool:
    return event.change.startswith("*deleting")


def _path_here(event: ItemChanged, copy: Copy) -> bytes:
    """Where the entry is, without a leading slash as in rsync."""
    if _deletes(event):
        return event.path
    return os.path.normpath(os.path.join(copy.top, event.path)).lstrip(b"/")


def _moment(seconds: float, pattern: str) -> str:
    try:
        return time.strftime(pattern, time.localtime(seconds))
    except (ValueError, OverflowError, OSError):
        return str(int(seconds))


_VALUES: dict[str, Callable[[ItemChanged, Copy, os.stat_result | None], str]] = {
    "i": lambda event, copy, found: event.change,
    "n": lambda event, copy, found: printable(event.path),
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
        from rdc.files.own.opened_path import OpenedPath

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
            told = (
                f"{printable(self._path)}: cannot log: {reason}; the run goes on, lines of its log are lost"
            )
            self._report(Problem(ExitCode.OK, b"", told))
        return reason is None

    def close(self) -> None:
        os.close(self._fd)


@dataclass(frozen=True, slots=True)
class LogChoice:
    """A log file, and the format of its lines about changes; None: it has none."""

    path: str
    format: OutFormat | None
    copy: Copy


class LoggedOutput(ForwardedOutput):
    """Passes everything to another output, after it was logged."""

    def __init__(self, output: Output, choice: LogChoice) -> None:
        """Open the log. Raises as LogFile does."""
        super().__init__(output)
        self._log = LogFile(choice.path, choice.format, choice.copy, report=output)

    def start(self) -> None:
        super().start()
        self._log.begin()

    def __call__(self, event: object, /) -> None:
        self._log(event)

    def finish(self, report: SyncReport) -> None:
        self._log.end(report)
        super().finish(report)

    def fail(self, error: RdcError) -> None:
        self._log.fail(error)
        super().fail(error)

    def close(self) -> None:
        self._log.close()
        super().close()
