"""`rdc undo DST`: takes the latest sync back, and `rdc undo JOURNAL` a deduplication or a removal."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment
from rdc.cli.options.undo_options import UNDO_OPTIONS, UndoRequest, parse_undo, read_undo
from rdc.cli.verb import HelpText, json_output, perform, reporting, reporting_usage
from rdc.errors import ExitCode, UsageError, printable
from rdc.model.undo import UndoableSync, UndoItem, UndoOptions
from rdc.report.output import TerminalOutput
from rdc.report.text import counted, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.undo import UndoReport

__all__ = ["OPTIONS", "SUMMARY", "help_text", "run"]

OPTIONS = UNDO_OPTIONS

SUMMARY = "take the latest sync back, or a deduplication"

_INTRODUCTION = """\
Usage: rdc undo [OPTIONS] DST
       rdc undo [OPTIONS] JOURNAL

Examples:
  rdc sync --delete --keep-undo=30d src/ dst/
                               sync, and keep for 30 days what undoing it needs
  rdc undo -n -v dst/          show what taking this sync back would do
  rdc undo dst/                take it back; once more, and the sync before it is taken back
  rdc undo --list dst/         list the syncs that can be undone
  rdc undo ~/.local/state/rdc/dedupe-1.journal
                               make hard links of rdc dedupe separate files again, or bring back
                               what rdc dupes removed

Everything gets back its content, kind, name, mode, owner, time, attributes and hard links, and what the sync
made goes. What was changed since the sync is newer work: it stays, and a line names it. An undo that was
interrupted goes on when it is run again.
"""

_CLOSING = """
Exit codes: 0 done, also if there was nothing to undo, 1 usage, 11 disk full or DST in use, 20 interrupted,
23 newer work stayed, or something could not be taken back.
"""


help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc undo` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, environment):
        parsed = parse_undo(words)
        if help_text.shown(parsed, environment):
            return ExitCode.OK
        request = read_undo(parsed)
    if not os.path.isdir(request.path) and os.path.exists(request.path):
        return _undo_journal(request, environment)
    return _undo_sync(request, environment)


def _undo_sync(request: UndoRequest, environment: Environment) -> ExitCode:
    from rdc.library.trees import undo, undoable_syncs

    output = (
        json_output(environment, dry_run=request.dry_run) if request.json else _Terminal(request, environment)
    )
    path = os.fsdecode(request.path)
    if request.list:
        with reporting(output):
            output.start()
            syncs = undoable_syncs(path)
            for sync in syncs:
                output(sync)
        if not (syncs or request.json or request.quiet):
            environment.talk(_NOTHING + "\n")
        return ExitCode.OK
    options = UndoOptions(dry_run=request.dry_run, fsync=request.fsync)
    return perform(output, lambda: undo(path, options, reporter=output)).exit


def _undo_journal(request: UndoRequest, environment: Environment) -> ExitCode:
    """Undo a journal of rdc dedupe or rdc dupes, as `rdc dedupe --undo` does."""
    from rdc.cli.verbs import dedupe

    if request.list:
        raise UsageError("--list takes a directory, and this is a file")
    chosen = (
        ("--dry-run", request.dry_run),
        ("--quiet", request.quiet),
        ("--verbose", request.verbose),
        ("--json", request.json),
    )
    words = [word for word, given in chosen if given]
    return dedupe.run([*words, "--undo=" + os.fsdecode(request.path)], environment)


_NOTHING = "there is nothing to undo"

_WIDTH = 8
"""Columns of the word that says what was done."""


class _Terminal(TerminalOutput):
    """Entries taken back and listed syncs on stdout, problems and the summary on stderr."""

    def __init__(self, request: UndoRequest, environment: Environment) -> None:
        super().__init__(environment.data, environment.talk, quiet=request.quiet)
        self._names = request.verbose and not request.quiet
        self._dry_run = request.dry_run

    def __call__(self, event: object, /) -> None:
        if isinstance(event, UndoableSync):
            self._data(_line(event) + "\n")
        elif not isinstance(event, UndoItem):
            super().__call__(event)
        elif self._names:
            self._data(f"{event.action:<{_WIDTH}}  {printable(event.path or b'.')}\n")

    def summary(self, report: UndoReport) -> str:
        return _summary(report, dry_run=self._dry_run)


def _line(sync: UndoableSync) -> str:
    """`12  2026-11-25 21:14  3,201 entries  1.2 GB`: number, local time, what it changed and keeps."""
    import time

    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(sync.seconds))
    parts = [f"{sync.number:>4}", began, counted(sync.entries, "entry", "entries"), size_text(sync.bytes)]
    if not sync.complete:
        parts.append("interrupted")
    if sync.left_alone is not None:
        parts.append(f"undone, {counted(sync.left_alone, 'entry', 'entries')} left alone")
    return "  ".join(parts)


def _summary(report: UndoReport, *, dry_run: bool) -> str:
    if report.number is None:
        return _NOTHING
    would = "would be " if dry_run else ""
    parts = [
        f"sync {report.number} {would}undone: {report.restored:,} restored, {report.removed:,} removed,"
        f" {report.moved:,} moved, {report.changed:,} changed"
    ]
    if report.left_alone:
        parts.append(f"{report.left_alone:,} left alone, exit code {int(report.exit)}")
    parts.append(f"{counted(report.older, 'older sync')} left to undo")
    return "; ".join(parts)
