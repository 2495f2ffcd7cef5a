"""`rdc store put|list|verify`: keeps old states of directories in a store."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment, OptionGroup, Words, parse_words
from rdc.cli.options.shared_options import (
    CATALOG_GROUP,
    FILTER_GROUP,
    read_choice,
    read_rule_file,
    read_rules,
)
from rdc.cli.verb import HelpText, json_output, perform, reporting, reporting_usage
from rdc.errors import ExitCode, UsageError
from rdc.model.options import Option
from rdc.store.records import StoreOptions
from rdc.store.report import StoreTerminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.report.output import Output

SUMMARY = "keep old states of a directory: a snapshot costs what a sync would send"

SUBVERBS = ("put", "list", "verify")

OPTIONS = (
    OptionGroup(
        "put",
        (
            Option(
                ("--name",),
                "series of the snapshot (default: the last part of SRC's path)",
                "NAME",
                example="rdc store put --name=laptop ~/ /backup/st",
            ),
            Option(("-x", "--one-file-system"), "stay on one file system"),
            Option(
                ("--level",),
                "compression level, 1 to 19 (default: 3)",
                "N",
                note="Level 6 makes first copies 5 to 11 % smaller and takes 2.7 times the CPU time.",
                example="rdc store put --level=6 ~/data /backup/st",
            ),
            Option(
                ("--no-delta",),
                "store changed parts whole, not as differences to the old ones",
                note="""A difference depends on what it was made against. Without differences, what a snapshot
                    adds is many times larger.""",
            ),
        ),
    ),
    OptionGroup(
        "verify",
        (
            Option(
                ("--read",),
                "read PERCENT of the contents, what was read longest ago first",
                "PERCENT",
                note="""Without it, only the directories of packs and the trees are read: that shows whether
                    each chunk is there, not whether it is sound. `--read=100%` reads everything.""",
                example="rdc store verify --read=5% /backup/st",
            ),
        ),
    ),
    FILTER_GROUP,
    CATALOG_GROUP,
    OptionGroup(
        "What is shown",
        (
            Option(("-q", "--quiet"), "show nothing but errors and lists"),
            Option(("--json",), "one JSON event a line on stdout instead"),
            Option(("--help",), "show this text"),
        ),
    ),
)

_INTRODUCTION = """\
Usage: rdc store put [OPTIONS] SRC STORE
       rdc store list [--json] STORE
       rdc store verify [--read=PERCENT] STORE

Examples:
  rdc store put ~/data /backup/st      add a snapshot of ~/data; a missing store is made
  rdc store list /backup/st            list the snapshots
  rdc sync -n --delete /backup/st/@1/ ~/data/
                                       show what restoring snapshot 1 would change; without -n, do it
  rdc sync host:/backup/st/@latest/docs/ docs/
                                       restore one directory over ssh
  rdc check /backup/st/@1/ /backup/st/@2/
                                       show what differs between two snapshots
  rdc store verify --read=1% /backup/st
                                       check all trees, and a hundredth of the contents

A snapshot is a path: STORE/@17/, STORE/@latest/, STORE/@2026-11-28/ (the last one by the end of that day),
and with several series STORE/@data/latest/. Restoring is a sync, so only what differs is written.

A store is a directory on this machine. It is not encrypted: whoever can read it reads every file in it.
"""

_CLOSING = """
Exit codes: 0 done, 1 usage, 11 disk full, 20 interrupted, 23 something could not be read, or the store is
damaged, 24 files changed while they were read, 40 the store is in use.
"""

help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING)

_PUT_KEYS = frozenset(option.key for group in (OPTIONS[0], FILTER_GROUP) for option in group.options)
_VERIFY_KEYS = frozenset(("--read",))
_OF_SUBVERB = {"put": _PUT_KEYS, "list": frozenset[str](), "verify": _VERIFY_KEYS}


def parse_store(words: Sequence[str]) -> Words:
    """Parse the words after `rdc store`. Raises UsageError."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc store")
    if parsed.has("--help"):
        return parsed
    what = parsed.operands[0] if parsed.operands else ""
    if what not in SUBVERBS:
        raise UsageError(f"rdc store is followed by {', '.join(SUBVERBS)} (see rdc store --help)")
    for given in parsed.given:
        if given.key in _PUT_KEYS | _VERIFY_KEYS and given.key not in _OF_SUBVERB[what]:
            raise UsageError(f"{given.key} means nothing to rdc store {what}; leave it out")
    wanted = ("SRC", "STORE") if what == "put" else ("STORE",)
    found = parsed.operands[1:]
    if len(found) != len(wanted):
        raise UsageError(f"rdc store {what} takes {' and '.join(wanted)}, {len(found)} were given")
    for operand, name in zip(found, wanted, strict=True):
        _check_local(operand, name)
    return parsed


def _check_local(operand: str, name: str) -> None:
    if not operand or "\0" in operand:
        raise UsageError(f"{name} is empty or has a NUL character; for the current directory, write .")
    from rdc.model.location import parse_location

    host = parse_location(operand).host
    if host is not None and not os.path.exists(operand):
        raise UsageError(
            f"{operand}: rdc store works on directories of this machine; sync from {host} to a directory"
            " here, and put that"
        )


def read_options(words: Words, environment: Environment) -> StoreOptions:
    """Read the options of put. Raises RdcError."""
    level, name = words.last("--level"), words.last("--name")
    if level is not None and not (level.value.isdigit() and 1 <= int(level.value) <= 19):
        raise UsageError(f"--level={level.value}: expected a number from 1 to 19")
    return StoreOptions(
        name=None if name is None else name.value,
        rules=read_rules(words, lambda file: read_rule_file(file, environment)),
        one_file_system=words.has("--one-file-system"),
        level=3 if level is None else int(level.value),
        deltas=not words.has("--no-delta"),
    )


def read_share(words: Words) -> float | None:
    """Read --read as a share of 1. Raises UsageError."""
    given = words.last("--read")
    if given is None:
        return None
    text = given.value.removesuffix("%")
    try:
        share = float(text) / 100
    except ValueError:
        share = 0.0
    if not 0 < share <= 1:
        raise UsageError(f"--read={given.value}: expected more than 0% and at most 100%, such as --read=1%")
    return share


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc store` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, environment):
        parsed = parse_store(words)
        if help_text.shown(parsed, environment):
            return ExitCode.OK
        what, *operands = parsed.operands
        options = read_options(parsed, environment) if what == "put" else StoreOptions()
        share = read_share(parsed)
    quiet = parsed.has("--quiet")
    output: Output
    if parsed.has("--json"):
        output = json_output(environment)
    else:
        bar = None if what == "list" else environment.progress(quiet=quiet)
        output = StoreTerminal(environment.data, environment.talk, bar, quiet=quiet)
    if what == "put":
        return _put(operands[0], operands[1], options, parsed, output)
    return _list(operands[0], output) if what == "list" else _verify(operands[0], share, output, environment)


def _put(source: str, store: str, options: StoreOptions, words: Words, output: Output) -> ExitCode:
    from rdc.cli.verb import stop_requests
    from rdc.library.stores import store_put

    with read_choice(words).store() as catalog, stop_requests() as stop:
        report = perform(
            output,
            lambda: store_put(source, store, options, reporter=output, catalog=catalog, stop=stop),
        )
    return report.exit


def _list(store: str, output: Output) -> ExitCode:
    from rdc.library.stores import snapshots

    with reporting(output):
        output.start()
        for snapshot in snapshots(store):
            output(snapshot)
    return ExitCode.OK


def _verify(store: str, share: float | None, output: Output, environment: Environment) -> ExitCode:
    from rdc.catalog.catalog import catalog_directory
    from rdc.library.stores import verify_store

    notes = catalog_directory(environment.environ)
    return perform(output, lambda: verify_store(store, share, reporter=output, notes=notes)).exit
