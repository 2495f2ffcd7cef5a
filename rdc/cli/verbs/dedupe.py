"""`rdc dedupe PATH...`: merges duplicates by shared blocks or hard links."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment
from rdc.cli.options.dedupe_options import DEDUPE_OPTIONS, DedupeRequest, parse_dedupe, read_dedupe
from rdc.cli.options.filter_options import read_rule_file
from rdc.cli.verb import HelpText, json_output, perform, reporting_usage
from rdc.errors import ExitCode
from rdc.model.duplicates import DedupeOptions, DedupeReport, DeduperOptions, DuplicateListing
from rdc.model.location import state_directory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.output import Output

__all__ = ["OPTIONS", "SUMMARY", "help_text", "run"]

OPTIONS = DEDUPE_OPTIONS

SUMMARY = "make single instances of duplicates, by shared blocks or hard links"

_INTRODUCTION = """\
Usage: rdc dedupe [OPTIONS] PATH...
       rdc dedupe --undo JOURNAL

Examples:
  rdc dedupe data/                       show what would be shared, and the space that would win
  rdc dedupe --apply data/               share it: files stay files of their own (btrfs, XFS)
  rdc dedupe --chunks --apply images/    equal parts of disk images, databases and files that grew, too
  rdc dedupe --hardlink --keep-in master/ --apply work/
                                         names below work/ become hard links, those below master/ stay
  rdc dedupe --from dupes.json --apply data/

Shared blocks change nothing that a program could see. A hard link makes two names of one file, so that who
writes to one writes to both; files are linked only where owner, mode, time and extended attributes are the
same, and while nobody has them open for writing.
"""

_CLOSING = """
Exit codes: 0 done, 1 usage, 11 disk full, 20 interrupted, 23 some files could not be read, shared or linked,
24 some files changed meanwhile, 25 stopped by --max-files or --max-bytes.
"""


help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc dedupe` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, environment):
        parsed = parse_dedupe(words)
        if help_text.shown(parsed, environment):
            return ExitCode.OK
        request = read_dedupe(parsed, lambda name: read_rule_file(name, environment))
    return _perform(request, environment)


def _perform(request: DedupeRequest, environment: Environment) -> ExitCode:
    output = (
        json_output(environment, dry_run=not request.apply)
        if request.json
        else _terminal(request, environment)
    )
    job = _undo if request.undo is not None else _dedupe
    return perform(output, lambda: job(request, environment, output)).exit


def _dedupe(request: DedupeRequest, environment: Environment, output: Output) -> DedupeReport:
    from rdc.library.duplicates import dedupe

    listing = None
    if request.report is not None:
        from rdc.library.duplicate_groups import read_report

        listing = DuplicateListing(read_report(request.report, environment.stdin), request.report)
    options = DedupeOptions(
        apply=request.apply,
        hardlink=request.hardlink,
        chunks=request.chunks,
        keep=request.keep,
        rules=request.rules,
        min_size=request.min_size,
        max_files=request.max_files,
        max_bytes=request.max_bytes,
        journal=request.journal,
    )
    with request.catalog.store() as catalog:
        return dedupe(
            request.paths,
            options,
            listing=listing,
            catalog=catalog,
            reporter=output,
            environ=environment.environ,
        )


def _undo(request: DedupeRequest, environment: Environment, output: Output) -> DedupeReport:
    from rdc.duplicates.undo import undo

    assert request.undo is not None  # noqa: S101 - the caller asked
    state = state_directory(os.environ)
    options = DeduperOptions(
        apply=request.apply,
        max_files=request.max_files,
        max_bytes=request.max_bytes,
        journals=None if state is None else os.fsencode(state),
    )
    return undo(request.undo, options, output)


def _terminal(request: DedupeRequest, environment: Environment) -> Output:
    from rdc.report.instances import DedupeStyle, DedupeTerminal

    style = DedupeStyle(
        not request.apply,
        undo=request.undo is not None,
        quiet=request.quiet,
        folders=not request.apply and not request.verbose,
    )
    progress = environment.progress(
        quiet=request.quiet,
        scrolling=environment.stdout_is_terminal,
        lines=request.progress,
    )
    return DedupeTerminal(style, environment.data, environment.talk, progress)
