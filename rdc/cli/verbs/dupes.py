"""`rdc dupes PATH...`: groups of identical files."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment
from rdc.cli.options.catalog_options import CATALOG_GROUP, read_choice
from rdc.cli.options.filter_options import FILTER_GROUP, read_rule_file, read_rules
from rdc.cli.options.removal_options import REMOVAL_GROUP, read_removal
from rdc.cli.options.resource_options import DEPTH, MAX_RATE, read_depth, read_max_rate
from rdc.cli.options.table import Option, OptionGroup, Words, options_help, parse_words, read_size
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.model.duplicates import DuplicateOptions, DuplicateOrder
from rdc.report.trouble import Trouble

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.duplicates import DuplicateReport
    from rdc.progress import Reporter

__all__ = ["OPTIONS", "SUMMARY", "help_text", "run"]

SUMMARY = "find identical files"

_ORDERS = tuple(order.value for order in DuplicateOrder)

OPTIONS = (
    OptionGroup(
        "What takes part",
        (
            Option(("--min-size",), "files of at least SIZE (4096, 500K, 2G; default: 1 byte)", "SIZE"),
            Option(("--max-size",), "files of at most SIZE", "SIZE"),
            Option(("--empty",), "empty files too"),
            Option(("-x", "--one-file-system"), "stay on the file system of each PATH"),
            Option(("--verify",), "compare byte by byte what has equal digests"),
            DEPTH,
            MAX_RATE,
        ),
    ),
    FILTER_GROUP,
    REMOVAL_GROUP,
    OptionGroup(
        "Output",
        (
            Option(("--sort",), f"groups by {', '.join(_ORDERS)}; default: {_ORDERS[0]}", "ORDER"),
            Option(("--links",), "list the other names of a file (hard links) that were found, too"),
            Option(("-0", "--null"), "names as they are, each followed by NUL, and one more after a group"),
            Option(("--csv",), "a table with a row for each name"),
            Option(("--json",), "events, one a line"),
            Option(("-q", "--quiet"), "no progress and no summary"),
            Option(("--help",), "show this text"),
        ),
    ),
    CATALOG_GROUP,
)

_INTRODUCTION = """\
Usage: rdc dupes [OPTIONS] PATH...

Examples:
  rdc dupes photos/                           groups of identical files, the greatest waste first
  rdc dupes --min-size=1M a/ b/ c.iso         among several places, large files only
  rdc dupes -0 --sort=path mail/          for programs, whatever the names hold
  rdc dupes --delete --keep=oldest photos/
                                          show what would be deleted; with --apply, delete it

Files are compared by size, then by their first and last blocks, and only then by all of their content. Names
of one file (hard links) count as one file. Links are not followed. Nothing is changed without --apply. At
least one file of each set stays, and each is compared byte by byte with it right before it goes.
"""

_FORMATS = ("--null", "--csv", "--json")


def help_text() -> str:
    """Returns the text of --help."""
    return _INTRODUCTION + options_help(OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Runs `rdc dupes` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc dupes")
    if parsed.has("--help"):
        environment.show_help(help_text())
        return ExitCode.OK
    if not parsed.operands:
        raise UsageError("rdc dupes needs a file or directory (see rdc dupes --help)")
    removal = read_removal(parsed)
    formats = {given.key for given in parsed.given if given.key in _FORMATS}
    if len(formats) > 1:
        raise UsageError(f"{' and '.join(sorted(formats))} exclude each other (see rdc dupes --help)")
    options = _options(parsed, environment)
    if removal is not None:
        from rdc.cli.verbs.remove_duplicates import remove_duplicates

        paths = [os.fsencode(operand) for operand in parsed.operands]
        output = {"json": "--json" in formats, "quiet": parsed.has("--quiet")}
        with read_choice(parsed).store() as store:
            return remove_duplicates(paths, removal, options, store, environment, **output)
    if "--json" in formats:
        return _run_json(parsed, options, environment)
    terminal = Trouble(environment.talk, environment.progress(quiet=parsed.has("--quiet")))
    try:
        found = _find(parsed, options, terminal)
    finally:
        terminal.close()
    _print(found, formats, environment)
    if not parsed.has("--quiet"):
        from rdc.report.duplicates_listing import summary_text

        # The listing precedes the summary if both go to one terminal.
        environment.flush()
        environment.talk(summary_text(found.summary) + "\n")
    return found.exit


def _run_json(words: Words, options: DuplicateOptions, environment: Environment) -> ExitCode:
    from rdc.report.duplicates_json import DuplicatesJson

    writer = DuplicatesJson(environment.data, environment.flush, environment.clock)
    writer.start(_working_directory())
    try:
        found = _find(words, options, writer)
    except RdcError as error:
        writer.fail(error)
        raise
    for group in found.groups:
        writer.group(group)
    writer.finish(found.summary, found.exit)
    return found.exit


def _working_directory() -> bytes | None:
    """Returns the working directory, or None if it was removed."""
    try:
        return os.getcwdb()
    except OSError:
        return None


def _find(words: Words, options: DuplicateOptions, reporter: Reporter) -> DuplicateReport:
    from rdc.library.dupes import dupes

    with read_choice(words).store() as catalog:
        return dupes(words.operands, options, reporter=reporter, catalog=catalog)


def _print(found: DuplicateReport, formats: set[str], environment: Environment) -> None:
    from rdc.report.duplicates_listing import CSV_HEAD, csv_lines, text_lines
    from rdc.report.names import null_names

    if "--null" in formats:
        for group in found.groups:
            environment.binary(null_names(name for file in group.files for name in (file.path, *file.links)))
    elif "--csv" in formats:
        environment.data(CSV_HEAD)
        for number, group in enumerate(found.groups, 1):
            environment.data("".join(csv_lines(number, group)))
    else:
        for number, group in enumerate(found.groups):
            environment.data(("\n" if number else "") + text_lines(group))


def _options(words: Words, environment: Environment) -> DuplicateOptions:
    order, least, most = (words.last(key) for key in ("--sort", "--min-size", "--max-size"))
    if order is not None and order.value not in _ORDERS:
        raise UsageError(f"--sort={order.value}: expected {', '.join(_ORDERS)} (see rdc dupes --help)")
    smallest = 1 if least is None else read_size("--min-size", least.value)
    return DuplicateOptions(
        rules=read_rules(words, lambda name: read_rule_file(name, environment)),
        min_size=0 if words.has("--empty") else smallest,
        max_size=None if most is None else read_size("--max-size", most.value),
        one_file_system=words.has("--one-file-system"),
        links=words.has("--links"),
        verify=words.has("--verify"),
        depth=read_depth(words),
        max_rate=read_max_rate(words),
        order=DuplicateOrder.WASTE if order is None else DuplicateOrder(order.value),
    )
