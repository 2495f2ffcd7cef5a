"""A removal of duplicates as text: set by set on stdout, problems and the summary on stderr."""

from __future__ import annotations

from rdc.errors import ExitCode, printable
from rdc.model.instances import Action, Instance
from rdc.report.dedupe_terminal import perhaps_text
from rdc.report.sizes import counted, size_text
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.duplicates.run_totals import DedupeEvent
    from rdc.errors import RdcError
    from rdc.model.instances import DedupeReport
    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["RemovalTerminal", "removal_line", "removal_summary"]

_OF_A_SET = (Action.DELETE, Action.MOVE, Action.SYMLINK)


class RemovalTerminal:
    """Receives the events of one run. `data` writes whole lines to stdout, `talk` to stderr."""

    def __init__(
        self,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: ProgressBar | ProgressLines | None = None,
        *,
        dry_run: bool,
        quiet: bool,
    ) -> None:
        self._data = data
        self._talk = talk
        self._dry_run = dry_run
        self._moves = False
        self._quiet = quiet
        self._trouble = Trouble(talk, bar, quiet=quiet)
        self._original: bytes | None = None

    def start(self) -> None:
        """Prints nothing before the first event."""

    def __call__(self, event: DedupeEvent, /) -> None:
        if not isinstance(event, Instance):
            self._trouble(event)
        elif not self._quiet:
            if event.action in _OF_A_SET and event.source != self._original:
                blank = "" if self._original is None else "\n"
                self._original = event.source
                self._moves = event.action is Action.MOVE
                self._data(f"{blank}keep     {printable(event.source)}\n")
            self._data(removal_line(event) + "\n")

    def finish(self, report: DedupeReport, journal: bytes | None) -> None:
        self.close()
        if self._quiet:
            return
        self._talk(removal_summary(report, dry_run=self._dry_run, moves=self._moves) + "\n")
        if journal is not None:
            self._talk(f"to undo it: rdc dedupe --undo {printable(journal)}\n")

    def fail(self, error: RdcError) -> None:
        """Only removes the bar: the command line prints the error in the same way for every command."""
        self.close()

    def close(self) -> None:
        self._trouble.close()


def removal_line(instance: Instance) -> str:
    """`move     a/copy to there/a/copy: 1.2 MB`."""
    line = f"{instance.action.value:<8} {printable(instance.path)}"
    if instance.destination:
        line += f" to {printable(instance.destination)}"
    elif instance.action is Action.RESTORE:
        line += f" as {printable(instance.source)}"
    if instance.won or instance.perhaps:
        line += f": {size_text(instance.won)}"
    return line + perhaps_text(instance)


def removal_summary(report: DedupeReport, *, dry_run: bool, moves: bool) -> str:
    """The last line of a run: files and bytes that go, or that a dry run would take."""
    line = f"{counted(report.files, 'file')} in {counted(report.groups, 'set')}: {size_text(report.won)}"
    if moves:
        line += " to move" if dry_run else " moved"
    else:
        line += " to free" if dry_run else " freed"
        line += perhaps_text(report)
    if report.skipped:
        line += f"; {counted(report.skipped, 'file')} left alone"
    if report.errors:
        line += f"; {counted(report.errors, 'problem')}"
    if dry_run:
        line += " (dry run: nothing was changed; --apply acts)"
    return line + (f"; exit code {int(report.exit)}" if report.exit is not ExitCode.OK else "")
