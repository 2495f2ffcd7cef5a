"""`rdc dedupe PATH...`: merge duplicates by shared blocks or hard links."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.options.own_places import CATALOG_GROUP, CatalogChoice, read_choice
from rdc.cli.options.shared_options import FILTER_GROUP, read_rule_file, read_rules
from rdc.cli.verb import HelpText, json_output, perform, reporting_usage, short_help
from rdc.errors import ExitCode, UsageError, printable
from rdc.lean.records import Record
from rdc.model.duplicates import DedupeOptions, DedupeReport, DuplicateListing
from rdc.model.options import Option
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.output import Output


# The options of `rdc dedupe`: their table, and the request they are read into.

OPTIONS = (
    OptionGroup(
        "Deduplicate",
        (
            Option(
                ("--apply",),
                "do it; without --apply, show what would be done and the space it reclaims",
                common=True,
            ),
            Option(("-n", "--dry-run"), "change nothing, even with --apply or --undo"),
            Option(
                ("--hardlink",),
                "replace duplicates with hard links to one file (default: share blocks)",
                common=True,
            ),
            Option(("--chunks",), "also share equal parts of different files; reads every file", common=True),
            Option(
                ("--keep-in",),
                "never change files below DIR; others are linked to them or share with them",
                "DIR",
                common=True,
            ),
            Option(
                ("--from",),
                "take groups from a report of rdc dupes --json; do not search",
                "REPORT",
                common=True,
            ),
            Option(
                ("--undo",),
                "turn hard links into separate files again, or restore what rdc dupes removed",
                "JOURNAL",
                common=True,
            ),
        ),
    ),
    OptionGroup(
        "Limit",
        (
            Option(("--max-files",), "change at most N files; then stop with exit code 25", "N", common=True),
            Option(
                ("--max-bytes",),
                "change at most SIZE (500M, 2G) of files; then stop with exit code 25",
                "SIZE",
            ),
            Option(("--min-size",), "skip files smaller than SIZE (default: 1)", "SIZE", common=True),
            Option(
                ("--journal",), "record hard links in FILE for --undo (default: your state directory)", "FILE"
            ),
        ),
    ),
    FILTER_GROUP,
    CATALOG_GROUP,
    OptionGroup(
        "Show",
        (
            Option(("-q", "--quiet"), "show only errors"),
            Option(("-v", "--verbose"), "list each file of a dry run, not only sums by folder", common=True),
            Option(("--progress",), "show progress, as lines if no bar can be drawn"),
            Option(("--json",), "print one JSON event per line on stdout instead", common=True),
            HELP,
        ),
    ),
)

_NOT_WITH_UNDO = ("--hardlink", "--chunks", "--keep-in", "--from", "--min-size", "--journal")


class DedupeRequest(Record):
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
        raise parsed.missing("rdc dedupe needs a PATH", "rdc dedupe")
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


SUMMARY = "replace duplicates by shared blocks or hard links"

_INTRODUCTION = """\
Usage: rdc dedupe [OPTIONS] PATH...
       rdc dedupe --undo JOURNAL

Examples:
  rdc dedupe data/                       show what would be shared and the space that would be reclaimed
  rdc dedupe --apply data/               share blocks; files stay separate (btrfs, XFS)
  rdc dedupe --chunks --apply images/    also share equal parts of disk images and databases
  rdc dedupe --hardlink --keep-in master/ --apply work/
                                         files below work/ become hard links to those below master/
  rdc dedupe --from dupes.json --apply data/
                                         the groups that rdc dupes --json data/ reported

Programs see no difference when files share blocks. Hard links are two names of one file: writing to one
changes the other. Files are linked only if owner, mode, time and extended attributes are equal and no program
has them open for writing.
"""

_CLOSING = """
Exit codes: 0 done, 1 usage, 11 disk full, 20 interrupted, 23 some files could not be read, shared or linked,
24 some files changed during the run, 25 stopped by --max-files or --max-bytes.
"""


help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING, short_help("dedupe", _INTRODUCTION))


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


_ONE_FILE = (
    "--hardlink makes one file of names below {} and {}: a later write to one changes the other, so a backup"
    " is none any more"
)


def _separate_trees(paths: Sequence[bytes]) -> list[bytes]:
    """Return those of the directories that are not inside another one, and lie on the file system of another
    one that is not: no link leads from one file system to the other."""
    real = {os.path.realpath(path): path for path in paths if os.path.isdir(path)}
    devices: dict[bytes, int] = {}
    for place, path in real.items():
        if not any(place != other and place.startswith(other.rstrip(b"/") + b"/") for other in real):
            with suppress(OSError):  # the search names it
                devices[path] = os.stat(place).st_dev
    shared = Counter(devices.values())
    return [path for path, device in devices.items() if shared[device] > 1]


def _dedupe(request: DedupeRequest, environment: Environment, output: Output) -> DedupeReport:
    from rdc.library.duplicates import dedupe

    listing = None
    if request.report is not None:
        from rdc.library.duplicate_groups import read_report

        listing = DuplicateListing(read_report(request.report, environment.stdin), request.report)
    trees = _separate_trees(request.paths) if request.options.hardlink else []
    if len(trees) > 1:
        output(Problem(ExitCode.OK, b"", _ONE_FILE.format(*map(printable, trees))))
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
    progress = environment.progress(quiet=request.quiet, lines=request.progress)
    return DedupeTerminal(style, environment.data, environment.talk, progress)
