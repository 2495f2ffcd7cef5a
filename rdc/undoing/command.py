"""`rdc undo DST`: take the last sync back; `rdc undo JOURNAL`: take back a deduplication or a removal."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.verb import HelpText, json_output, perform, reporting, reporting_usage
from rdc.errors import ExitCode, UsageError, printable
from rdc.lean.records import Record
from rdc.model.location import parse_location
from rdc.model.options import Option
from rdc.report.output import TerminalOutput, counted, size_text
from rdc.undoing.records import UndoableSync, UndoItem, UndoOptions, UndoReport

TYPE_CHECKING = False


# The options of `rdc undo`: their table, and the request they are read into.

OPTIONS = (
    OptionGroup(
        "Undo",
        (
            Option(("-n", "--dry-run"), "show what would be done; change nothing"),
            Option(("--list",), "list syncs that can be undone, most recent last"),
            Option(("--no-fsync",), "do not fsync: faster, but a power failure may leave a part undone"),
        ),
    ),
    OptionGroup(
        "Show",
        (
            Option(("-q", "--quiet"), "show only errors"),
            Option(("-v", "--verbose"), "print each reverted entry"),
            Option(("--json",), "print one JSON event per line on stdout instead"),
            HELP,
        ),
    ),
)


class UndoRequest(Record):
    """The checked command line of `rdc undo`."""

    path: bytes
    """A directory that was synced, or a journal."""
    dry_run: bool
    list: bool
    fsync: bool
    quiet: bool
    verbose: bool
    json: bool


def parse_undo(words: Sequence[str]) -> Words:
    """Parse the words after `rdc undo`. Raises UsageError."""
    return parse_words(words, OPTIONS, {}, command="rdc undo")


def read_undo(words: Words) -> UndoRequest:
    """Read the request. Raises UsageError."""
    if len(words.operands) != 1:
        found = "nothing was" if not words.operands else f"{len(words.operands)} were"
        raise words.missing(f"one DST or JOURNAL is needed, {found} given", "rdc undo")
    (operand,) = words.operands
    if not operand or "\0" in operand:
        raise UsageError("DST is empty or has a NUL character; for the current directory, write .")
    host = parse_location(operand).host
    if host is not None and not os.path.exists(operand):
        raise UsageError(f"{operand}: rdc undo works on the machine of DST; run it there, as by ssh {host}")
    if words.has("--list") and words.has("--dry-run"):
        raise UsageError("--list and --dry-run exclude each other: --list undoes nothing anyway")
    return UndoRequest(
        path=os.fsencode(operand),
        dry_run=words.has("--dry-run"),
        list=words.has("--list"),
        fsync=not words.has("--no-fsync"),
        quiet=words.has("--quiet"),
        verbose=words.has("--verbose"),
        json=words.has("--json"),
    )


SUMMARY = "revert the most recent sync, or a deduplication"

_INTRODUCTION = """\
Usage: rdc undo [OPTIONS] DST
       rdc undo [OPTIONS] JOURNAL

Examples:
  rdc sync --delete --keep-undo=30d src/ dst/
                               sync, and keep replaced and deleted data for 30 days
  rdc undo -n -v dst/          show what reverting this sync would change
  rdc undo dst/                revert it; run again to revert the sync before it
  rdc undo --list dst/         list the syncs that can be undone
  rdc undo ~/.local/state/rdc/dedupe-1.journal
                               turn hard links of rdc dedupe into separate files again, or
                               restore what rdc dupes removed

rdc undo restores content, kind, name, mode, owner, time, attributes and hard links, and deletes entries that
the sync created. Entries that changed since the sync are kept and reported. To resume an interrupted undo,
run it again.
"""

_CLOSING = """
Exit codes: 0 done, also if there was nothing to undo, 1 usage, 11 disk full or DST in use, 20 interrupted,
23 newer changes were kept, or something could not be reverted.
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
    from rdc.duplicates import dedupe_command

    if request.list:
        raise UsageError("--list takes a directory, and this is a file")
    chosen = (
        ("--dry-run", request.dry_run),
        ("--quiet", request.quiet),
        ("--verbose", request.verbose),
        ("--json", request.json),
    )
    words = [word for word, given in chosen if given]
    return dedupe_command.run([*words, "--undo=" + os.fsdecode(request.path)], environment)


_NOTHING = "there is nothing to undo; only a sync with --keep-undo can be undone"

_WIDTH = 8
"""Columns of the word that says what was done."""


class _Terminal(TerminalOutput):
    """Entries taken back and listed syncs on stdout, problems and the summary on stderr."""

    def __init__(self, request: UndoRequest, environment: Environment) -> None:
        asked = request.verbose or request.dry_run
        super().__init__(
            environment.data,
            environment.talk,
            environment.progress(quiet=request.quiet),
            quiet=request.quiet,
            unseen=environment.unseen and not asked,
        )
        self._names = request.verbose and not request.quiet
        self._dry_run = request.dry_run

    def __call__(self, event: object, /) -> None:
        if isinstance(event, UndoableSync):
            self._data(_line(event) + "\n")
        elif not isinstance(event, UndoItem):
            super().__call__(event)
        elif self._names:
            self._data(f"{event.action:<{_WIDTH}}  {printable(event.path_bytes or b'.')}\n")

    def summary(self, report: UndoReport) -> str:
        return _summary(report, dry_run=self._dry_run)


def _line(sync: UndoableSync) -> str:
    """`12  2026-11-25 21:14  3,201 entries  1.2 GB`: number, local time, what it changed and keeps."""
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
