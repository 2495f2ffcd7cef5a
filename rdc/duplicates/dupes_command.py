"""`rdc dupes PATH...`: list groups of identical files, or remove all but one of each."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.options.own_places import CATALOG_GROUP, read_choice
from rdc.cli.options.shared_options import (
    CHOOSE,
    DEPTH,
    FILTER_GROUP,
    MAX_RATE,
    OVERWRITE,
    read_depth,
    read_max_rate,
    read_rule_file,
    read_rules,
)
from rdc.cli.verb import HelpText, json_output, list_output, perform, short_help
from rdc.errors import ExitCode, UsageError, printable
from rdc.limits import SELECTED_LIST_BYTES
from rdc.model.duplicates import (
    Action,
    DedupeReport,
    DuplicateListing,
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
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


# The options of `rdc dupes` that remove duplicates: their table, and the request they are read into.

REMOVAL_GROUP = OptionGroup(
    "Remove duplicates (only shown, unless --apply is given)",
    (
        Option(("--delete",), "delete all files of each group but one", common=True),
        Option(("--move",), "move all but one to DIR, with their paths", "DIR", common=True),
        Option(("--symlink",), "replace all but one with symbolic links to that one", common=True),
        Option(
            ("--apply",),
            "do it; without --apply, show what would be done and the space it frees",
            common=True,
        ),
        Option(("-n", "--dry-run"), "change nothing, even with --apply"),
        Option(
            ("--keep",),
            "which file stays: first (of PATHs as given; the default), newest, oldest,"
            " shortest-path, longest-path or in:DIR",
            "RULE",
            common=True,
        ),
        Option(
            ("--from",),
            "take groups from a report of rdc dupes --json that you reviewed; do not search",
            "REPORT",
            note="""`-` is stdin. Delete from the report what should stay. Only files below the PATHs are
                removed, each compared byte by byte before.""",
        ),
        Option(("--keep-in",), "change nothing below DIR; its files count as copies that stay", "DIR"),
        Option(("--only-in",), "change only files below DIR", "DIR"),
        Option(
            ("--journal",), "record removals in FILE for rdc undo (default: your state directory)", "FILE"
        ),
    ),
)

_ACTIONS = {"--delete": Action.DELETE, "--move": Action.MOVE, "--symlink": Action.SYMLINK}
_NEED_ACTION = ("--apply", "--dry-run", "--keep", "--keep-in", "--only-in", "--journal", "--from")
_NOT_WITH_ACTION = ("--null", "--csv", "--html", "--links", "--verify")
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
    if {"--from", "--reference"} <= given:
        raise UsageError(f"--from and --reference exclude each other: the report has its groups {_HELP}")
    moved, journal = words.last("--move"), words.last("--journal")
    return RemovalOptions(
        action=_ACTIONS[actions[0]],
        apply=words.has("--apply") and not words.has("-n", "--dry-run"),
        rules=tuple(map(_rule, words.values("--keep"))),
        keep_in=(*_directories(words, "--keep-in"), *_directories(words, "--reference")),
        only_in=_directories(words, "--only-in"),
        destination=b"" if moved is None else _path("--move", moved.value),
        journal=None if journal is None else _path("--journal", journal.value),
        across=words.has("--across"),
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
        "Size and place",
        stage=CHOOSE,
        options=(
            Option(
                ("--min-size",),
                "skip files smaller than SIZE (4096, 500K, 2G; default: 1 byte)",
                "SIZE",
                common=True,
            ),
            Option(("--max-size",), "skip files larger than SIZE", "SIZE", common=True),
            Option(("--empty",), "include empty files"),
            Option(
                ("--across",),
                "list only groups with files of more than one PATH",
                common=True,
                note="""A group has files of at least two PATHs. When duplicates are removed, all files below
                the PATH of the one that stays are kept.""",
            ),
            Option(
                ("--reference",),
                "list only files with a copy in DIR; --delete takes all of them, and none in DIR",
                "DIR",
                common=True,
                note="""Each group begins with the file of DIR. `--delete`, `--move` and `--symlink` remove
                all others of the group. Repeatable.""",
            ),
            Option(
                ("--files-from",),
                "read PATHs from FILE, one per line; - is stdin",
                "FILE",
            ),
            Option(("--from0",), "with --files-from: NUL ends each PATH, as of find -print0"),
            Option(("-x", "--one-file-system"), "stay on the file system of each PATH", common=True),
            Option(("--verify",), "also compare files with equal digests byte by byte"),
            DEPTH,
            MAX_RATE,
        ),
    ),
    FILTER_GROUP,
    REMOVAL_GROUP,
    OptionGroup(
        "Show",
        (
            Option(
                ("--sort",),
                f"sort groups by {', '.join(_ORDERS)} (default: {_ORDERS[0]})",
                "ORDER",
                values=_ORDERS,
                common=True,
            ),
            Option(("--links",), "also list other hard links of a file that were found"),
            Option(
                ("-0", "--null"),
                "print unescaped names, a NUL after each and another after each group",
                common=True,
            ),
            Option(("--csv",), "print a CSV table with one row per name", common=True),
            Option(("--json",), "print one JSON event per line", common=True),
            Option(
                ("--html",),
                "write the groups as a self-contained page to FILE, and list nothing",
                "FILE",
                common=True,
                note="""The page needs no network and no script. It shows the folders with most duplicates and
                up to 1.3 MB of groups, in the order of `--sort`. A file that is no such page is replaced only
                with `--overwrite`.""",
            ),
            OVERWRITE,
            Option(("-q", "--quiet"), "show no progress and no summary"),
            HELP,
        ),
    ),
    CATALOG_GROUP,
)

_INTRODUCTION = """\
Usage: rdc dupes [OPTIONS] PATH...

Examples:
  rdc dupes photos/                       groups of identical files, those that waste most first
  rdc dupes --min-size=1M a/ b/ c.iso     files of 1 MiB or more, in two directories and one file
  rdc dupes -0 --sort=path mail/          NUL-separated, for scripts
  rdc dupes --delete --keep=oldest photos/
                                          show which files would go; with --apply, delete them

Files are compared by size, then by their first and last blocks, then by their whole content. Hard links of
one file count as one file, and symbolic links are not followed. Nothing is changed without --apply. One file
of each group always stays; the others are compared with it byte by byte right before they are removed.
"""

_FORMATS = ("--null", "--csv", "--json", "--html")

_OF_OTHER_TOOLS = {
    **dict.fromkeys(
        ("-r", "-R", "--recurse", "--recursive"), "directories are always searched with all below them"
    ),
    "--undo": "rdc dedupe --undo=JOURNAL brings files back; the run that removed them printed the journal",
}
"""Advice for options of other programs and verbs."""


help_text = HelpText(_INTRODUCTION, OPTIONS, short=short_help("dupes", _INTRODUCTION))


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc dupes` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, _OF_OTHER_TOOLS, command="rdc dupes")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    parsed = _with_listed(parsed, environment)
    if not parsed.operands:
        raise parsed.missing("rdc dupes needs a file or directory", "rdc dupes")
    removal = read_removal(parsed)
    form = parsed.only(_FORMATS, "rdc dupes")
    options = _options(parsed, environment)
    json, quiet = form == "--json", parsed.has("--quiet")
    output: Output
    if removal is not None:
        output = _removal_output(removal, environment, json=json, quiet=quiet)
        listing = _listing(parsed, environment)
        return perform(output, lambda: _remove(parsed, removal, options, listing, environment, output)).exit
    if json:
        here = _working_directory()
        output = json_output(environment, **({} if here is None else {"cwd": here}))
    else:
        from rdc.duplicates.report import duplicates_summary, listed_duplicates

        listed = _page_writer(parsed, words) if form == "--html" else partial(listed_duplicates, form=form)
        output = list_output(environment, listed, duplicates_summary, quiet=quiet)
    return perform(output, lambda: _find(parsed, options, output)).exit


def _page_writer(parsed: Words, words: Sequence[str]) -> Callable[[DuplicateReport], Iterable[str]]:
    """Return a function that writes the page of --html and lists nothing. Raises RdcError, before anything is
    searched, if the page may not be written."""
    import shlex

    from rdc.duplicates.page_report import DUPLICATES_PAGE, duplicates_page
    from rdc.files.own.output_file import Output as OutputFile
    from rdc.files.own.output_file import claim_outputs, write_output
    from rdc.report.html_page import PageOrigin

    name = parsed.value("--html")
    if not name:
        raise UsageError("--html needs a file, such as: --html=dupes.html")
    page = OutputFile(os.fsencode(name), DUPLICATES_PAGE, parsed.has("--overwrite"))
    claim_outputs([page]).check_below(map(os.fsencode, parsed.operands))
    command = shlex.join(["rdc", "dupes", *words])

    def write(report: DuplicateReport) -> Iterable[str]:
        write_output(page, duplicates_page(report, PageOrigin.here(command)))
        return ()

    return write


def _with_listed(words: Words, environment: Environment) -> Words:
    """Return the words with the PATHs of --files-from as operands. Raises RdcError."""
    given = words.last("--files-from")
    if given is None:
        if words.has("--from0"):
            raise UsageError("--from0 needs --files-from")
        return words
    if not given.value:
        raise UsageError("--files-from needs a file, such as: --files-from=list (or '-' for stdin)")
    data = read_rule_file(given.value, environment, limit=SELECTED_LIST_BYTES, of="paths")
    ends = b"\0" if words.has("--from0") else b"\n"
    listed = [os.fsdecode(name) for name in data.split(ends) if name]
    if any("\0" in name for name in listed):
        raise UsageError(f"{given.value}: a path has a NUL character; add --from0 if NUL ends each path")
    return Words(words.given, (*words.operands, *listed))


def _listing(words: Words, environment: Environment) -> DuplicateListing | None:
    """Return the report of --from; None without it. Raises RdcError."""
    given = words.last("--from")
    if given is None:
        return None
    if not given.value:
        raise UsageError("--from needs a report, such as: --from=dupes.json (or '-' for stdin)")
    from rdc.library.duplicate_groups import read_report

    name = "standard input" if given.value == "-" else printable(given.value)
    return DuplicateListing(read_report(given.value, environment.stdin), name)


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
    progress = environment.progress(quiet=quiet)
    return DedupeTerminal(style, environment.data, environment.talk, progress)


def _remove(
    words: Words,
    removal: RemovalOptions,
    options: DuplicateOptions,
    listing: DuplicateListing | None,
    environment: Environment,
    reporter: Output,
) -> DedupeReport:
    from rdc.library.duplicates import remove_duplicates

    paths = [os.fsencode(operand) for operand in words.operands]
    with read_choice(words).store() as catalog:
        return remove_duplicates(
            paths,
            removal,
            options,
            listing=listing,
            catalog=catalog,
            reporter=reporter,
            environ=environment.environ,
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
        across=words.has("--across"),
        reference=_directories(words, "--reference"),
        order=DuplicateOrder.WASTE if order is None else DuplicateOrder(order),
    )
