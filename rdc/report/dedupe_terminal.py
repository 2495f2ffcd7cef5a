"""A deduplication as text: results on stdout, problems and the summary on stderr."""

from __future__ import annotations

import os
from collections.abc import Callable

from rdc.duplicates.run_totals import DedupeEvent
from rdc.errors import ExitCode, RdcError, printable
from rdc.model.instances import Action, DedupeReport, Instance
from rdc.records import dataclass, replace
from rdc.report.sizes import counted, size_text
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.progress_bar import ProgressBar
    from rdc.report.progress_lines import ProgressLines

__all__ = ["DedupeStyle", "DedupeTerminal", "instance_line", "perhaps_text", "summary_line"]

FOLDERS_SHOWN = 20
"""Folders that a dry run names, so that the sums fit on a screen."""

FOLDERS_COUNTED = 100_000
"""Folders that are summed up apart from each other, to bound memory."""

_BETWEEN = {
    Action.SHARE: "with",
    Action.LINK: "to",
    Action.SEPARATE: "from",
    Action.CLEAR: "which is",
    Action.RESTORE: "as",
    Action.DELETE: "which is",
    Action.MOVE: "which is",
    Action.SYMLINK: "to",
    Action.RETURN: "from",
}


@dataclass(frozen=True, slots=True)
class DedupeStyle:
    dry_run: bool
    undo: bool = False
    quiet: bool = False
    returned: bool = False
    """Whether removed duplicates come back, rather than links being separated."""
    folders: bool = False
    """Sums by folder in place of a line for each file."""


class DedupeTerminal:
    """Receives the events of one run. `data` writes whole lines to stdout, `talk` to stderr."""

    def __init__(
        self,
        style: DedupeStyle,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: ProgressBar | ProgressLines | None = None,
    ) -> None:
        self._style = style
        self._data = data
        self._talk = talk
        self._files_by_folder: dict[bytes, int] = {}
        self._bytes_by_folder: dict[bytes, int] = {}
        self._trouble = Trouble(talk, bar, quiet=style.quiet)

    def start(self) -> None:
        """Prints nothing before the first event."""

    def __call__(self, event: DedupeEvent, /) -> None:
        if isinstance(event, Instance):
            if event.action is Action.RETURN and not self._style.returned:
                self._style = replace(self._style, returned=True)
            if self._style.folders:
                self._add(event)
            elif not self._style.quiet:
                self._data(instance_line(event) + "\n")
        else:
            self._trouble(event)

    def finish(self, report: DedupeReport, journal: bytes | None) -> None:
        self.close()
        if self._style.quiet:
            return
        for line in self._folder_lines():
            self._data(line + "\n")
        self._talk(summary_line(report, self._style) + "\n")
        if journal is not None:
            self._talk(f"to undo it: rdc dedupe --undo {printable(journal)}\n")

    def _add(self, instance: Instance) -> None:
        folder = os.path.dirname(instance.path) or b"."
        if folder not in self._files_by_folder and len(self._files_by_folder) == FOLDERS_COUNTED:
            folder = b""
        won = instance.bytes if self._style.undo else instance.won
        self._files_by_folder[folder] = self._files_by_folder.get(folder, 0) + 1
        self._bytes_by_folder[folder] = self._bytes_by_folder.get(folder, 0) + won

    def _folder_lines(self) -> list[str]:
        """The folders with most to win, then the sum of the others: `   1.2 MB  3 files  a/b`."""
        sums = self._bytes_by_folder
        ranked = sorted((folder for folder in sums if folder), key=lambda folder: (-sums[folder], folder))
        rows = [
            (sums[folder], self._files_by_folder[folder], printable(folder) + "/")
            for folder in ranked[:FOLDERS_SHOWN]
        ]
        others = [*ranked[FOLDERS_SHOWN:], *(b"" for _ in range(b"" in sums))]
        if others:
            files = sum(self._files_by_folder[folder] for folder in others)
            rows.append((sum(sums[folder] for folder in others), files, "in other folders"))
        return [f"{size_text(won):>9}  {counted(files, 'file'):>12}  {name}" for won, files, name in rows]

    def fail(self, error: RdcError) -> None:
        """Only removes the bar: the command line prints the error in the same way for every command."""
        self.close()

    def close(self) -> None:
        self._trouble.close()


def instance_line(instance: Instance) -> str:
    """`share    a/copy with a/first: 1.2 MB`."""
    line = f"{instance.action.value:<8} {printable(instance.path)}"
    line += f" {_BETWEEN[instance.action]} {printable(instance.source)}"
    if instance.action in {Action.SEPARATE, Action.RETURN}:
        return line + f": {size_text(instance.bytes)}"
    if instance.won or instance.perhaps:
        line += f": {size_text(instance.won)}"
    return line + perhaps_text(instance)


def perhaps_text(found: Instance | DedupeReport) -> str:
    """What may become free beside what was won, and when."""
    line = f", {size_text(found.compressed)} of compressed content" if found.compressed else ""
    if found.held:
        line += f", {size_text(found.held)} more once what else shares them lets go"
    unsure = found.perhaps - found.compressed - found.held
    return line + (f", perhaps {size_text(unsure)} more" if unsure else "")


def summary_line(report: DedupeReport, style: DedupeStyle) -> str:
    """The last line of a run: bytes freed, or that a dry run would free."""
    files = counted(report.files, "file")
    if style.undo:
        line = f"{files} of {size_text(report.bytes)} "
        if style.returned:
            line += "to bring back" if style.dry_run else "brought back"
        else:
            line += "would be separate" if style.dry_run else "made separate"
    else:
        line = f"{files} in {counted(report.groups, 'group')}: {size_text(report.won)}"
        line += " to win" if style.dry_run else " won"
        line += perhaps_text(report)
        if report.already:
            line += f"; {size_text(report.already)} were shared already"
    if report.skipped:
        line += f"; {counted(report.skipped, 'file')} skipped"
    if report.errors:
        line += f"; {counted(report.errors, 'problem')}"
    if report.capped:
        line += "; stopped by --max-files or --max-bytes"
    if style.dry_run:
        line += " (dry run: nothing was changed" + ("" if style.undo else "; --apply acts") + ")"
    return line + (f"; exit code {int(report.exit)}" if report.exit is not ExitCode.OK else "")
