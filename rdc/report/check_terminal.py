"""A check as text: a line for each entry that differs on stdout, problems and the summary on stderr."""

from __future__ import annotations

import time
from collections.abc import Callable

from rdc.errors import ExitCode, RdcError, printable
from rdc.model.check import CheckReport, EntryDiffers
from rdc.progress import Event
from rdc.report.sizes import counted, elapsed_text, size_text
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["CheckTerminal", "difference_line"]

_WIDTH = 12


class CheckTerminal:
    """A Reporter for terminals."""

    def __init__(
        self,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: ProgressBar | ProgressLines | None = None,
        clock: Callable[[], float] = time.monotonic,
        *,
        quiet: bool = False,
        local: bool = False,
    ) -> None:
        """`data` writes whole lines to stdout, `talk` to stderr. `clock` returns seconds. `local`: both ends
        are this machine."""
        self._data = data
        self._talk = talk
        self._clock = clock
        self._began = clock()
        self._quiet = quiet
        self._local = local
        self._trouble = Trouble(talk, bar, quiet=quiet)

    def start(self) -> None:
        """Prints nothing before the first event."""

    def __call__(self, event: Event, /) -> None:
        self._trouble(event)

    def differs(self, found: EntryDiffers) -> None:
        if not self._quiet:
            self._data(difference_line(found) + "\n")

    def finish(self, report: CheckReport) -> None:
        self.close()
        if not self._quiet:
            self._talk(_summary(report, self._clock() - self._began, local=self._local) + "\n")

    def fail(self, error: RdcError) -> None:
        """Only removes the bar: the command line prints the error in the same way for every command."""
        self.close()

    def close(self) -> None:
        self._trouble.close()


def difference_line(found: EntryDiffers) -> str:
    """`content,time  docs/a.txt`: the aspects, then the path."""
    return f"{','.join(found.aspects.names):<{_WIDTH}}  {printable(found.path)}"


def _summary(report: CheckReport, seconds: float, *, local: bool) -> str:
    """`3 of 12 entries differ (1 missing, 1 extra); compared the content of 9 files, 1.2 MB; ...`."""
    total = counted(report.entries, "entry", "entries")
    if report.different:
        sides = [
            f"{count:,} {word}"
            for count, word in ((report.missing, "missing"), (report.extra, "extra"))
            if count
        ]
        head = f"{counted(report.different, 'difference')} in {total}" + (
            f" ({', '.join(sides)})" if sides else ""
        )
    else:
        head = f"no difference in {total}"
    read = f"compared the content of {counted(report.files_compared, 'file')}"
    if report.files_compared < report.files:
        share = 100 * report.bytes_compared / report.total_bytes if report.total_bytes else 0.0
        read += f" of {report.files:,}"
        size = f"{size_text(report.bytes_compared)} of {size_text(report.total_bytes)}, {share:.1f} %"
    else:
        size = size_text(report.bytes_compared)
    parts = [head, f"{read}, {size}"]
    took = elapsed_text(seconds)
    if not local:
        took = (
            f"sent {size_text(report.bytes_sent)}, received {size_text(report.bytes_received)}"
            f" in {counted(report.round_trips, 'round trip')}, {took}"
        )
    parts.append(took)
    if report.errors or report.exit not in (ExitCode.OK, ExitCode.DIFFERENT):
        parts.append(f"{counted(report.errors, 'problem')}, exit code {int(report.exit)}")
    return "; ".join(parts)
