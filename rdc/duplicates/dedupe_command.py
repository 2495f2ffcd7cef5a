"""`rdc dedupe PATH...`: merge duplicates by shared blocks or hard links."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from rdc.cli.environment import Environment, OptionGroup, Words, parse_words
from rdc.cli.options.shared_options import (
    CATALOG_GROUP,
    FILTER_GROUP,
    CatalogChoice,
    read_choice,
    read_rule_file,
    read_rules,
)
from rdc.cli.verb import HelpText, json_output, perform, reporting_usage
from rdc.errors import ExitCode, UsageError
from rdc.lean.records import dataclass
from rdc.model.duplicates import DedupeOptions, DedupeReport, DuplicateListing
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.output import Output


# The options of `rdc dedupe`: their table, and the request they are read into.

OPTIONS = (
    OptionGroup(
        "What is done",
        (
            Option(("--apply",), "act; without it only show what would be done, and what it would win"),
            Option(("-n", "--dry-run"), "do not act, --apply or --undo or not"),
            Option(("--hardlink",), "make names of one file of them (default: let them share blocks)"),
            Option(("--chunks",), "share equal parts of files that differ, too; reads every file"),
            Option(("--keep-in",), "never change what is below DIR, only link to it or share with it", "DIR"),
            Option(("--from",), "take groups from the JSON of rdc dupes instead of searching", "REPORT"),
            Option(
                ("--undo",),
                "make links separate files again, or bring back what rdc dupes removed",
                "JOURNAL",
            ),
        ),
    ),
    OptionGroup(
        "How much",
        (
            Option(("--max-files",), "change at most N files, then exit with 25", "N"),
            Option(("--max-bytes",), "change files of at most SIZE (500M, 2G), then exit with 25", "SIZE"),
            Option(("--min-size",), "leave files below SIZE alone (default: 1)", "SIZE"),
            Option(
                ("--journal",), "where hard links are written down (default: your state directory)", "FILE"
            ),
        ),
    ),
    FILTER_GROUP,
    CATALOG_GROUP,
    OptionGroup(
        "What is shown",
        (
            Option(("-q", "--quiet"), "show nothing but errors"),
            Option(("-v", "--verbose"), "list each file of a dry run, not only sums by folder"),
            Option(("--progress",), "show progress, by lines where no bar can be drawn"),
            Option(("--json",), "one JSON event a line on stdout instead"),
            Option(("--help",), "show this text"),
        ),
    ),
)

_NOT_WITH_UNDO = ("--hardlink", "--chunks", "--keep-in", "--from", "--min-size", "--journal")


@dataclass(frozen=True, slots=True)
class DedupeRequest:
    """The checked command line of `rdc dedupe`."""

    paths: tuple[bytes, ...]
    options: DedupeOptions
    report: str | None
    """The file name of --from; '-' is stdin."""
    undo: bytes | None
    catalog: CatalogChoice
    quiet: bool
    verbose: bool
    progress: bool
    json: bool


def parse_dedupe(words: Sequence[str]) -> Words:
    """Parse the words after `rdc dedupe`. Raises UsageError."""
    former = {"--keep": "this option is --keep-in=DIR now"}
    return parse_words(words, OPTIONS, former, command="rdc dedupe")


def read_dedupe(parsed: Words, read_rule_file: Callable[[str], bytes]) -> DedupeRequest:
    """Read the request. Raises UsageError for a contradiction, before any file is opened."""
    # long because each combination of options that makes no sense is one test with its message
    undo = parsed.last("--undo")
    report = parsed.last("--from")
    journal = parsed.last("--journal")
    if undo is not None:
        for key in _NOT_WITH_UNDO:
            if parsed.has(key):
                raise UsageError(f"{key} makes no sense with --undo, which only reads the journal")
        if parsed.operands:
            raise UsageError(
                f"--undo takes no PATH: the journal says what it is about ({parsed.operands[0]})"
            )
    elif not parsed.operands:
        raise UsageError("rdc dedupe needs a PATH (see rdc dedupe --help)")
    if parsed.has("--chunks") and (parsed.has("--hardlink") or report is not None):
        other = "--hardlink" if parsed.has("--hardlink") else "--from"
        raise UsageError(f"--chunks makes no sense with {other}, which is about whole files")
    if journal is not None and not parsed.has("--hardlink"):
        raise UsageError("--journal is for hard links: add --hardlink")
    for given in (undo, report, journal):
        if given is not None and not given.value:
            raise UsageError(f"{given.key} needs a file: {given.key}=FILE")
    dry = parsed.has("-n", "--dry-run")
    return DedupeRequest(
        paths=tuple(_path(word) for word in parsed.operands),
        options=DedupeOptions(
            apply=(parsed.has("--apply") or undo is not None) and not dry,
            hardlink=parsed.has("--hardlink"),
            chunks=parsed.has("--chunks"),
            keep=tuple(map(_path, parsed.values("--keep-in"))),
            max_files=parsed.number("--max-files", None, "a number of files is expected"),
            max_bytes=parsed.size("--max-bytes"),
            min_size=parsed.size("--min-size") or 1,
            journal=None if journal is None else _path(journal.value),
            rules=read_rules(parsed, read_rule_file),
        ),
        report=None if report is None else report.value,
        undo=None if undo is None else _path(undo.value),
        catalog=read_choice(parsed),
        quiet=parsed.has("--quiet"),
        verbose=parsed.has("--verbose"),
        progress=parsed.has("--progress"),
        json=parsed.has("--json"),
    )


def _path(word: str) -> bytes:
    if not word:
        raise UsageError("a PATH is empty; for the current directory, write .")
    if "\0" in word:
        raise UsageError("a PATH cannot contain a NUL character")
    return os.fsencode(word)


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
    output: Output
    if request.json:
        output = json_output(environment, dry_run=not request.options.apply)
    else:
        output = _terminal(request, environment)

    def job() -> DedupeReport:
        if request.undo is None:
            return _dedupe(request, environment, output)
        from rdc.duplicates.undo import undo

        return undo(request.undo, request.options, output)

    return perform(output, job).exit


def _dedupe(request: DedupeRequest, environment: Environment, output: Output) -> DedupeReport:
    from rdc.library.duplicates import dedupe

    listing = None
    if request.report is not None:
        from rdc.library.duplicate_groups import read_report

        listing = DuplicateListing(read_report(request.report, environment.stdin), request.report)
    with request.catalog.store() as catalog:
        return dedupe(
            request.paths,
            request.options,
            listing=listing,
            catalog=catalog,
            reporter=output,
            environ=environment.environ,
        )


def _terminal(request: DedupeRequest, environment: Environment) -> Output:
    from rdc.duplicates.report import DedupeStyle, DedupeTerminal

    dry = not request.options.apply
    style = DedupeStyle(
        dry, undo=request.undo is not None, quiet=request.quiet, folders=dry and not request.verbose
    )
    progress = environment.progress(
        quiet=request.quiet, scrolling=environment.stdout_is_terminal, lines=request.progress
    )
    return DedupeTerminal(style, environment.data, environment.talk, progress)
