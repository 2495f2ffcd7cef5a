"""`rdc undo DST`: takes the latest sync back, and `rdc undo JOURNAL` a deduplication or a removal."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment
from rdc.cli.options.table import options_help
from rdc.cli.options.undo_options import UNDO_OPTIONS, UndoRequest, parse_undo, read_undo
from rdc.cli.reporting_frame import reporting, reporting_usage
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.model.undo import UndoableSync, UndoItem, UndoOptions, UndoReport
from rdc.progress import Problem
from rdc.typed import Protocol

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


class _Output(Protocol):
    def start(self) -> None: ...
    def __call__(self, event: UndoItem | Problem, /) -> None: ...
    def listed(self, syncs: tuple[UndoableSync, ...]) -> None: ...
    def finish(self, report: UndoReport) -> None: ...
    def fail(self, error: RdcError) -> None: ...
    def close(self) -> None: ...


def help_text() -> str:
    """Returns the text of --help."""
    return _INTRODUCTION + options_help(OPTIONS) + _CLOSING


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Runs `rdc undo` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, lambda: _json_output(environment, dry_run=True)):
        parsed = parse_undo(words)
        if parsed.has("--help"):
            environment.show_help(help_text())
            return ExitCode.OK
        request = read_undo(parsed)
    if not os.path.isdir(request.path) and os.path.exists(request.path):
        return _undo_journal(request, environment)
    return _undo_sync(request, environment)


def _undo_sync(request: UndoRequest, environment: Environment) -> ExitCode:
    from rdc.undoing.undo import list_syncs, undo_latest

    output = (
        _json_output(environment, dry_run=request.dry_run)
        if request.json
        else _terminal_output(request, environment)
    )
    with reporting(output):
        output.start()
        if request.list:
            output.listed(list_syncs(request.path))
            return ExitCode.OK
        options = UndoOptions(dry_run=request.dry_run, fsync=request.fsync)
        report = undo_latest(request.path, options, output)
        output.finish(report)
    return report.exit


def _undo_journal(request: UndoRequest, environment: Environment) -> ExitCode:
    """Undoes a journal of rdc dedupe or rdc dupes, as `rdc dedupe --undo` does."""
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


def _json_output(environment: Environment, *, dry_run: bool) -> _Output:
    from rdc.report.undo.events import UndoJson

    return UndoJson(environment.data, environment.flush, environment.clock, dry_run=dry_run)


def _terminal_output(request: UndoRequest, environment: Environment) -> _Output:
    from rdc.report.undo.terminal import UndoTerminal

    return UndoTerminal(
        environment.data,
        environment.talk,
        quiet=request.quiet,
        names=request.verbose,
        dry_run=request.dry_run,
    )
