"""An output of `rdc sync` that also writes a log file."""

from __future__ import annotations

import contextlib

from rdc.errors import RdcError
from rdc.progress import Reporter
from rdc.records import dataclass
from rdc.report.log_file import LogFile
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync import SyncReport
    from rdc.progress import Event
    from rdc.report.out_format import Copy, OutFormat

__all__ = ["LogChoice", "LoggedOutput", "SyncOutput"]


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
        self._log.begin()
        self._output.start()

    def __call__(self, event: Event, /) -> None:
        self._log(event)

    def finish(self, report: SyncReport) -> None:
        self._log.end(report)
        self._output.finish(report)

    def fail(self, error: RdcError) -> None:
        with contextlib.suppress(RdcError):  # the log may be what failed
            self._log.fail(error)
        self._output.fail(error)

    def close(self) -> None:
        self._log.close()
        self._output.close()
