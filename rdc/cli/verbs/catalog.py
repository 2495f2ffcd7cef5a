"""`rdc catalog show|prune|forget`: inspects and prunes the catalog of signatures."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import date, timedelta

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.options.own_places import CATALOG_OPTION, read_choice
from rdc.cli.verb import HelpText
from rdc.errors import ExitCode, UsageError, printable
from rdc.model.options import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.catalog import Catalog


SUMMARY = "show, prune or empty the catalog of signatures"

SUBVERBS = ("show", "prune", "forget")

UNUSED_DAYS = 180
"""Days without use after which `prune` drops an entry."""

OPTIONS = (
    OptionGroup(
        "Options",
        (
            CATALOG_OPTION,
            Option(("--unused",), f"prune: drop entries unused for N days (default: {UNUSED_DAYS})", "N"),
            Option(
                ("--max-size",),
                "prune: drop least recently used entries until the catalog fits SIZE (500M, 2G)",
                "SIZE",
            ),
            Option(("--all",), "forget: drop all entries"),
            HELP,
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc catalog show
       rdc catalog prune [--unused=N] [--max-size=SIZE]
       rdc catalog forget PATH...
       rdc catalog forget --all

The catalog stores the signatures of files that rdc has read, so that unchanged files need not be read again.
It never grows beyond 512 MB. You can remove it at any time; files are then read again.

show prints its path and size. prune drops entries of deleted files and unused entries. forget drops the
entries of files and of everything below directories.
"""


help_text = HelpText(_INTRODUCTION, OPTIONS)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc catalog` with the words after it. Raises RdcError, which the caller prints."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc catalog")
    if help_text.shown(parsed, environment):
        return ExitCode.OK
    verbs = {"show": _show, "prune": _prune, "forget": _forget}
    what = parsed.operands[0] if parsed.operands else ""
    if what not in verbs:
        raise UsageError(f"rdc catalog is followed by {', '.join(verbs)} (see rdc catalog --help)")
    with read_choice(parsed).catalog(environment.environ) as catalog:
        try:
            verbs[what](parsed, catalog, environment)
        finally:
            for notice in catalog.take_notices():
                environment.talk(f"rdc: note: {notice}\n")
    return ExitCode.OK


def _show(words: Words, catalog: Catalog, environment: Environment) -> None:
    from rdc.catalog.upkeep import summary
    from rdc.report.output import counted, exact_text, size_text

    _no_operands(words)
    found = summary(catalog)
    if found is None:
        environment.data(f"path       {printable(str(catalog.database.path))} (not there yet)\n")
        return
    lines = [
        f"path       {printable(str(found.path))}",
        f"size       {exact_text(found.bytes)}",
        f"entries    {found.entries:,} (of files of {size_text(found.covered)})",
        f"settled    {counted(found.pairs_in_sync, 'pair of trees', 'pairs of trees')}",
        f"last use   {_day(found.last_used)} (of the oldest entry: {_day(found.first_used)})",
    ]
    environment.data("\n".join(lines) + "\n")


def _prune(words: Words, catalog: Catalog, environment: Environment) -> None:
    from rdc.catalog.upkeep import prune
    from rdc.report.output import counted

    _no_operands(words)
    size = words.size("--max-size")
    if not os.path.exists(catalog.database.path):
        return
    pruned = prune(
        catalog,
        unused_days=words.number("--unused", UNUSED_DAYS, "a number of days is expected", digits=6),
        max_bytes=size,
    )
    environment.talk(
        f"dropped {counted(pruned.gone, 'entry', 'entries')} of files that are gone,"
        f" {pruned.unused:,} unused, {pruned.evicted:,} above the size\n"
    )


def _forget(words: Words, catalog: Catalog, environment: Environment) -> None:
    from rdc.catalog.upkeep import forget, forget_all
    from rdc.report.output import counted

    paths = words.operands[1:]
    if words.has("--all") == bool(paths):
        raise UsageError("rdc catalog forget needs paths, or --all (see rdc catalog --help)")
    if not os.path.exists(catalog.database.path):
        return
    count = sum(forget(catalog, os.fsencode(path)) for path in paths) if paths else forget_all(catalog)
    environment.talk(f"forgot {counted(count, 'entry', 'entries')}\n")


def _no_operands(words: Words) -> None:
    if len(words.operands) > 1:
        raise UsageError(f"rdc catalog {words.operands[0]} takes no {words.operands[1]}")


def _day(day: int | None) -> str:
    if day is None:
        return "never"
    try:
        return (date(1970, 1, 1) + timedelta(days=day)).isoformat()
    except (OverflowError, TypeError):  # a damaged row
        return "unknown"
