"""Groups of identical files, a deduplication and a removal of duplicates, as text."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import chain

from rdc.errors import ExitCode, printable
from rdc.lean.records import Record, replace
from rdc.model.duplicates import Action, DedupeReport, Instance
from rdc.report.output import Bar, TerminalOutput, counted, csv_name, null_names, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.model.duplicates import DirectoryGroup, DuplicateGroup, DuplicateReport


# Groups of identical files, as `rdc dupes` lists them.

DUPLICATES_HEAD = "group,file,size,path,path_b64\n"
"""Names of the columns. New columns may be added at the end."""


def listed_duplicates(report: DuplicateReport, form: str) -> Iterator[str | bytes]:
    """List the groups. `form`: "--null" for names as bytes, "--csv" for a table, otherwise text, in which
    groups of identical directories stand for the files that they cover."""
    if form == "--csv":
        yield DUPLICATES_HEAD
    elif form != "--null":
        texts = chain(map(directories_text, report.directories), map(duplicates_text, uncovered(report)))
        yield from (("\n" if number else "") + text for number, text in enumerate(texts))
        return
    for number, group in enumerate(report.groups, 1):
        if form == "--null":
            yield null_names(name for file in group.files for name in (file.path_bytes, *file.links_bytes))
        else:
            yield "".join(duplicate_rows(number, group))


def uncovered(report: DuplicateReport) -> Iterator[DuplicateGroup]:
    """Yield what groups of files are left beside the groups of directories."""
    for group in report.groups:
        left = group.uncovered
        if left is not None:
            yield left


def directories_text(group: DirectoryGroup) -> str:
    """Return one directory per line, with a slash at its end; the first line says what each holds."""
    first, *others = [printable(path.rstrip(b"/")) + "/" for path in group.paths_bytes]
    holds = f"  ({counted(group.files, 'file')}, {size_text(group.bytes)} in each)"
    return "\n".join([first + holds, *others]) + "\n"


def duplicates_text(group: DuplicateGroup) -> str:
    """Return one file per line. Its other names follow, indented after an equals sign."""
    lines = []
    for file in group.files:
        lines.append(printable(file.path_bytes))
        lines += [f"  = {printable(link)}" for link in file.links_bytes]
    return "\n".join(lines) + "\n"


def duplicate_rows(number: int, group: DuplicateGroup) -> Iterator[str]:
    """Yield one name per row. Rows with the same `file` number are names of one file.

    A name that is not plain text has escapes in `path` and its bytes in `path_b64`.
    """
    for position, file in enumerate(group.files, 1):
        for name in (file.path_bytes, *file.links_bytes):
            yield f"{number},{position},{group.size},{csv_name(name)}\n"


def duplicates_summary(report: DuplicateReport) -> str:
    """`123 groups, 456 files, 1.2 GB could be saved`, and how much of it lies in identical directories."""
    summary = report.summary
    groups, files = counted(summary.groups, "group"), counted(summary.files, "file")
    line = f"{groups}, {files}, {size_text(summary.waste)} could be saved"
    if not report.directories:
        return line
    further = sum([len(group.paths_bytes) - 1 for group in report.directories])
    waste = sum([group.waste for group in report.directories])
    copies = counted(further, "copy of a directory", "copies of directories")
    return f"{line}, {size_text(waste)} of it in {copies}"


# A deduplication and a removal of duplicates: results on stdout, the summary on stderr.

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
    Action.RETURN: "from",
}

_OF_A_SET = (Action.DELETE, Action.MOVE, Action.SYMLINK)


class DedupeStyle(Record):
    dry_run: bool
    undo: bool = False
    quiet: bool = False
    returned: bool = False
    """True if removed duplicates come back, rather than links being separated."""
    folders: bool = False
    """Sums by folder in place of a line for each file."""
    removal: Action | None = None
    """The events of a removal, shown set by set."""


class DedupeTerminal(TerminalOutput):
    """Shows one deduplication, one removal of duplicates, or the undo of either."""

    def __init__(
        self,
        style: DedupeStyle,
        data: Callable[[str], None],
        talk: Callable[[str], None],
        bar: Bar | None = None,
    ) -> None:
        """Take `data`, which writes whole lines to stdout, and `talk`, which writes them to stderr."""
        super().__init__(data, talk, bar, quiet=style.quiet)
        self._style = style
        self._files_by_folder: dict[bytes, int] = {}
        self._bytes_by_folder: dict[bytes, int] = {}
        self._original: bytes | None = None
        """The file that stays of the set that is shown."""

    def __call__(self, event: object, /) -> None:
        if not isinstance(event, Instance):
            super().__call__(event)
            return
        if event.action is Action.RETURN and not self._style.returned:
            self._style = replace(self._style, returned=True)
        if self._style.folders:
            self._add(event)
        elif not self._style.quiet:
            if event.action in _OF_A_SET and event.source_bytes != self._original:
                blank = "" if self._original is None else "\n"
                self._original = event.source_bytes
                self._data(f"{blank}keep     {printable(event.source_bytes)}\n")
            self._data(instance_line(event) + "\n")

    def summary(self, report: DedupeReport) -> str:
        for line in self._folder_lines():
            self._data(line + "\n")
        return summary_line(report, self._style)

    def finish(self, report: DedupeReport) -> None:
        super().finish(report)
        if report.journal is not None and not self._quiet:
            self._talk(f"to undo it: rdc dedupe --undo {printable(report.journal)}\n")

    def _add(self, instance: Instance) -> None:
        folder = os.path.dirname(instance.path_bytes) or b"."
        if folder not in self._files_by_folder and len(self._files_by_folder) == FOLDERS_COUNTED:
            folder = b""
        won = instance.bytes if self._style.undo else instance.won
        self._files_by_folder[folder] = self._files_by_folder.get(folder, 0) + 1
        self._bytes_by_folder[folder] = self._bytes_by_folder.get(folder, 0) + won

    def _folder_lines(self) -> list[str]:
        """Return the folders with most to reclaim, then the sum of the others: `   1.2 MB  3 files  a/b`."""
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


def instance_line(instance: Instance) -> str:
    """`share    a/copy with a/first: 1.2 MB`, `move     a/copy to there/a/copy: 1.2 MB`."""
    line = f"{instance.action.value:<8} {printable(instance.path_bytes)}"
    if instance.action not in _OF_A_SET:
        line += f" {_BETWEEN[instance.action]} {printable(instance.source_bytes)}"
    elif instance.destination:
        line += f" to {printable(instance.destination)}"
    if instance.action in {Action.SEPARATE, Action.RETURN}:
        return line + f": {size_text(instance.bytes)}"
    if instance.won or instance.perhaps:
        line += f": {size_text(instance.won)}"
    return line + perhaps_text(instance)


def perhaps_text(found: Instance | DedupeReport) -> str:
    """Return what may become free beside what was won, and when."""
    line = f", {size_text(found.compressed)} of compressed content" if found.compressed else ""
    if found.held:
        line += f", {size_text(found.held)} more once what else shares them lets go"
    unsure = found.perhaps - found.compressed - found.held
    return line + (f", perhaps {size_text(unsure)} more" if unsure else "")


def summary_line(report: DedupeReport, style: DedupeStyle) -> str:
    """Return the last line of a run: bytes freed or moved, or that a dry run would free or move."""
    files = counted(report.files, "file")
    if style.undo:
        line = f"{files} of {size_text(report.bytes)} "
        if style.returned:
            line += "to bring back" if style.dry_run else "brought back"
        else:
            line += "would be separate" if style.dry_run else "made separate"
    else:
        one, doing, done = (
            ("group", "reclaim", "reclaimed") if style.removal is None else ("set", "free", "freed")
        )
        if style.removal is Action.MOVE:
            doing, done = "move", "moved"
        line = f"{files} in {counted(report.groups, one)}: {size_text(report.won)}"
        line += f" to {doing}" if style.dry_run else f" {done}"
        if style.removal is not Action.MOVE:
            line += perhaps_text(report)
        if report.already:
            line += f"; {size_text(report.already)} were shared already"
    if report.skipped:
        line += f"; {counted(report.skipped, 'file')} {'skipped' if style.removal is None else 'left alone'}"
    if report.errors:
        line += f"; {counted(report.errors, 'problem')}"
    if report.capped:
        line += "; stopped by --max-files or --max-bytes"
    if style.dry_run:
        line += " (dry run: nothing was changed" + ("" if style.undo else "; --apply acts") + ")"
    return line + (f"; exit code {int(report.exit)}" if report.exit is not ExitCode.OK else "")
