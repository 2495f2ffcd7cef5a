"""`rdc dupes PATH...`: list groups of identical files, or remove all but one of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from rdc.cli.environment import Environment, OptionGroup, Words, parse_words
from rdc.cli.options.shared_options import (
    CATALOG_GROUP,
    DEPTH,
    FILTER_GROUP,
    MAX_RATE,
    read_choice,
    read_depth,
    read_max_rate,
    read_rule_file,
    read_rules,
)
from rdc.cli.verb import HelpText, Listing, json_output, perform
from rdc.errors import ExitCode, UsageError
from rdc.model.duplicates import (
    Action,
    DedupeReport,
    DuplicateOptions,
    DuplicateOrder,
    DuplicateReport,
    KeepOrder,
    KeepRule,
    RemovalOptions,
)
from rdc.model.options import Option
from rdc.report.output import Output

TYPE_CHECKING = False


# The options of `rdc dupes` that remove duplicates: their table, and the request they are read into.

REMOVAL_GROUP = OptionGroup(
    "What is done with them",
    (
        Option(("--delete",), "delete all files of a set but one"),
        Option(("--move",), "move them below DIR, with their paths", "DIR"),
        Option(("--symlink",), "make them symbolic links to the one that stays"),
        Option(("--apply",), "act; without it only show what would be done, and the bytes it frees"),
        Option(("-n", "--dry-run"), "do not act, --apply or not"),
        Option(
            ("--keep",), "which one stays: newest, oldest, shortest-path, longest-path, first, in:DIR", "RULE"
        ),
        Option(("--keep-in",), "change nothing below DIR; its files count as copies", "DIR"),
        Option(("--only-in",), "change nothing outside of DIR", "DIR"),
        Option(("--journal",), "where it is written down (default: your state directory)", "FILE"),
    ),
)

_ACTIONS = {"--delete": Action.DELETE, "--move": Action.MOVE, "--symlink": Action.SYMLINK}
_NEED_ACTION = ("--apply", "--dry-run", "--keep", "--keep-in", "--only-in", "--journal")
_NOT_WITH_ACTION = ("--null", "--csv", "--links", "--verify")
_HELP = "(see rdc dupes --help)"


def read_removal(words: Words) -> RemovalOptions | None:
    """Read the request; None if nothing is to be removed. Raises UsageError."""
    given = {one.key for one in words.given}
    actions = [key for key in _ACTIONS if key in given]
    if not actions:
        for key in _NEED_ACTION:
            if key in given:
                raise UsageError(f"{key} is for --delete, --move or --symlink {_HELP}")
        return None
    if len(actions) > 1:
        raise UsageError(f"{' and '.join(actions)} exclude each other {_HELP}")
    for key in _NOT_WITH_ACTION:
        if key in given:
            raise UsageError(f"{key} and {actions[0]} exclude each other {_HELP}")
    moved, journal = words.last("--move"), words.last("--journal")
    return RemovalOptions(
        action=_ACTIONS[actions[0]],
        apply=words.has("--apply") and not words.has("-n", "--dry-run"),
        rules=tuple(map(_rule, words.values("--keep"))),
        keep_in=_directories(words, "--keep-in"),
        only_in=_directories(words, "--only-in"),
        destination=b"" if moved is None else _path("--move", moved.value),
        journal=None if journal is None else _path("--journal", journal.value),
    )


def _rule(text: str) -> KeepRule:
    if text.startswith("in:"):
        return KeepRule(KeepOrder.IN, os.path.realpath(_path("--keep=in:DIR", text[3:], directory=True)))
    orders = [order.value for order in KeepOrder if order is not KeepOrder.IN]
    if text not in orders:
        raise UsageError(f"--keep={text}: expected {', '.join(orders)} or in:DIR {_HELP}")
    return KeepRule(KeepOrder(text))


def _directories(words: Words, key: str) -> tuple[bytes, ...]:
    return tuple(_path(key, value, directory=True) for value in words.values(key))


def _path(key: str, value: str, *, directory: bool = False) -> bytes:
    if not value or "\0" in value:
        raise UsageError(f"{key} needs a path without NUL characters {_HELP}")
    path = os.fsencode(value)
    # A rule about a misspelt directory would protect nothing.
    if directory and not os.path.isdir(path):
        raise UsageError(f"{key}: there is no directory {value} {_HELP}")
    return path


# `rdc dupes PATH...`: groups of identical files.

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
  rdc dupes photos/                           groups of identical files, largest waste first
  rdc dupes --min-size=1M a/ b/ c.iso         among several places, large files only
  rdc dupes -0 --sort=path mail/          NUL-separated, for scripts
  rdc dupes --delete --keep=oldest photos/
                                          show what would be deleted; with --apply, delete it

Files are compared by size, then by their first and last blocks, and only then by all of their content. Names
of one file (hard links) count as one file. Links are not followed. Nothing is changed without --apply. At
least one file of each set stays, and each is compared byte by byte with it right before it goes.
"""

_FORMATS = ("--null", "--csv", "--json")


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc dupes` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc dupes")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    if not parsed.operands:
        raise UsageError("rdc dupes needs a file or directory (see rdc dupes --help)")
    removal = read_removal(parsed)
    form = parsed.only(_FORMATS, "rdc dupes")
    options = _options(parsed, environment)
    json, quiet = form == "--json", parsed.has("--quiet")
    output: Output
    if removal is not None:
        output = _removal_output(removal, environment, json=json, quiet=quiet)
        return perform(output, lambda: _remove(parsed, removal, options, environment, output)).exit
    if json:
        here = _working_directory()
        output = json_output(environment, **({} if here is None else {"cwd": here}))
    else:
        from rdc.duplicates.report import duplicates_summary, listed_duplicates

        output = Listing(environment, partial(listed_duplicates, form=form), duplicates_summary, quiet=quiet)
    return perform(output, lambda: _find(parsed, options, output)).exit


def _working_directory() -> bytes | None:
    """Return the working directory, or None if it was removed."""
    try:
        return os.getcwdb()
    except OSError:
        return None


def _find(words: Words, options: DuplicateOptions, reporter: Output) -> DuplicateReport:
    from rdc.library.duplicates import dupes

    with read_choice(words).store() as catalog:
        return dupes(words.operands, options, reporter=reporter, catalog=catalog)


def _removal_output(options: RemovalOptions, environment: Environment, *, json: bool, quiet: bool) -> Output:
    if json:
        return json_output(environment, dry_run=not options.apply)
    from rdc.duplicates.report import DedupeStyle, DedupeTerminal

    style = DedupeStyle(not options.apply, quiet=quiet, removal=options.action)
    progress = environment.progress(quiet=quiet, scrolling=environment.stdout_is_terminal)
    return DedupeTerminal(style, environment.data, environment.talk, progress)


def _remove(
    words: Words,
    removal: RemovalOptions,
    options: DuplicateOptions,
    environment: Environment,
    reporter: Output,
) -> DedupeReport:
    from rdc.library.duplicates import remove_duplicates

    paths = [os.fsencode(operand) for operand in words.operands]
    with read_choice(words).store() as catalog:
        return remove_duplicates(
            paths, removal, options, catalog=catalog, reporter=reporter, environ=environment.environ
        )


def _options(words: Words, environment: Environment) -> DuplicateOptions:
    order, least = words.value("--sort"), words.size("--min-size")
    if order is not None and order not in _ORDERS:
        raise UsageError(f"--sort={order}: expected {', '.join(_ORDERS)} (see rdc dupes --help)")
    return DuplicateOptions(
        rules=read_rules(words, lambda name: read_rule_file(name, environment)),
        min_size=0 if words.has("--empty") else 1 if least is None else least,
        max_size=words.size("--max-size"),
        one_file_system=words.has("--one-file-system"),
        links=words.has("--links"),
        verify=words.has("--verify"),
        depth=read_depth(words),
        max_rate=read_max_rate(words),
        order=DuplicateOrder.WASTE if order is None else DuplicateOrder(order),
    )
