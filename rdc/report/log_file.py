"""A log of a sync in a file, one line for each change and problem, as rsync's --log-file has it."""

from __future__ import annotations

import os
import stat
import time

from rdc.errors import ExitCode, RdcError, UsageError, one_line, printable
from rdc.files.own.opened_path import OpenedPath
from rdc.progress import ItemChanged, Problem, Reporter
from rdc.records import dataclass
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.model.sync_report import SyncReport
    from rdc.progress import Event
    from rdc.report.out_format import Copy, OutFormat

__all__ = ["LogChoice", "LogFile", "LoggedOutput", "SyncOutput"]

_FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class LogFile:
    """A Reporter that appends to a file. Each line is one write, so two runs never share a line.

    A line that cannot be written is lost, such as on a full disk, and the run goes on: that is told once.
    """

    def __init__(self, path: str, format_: OutFormat | None, copy: Copy, *, report: Callable[[Event], None]):
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
        try:
            # O_NONBLOCK: a fifo without a reader must not block the run.
            with OpenedPath(os.fsencode(path), last=False) as opened:
                self._fd = os.open(opened.name, _FLAGS, 0o600, dir_fd=opened.directory)
        except OSError as error:
            raise RdcError(f"{path}: cannot open the log: {error.strerror}", code=ExitCode.FILE_IO) from error
        if not stat.S_ISREG(os.fstat(self._fd).st_mode):
            os.close(self._fd)
            raise UsageError(f"{path}: a log goes to a regular file, and this is none")

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, ItemChanged) and self._format is not None:
            self.write(self._format.line(event, self._copy))
        elif isinstance(event, Problem):
            self.write(f"rdc: {one_line(event.message)}")
        self._report(event)

    def begin(self) -> None:
        """Logs that the run begins."""
        self.write("comparing the two sides")

    def end(self, report: SyncReport) -> None:
        """Logs the totals."""
        self.write(
            f"sent {report.bytes_sent} bytes  received {report.bytes_received} bytes"
            f"  total size {report.total_bytes}"
        )

    def fail(self, error: RdcError) -> None:
        """Logs the error that ends the run."""
        self.write(f"rdc: {error} (exit code {int(error.code)})")

    def write(self, text: str) -> None:
        """Appends one line."""
        missing = f"{self._lost:,} lines before this one are lost"
        if self._lost and not self._append(missing):
            self._lost += 1
        else:
            self._lost = int(not self._append(text))

    def _append(self, text: str) -> bool:
        """Whether the line was written."""
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


class SyncOutput(Reporter, Protocol):
    """What shows a sync: on a terminal, or as JSON."""

    def start(self) -> None: ...
    def finish(self, report: SyncReport) -> None: ...
    def fail(self, error: RdcError) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class LogChoice:
    """A log file, and the format of its lines about changes; None: it has none."""

    path: str
    format: OutFormat | None
    copy: Copy


class LoggedOutput:
    """Passes everything to another output, after it was logged."""

    def __init__(self, output: SyncOutput, choice: LogChoice) -> None:
        """Opens the log. Raises as LogFile does."""
        self._output = output
        self._log = LogFile(choice.path, choice.format, choice.copy, report=output)

    def start(self) -> None:
        self._output.start()
        self._log.begin()

    def __call__(self, event: Event, /) -> None:
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
