"""`rdc store put|list|forget|gc|verify|pack`: keeps old states of directories in a store."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.options.own_places import CATALOG_GROUP, read_choice
from rdc.cli.options.shared_options import FILTER_GROUP, read_rule_file, read_rules
from rdc.cli.verb import HelpText, json_output, perform, reporting, reporting_usage, short_help
from rdc.errors import ExitCode, UsageError
from rdc.lean.records import replace
from rdc.model.options import Option
from rdc.store.records import ForgetOptions, ForgetReport, GcOptions, StoreOptions
from rdc.store.report import StoreTerminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rdc.report.output import Output
    from rdc.store.records import StoreReport

SUMMARY = "keep snapshots of a directory; each costs what a sync would send"

SUBVERBS = ("put", "list", "forget", "gc", "verify", "pack")

_PUT = "rdc store put SRC STORE adds a snapshot, and makes the store if it is missing"
_RESTORE = "to restore the newest snapshot, write: rdc sync STORE/@latest/ DST/"
_FREE = "rdc store gc STORE frees the space of forgotten snapshots, and rdc store forget forgets them"

_OTHER_NAMES = {
    "backup": _PUT,
    "create": _PUT,
    "init": _PUT,
    "restore": _RESTORE,
    "extract": _RESTORE,
    "snapshots": "rdc store list STORE lists the snapshots",
    "ls": "to list a snapshot, write: rdc sync STORE/@17/",
    "mount": "rdc sync STORE/@17/ lists a snapshot, and rdc sync STORE/@17/docs/ DST/ restores a part",
    "unlock": "a lock ends with the run that holds it, so there is none to remove",
    "stats": "rdc store list STORE shows what each snapshot holds and added",
    "info": "rdc store list STORE shows what each snapshot holds and added",
    "prune": _FREE,
    "compact": _FREE,
    "delete": "rdc store forget STORE @17 --apply forgets snapshot 17",
    "check": "rdc store verify --read=100% STORE reads everything",
    "diff": "to compare two snapshots, write: rdc check STORE/@17/ STORE/@18/",
    "copy": "to copy the whole store, write: rdc sync STORE/ DST/",
}
"""The rdc commands that do the work of restic's and borg's verbs."""

OPTIONS = (
    OptionGroup(
        "put",
        (
            Option(
                ("--name",),
                "the snapshot's series (default: the last part of SRC's path)",
                "NAME",
                common=True,
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
                "store changed parts whole, not as deltas",
                note="""A difference depends on what it was made against. Without differences, what a snapshot
                    adds is many times larger.""",
            ),
            Option(
                ("--heal",),
                "also read unchanged files, and store damaged chunks again",
                note="""What `rdc store verify` reports as damaged is whole again in all snapshots if SRC
                    still has it. Nothing is removed from the store.""",
            ),
            Option(
                ("--force-empty",),
                "put SRC even if it is empty and its last snapshot is not",
                note="""Without it, such a put ends with exit code 11 and adds nothing: the file system of SRC
                    may not be mounted.""",
                example="rdc store put --force-empty ~/data /backup/st",
            ),
            Option(
                ("--publish",),
                "write an index, so that any web server can publish the store",
                note="""It is signed if you have a key (`rdc keys new`). All users of this machine may
                    read the store then. Every later put, forget and gc writes the index again.""",
                example="rdc store put --publish ~/release /srv/www/st",
            ),
        ),
    ),
    OptionGroup(
        "forget",
        (
            Option(
                ("--retain",),
                "24h,7d: keep the newest of each of 24 hours and of each of 7 days",
                "RULES",
                common=True,
                note="""Numbers with h, d, w, m or y, for hours, days, weeks, months and years by local time.
                    Periods without a snapshot do not count. Each series is looked at by itself, and its
                    newest snapshot is always kept, and so is its newest one without problems. One whose put
                    could not read everything stands for a period only if that has no other.""",
                example="rdc store forget --retain=24h,7d,4w,12m --apply /backup/st",
            ),
            Option(
                ("--apply",),
                "do it; without --apply, list the snapshots that would be forgotten",
                common=True,
            ),
        ),
    ),
    OptionGroup(
        "gc",
        (
            Option(
                ("--wait",),
                "wait at most SECONDS for running puts, restores and checks (default: 60)",
                "SECONDS",
                note="Packs are removed while neither runs, which takes moments.",
                example="rdc store gc --wait=600 /backup/st",
            ),
            Option(("--exclusive",), "assume that nothing else uses a store on a file system without locks"),
        ),
    ),
    OptionGroup(
        "verify",
        (
            Option(
                ("--read",),
                "also read PERCENT of the contents, first what was read longest ago",
                "PERCENT",
                common=True,
                note="""Without it, only the directories of packs and the trees are read: that shows whether
                    each chunk is there, not whether it is sound. `--read=100%` reads everything.""",
                example="rdc store verify --read=5% /backup/st",
            ),
        ),
    ),
    OptionGroup(
        "pack",
        (
            Option(
                ("-o", "--output"),
                "write FILE",
                "FILE",
                note="""Needed. An existing file is replaced if it is one of this kind.""",
                example="rdc store pack /backup/st @17..@18 -o update",
            ),
        ),
    ),
    FILTER_GROUP,
    CATALOG_GROUP,
    OptionGroup(
        "Show",
        (
            Option(("-q", "--quiet"), "show only errors and lists"),
            Option(("--json",), "print one JSON event per line on stdout instead"),
            HELP,
        ),
    ),
)

_USAGE = {
    "put": "rdc store put [OPTIONS] SRC STORE",
    "list": "rdc store list [--json] STORE",
    "forget": "rdc store forget --retain=RULES [--apply] STORE\n"
    "       rdc store forget [--apply] STORE @NUMBER...",
    "gc": "rdc store gc [--wait=SECONDS] STORE",
    "verify": "rdc store verify [--read=PERCENT] STORE",
    "pack": "rdc store pack STORE [@NUMBER..]@NUMBER -o FILE",
}

_EXAMPLES = {
    "put": """\
  rdc store put ~/data /mnt/st           add a snapshot of ~/data; create the store if it is missing
""",
    "list": """\
  rdc store list /mnt/st                 list snapshots, and what forgetting each would free
""",
    "": """\
  rdc sync -n --delete /mnt/st/@1/ dst/  show what restoring snapshot 1 would change
  rdc sync host:/mnt/st/@latest/docs/ docs/
                                         restore one directory over ssh
  rdc check /mnt/st/@1/ /mnt/st/@2/      show what differs between two snapshots
""",
    "forget": """\
  rdc store forget --retain=24h,7d,4w,12m /mnt/st
                                         show which snapshots would be forgotten; --apply does it
""",
    "gc": """\
  rdc store gc /mnt/st                   free the space that no snapshot uses
""",
    "verify": """\
  rdc store verify --read=1% /mnt/st     check that nothing is missing, and read 1% of the contents
""",
    "pack": """\
  rdc store pack /mnt/st @17..@18 -o up  write what 18 has beyond 17 to the file up
  rdc sync up/@18/ dst/                  update dst/, which is as in 17, from up
""",
}
"""Examples by subverb, in order of use. Those of "" are of other verbs."""


def _introduction(usages: Iterable[str], examples: Iterable[str]) -> str:
    return f"Usage: {f'{chr(10)}       '.join(usages)}\n\nExamples:\n{''.join(examples)}"


_INTRODUCTION = (
    _introduction(_USAGE.values(), _EXAMPLES.values())
    + """
A snapshot has a path: STORE/@17/, STORE/@latest/ or STORE/@2026-11-28/ (the last one of that day or before),
and STORE/@data/latest/ if there are several series. To restore, sync from that path; only differences are
written.

A store is a directory on this machine, which stores once what snapshots share. It is not encrypted.
"""
)

_CLOSING = """
Exit codes: 0 done, 1 usage, 11 disk full, or SRC lost all its entries, 20 interrupted, 23 some files could
not be read or the store is damaged, 24 some files changed while they were read, 40 the store is in use.
"""

help_text = HelpText(
    _INTRODUCTION,
    OPTIONS,
    _CLOSING,
    short_help("store", _INTRODUCTION),
)

_RANGE = re.compile(r"(?:@([0-9]{1,18})\.\.)?@([0-9]{1,18})")

_PUT_KEYS = frozenset(option.key for group in (OPTIONS[0], FILTER_GROUP) for option in group.options)
_OF_SUBVERB = {
    "put": _PUT_KEYS,
    "list": frozenset[str](),
    "forget": frozenset(("--retain", "--apply")),
    "gc": frozenset(("--wait", "--exclusive")),
    "verify": frozenset(("--read",)),
    "pack": frozenset(("--output",)),
}
_OWN_KEYS = frozenset[str]().union(*_OF_SUBVERB.values())


def subverb_help(what: str) -> HelpText:
    """Return the help of a subverb: its usage, its examples, and the options that it takes."""
    others = _OWN_KEYS - _OF_SUBVERB[what]
    introduction = _introduction([_USAGE[what]], [_EXAMPLES[what]])
    groups = (
        replace(group, options=tuple(option for option in group.options if option.key not in others))
        for group in OPTIONS
        if what == "put" or group is not CATALOG_GROUP
    )
    return HelpText(
        introduction,
        tuple(group for group in groups if group.options),
        _CLOSING,
    )


def parse_store(words: Sequence[str]) -> Words:
    """Parse the words after `rdc store`. Raises UsageError."""
    parsed = parse_words(words, OPTIONS, {}, command="rdc store")
    if parsed.has("--help"):
        return parsed
    what = parsed.operands[0] if parsed.operands else ""
    if what in _OTHER_NAMES:
        raise UsageError(f"rdc store has no {what}: {_OTHER_NAMES[what]}")
    if what not in SUBVERBS:
        raise UsageError(f"rdc store is followed by {', '.join(SUBVERBS)} (see rdc store --help)")
    for given in parsed.given:
        if given.key in _OWN_KEYS - _OF_SUBVERB[what]:
            raise UsageError(f"{given.key} does not apply to rdc store {what}; leave it out")
    wanted = ("SRC", "STORE") if what == "put" else ("STORE",)
    found = parsed.operands[1:]
    if what == "pack" and (len(found) != 2 or not parsed.has("--output")):
        raise UsageError("rdc store pack takes STORE, a snapshot such as @17..@18, and -o FILE")
    if what in ("forget", "pack"):
        found = found[:1]
    if len(found) != len(wanted):
        message = f"rdc store {what} takes {' and '.join(wanted)}; {len(found)} given"
        raise parsed.missing(message, f"rdc store {what}")
    for operand, name in zip(found, wanted, strict=True):
        _check_local(operand, name, what)
    return parsed


def _check_local(operand: str, name: str, what: str) -> None:
    if not operand or "\0" in operand:
        raise UsageError(f"{name} is empty or has a NUL character; for the current directory, write .")
    from rdc.model.location import parse_location

    host = parse_location(operand).host
    if host is not None and not os.path.exists(operand):
        advice = f"run rdc store {what} on {host}"
        if name == "SRC":
            advice = f"sync from {host} to a directory here, and put that"
        elif what == "put":
            advice = f"put into a store here, and copy it: rdc sync st/ {operand.rstrip('/')}/"
        raise UsageError(f"{operand}: rdc store works on directories of this machine; {advice}")


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
        heal=words.has("--heal"),
        force_empty=words.has("--force-empty"),
        publish=words.has("--publish"),
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


def read_numbers(words: Words) -> tuple[int, ...]:
    """Read the snapshots after the store, such as @17. Raises UsageError."""
    found = []
    for text in words.operands[2:]:
        if not (text.startswith("@") and text[1:].isdecimal() and text.isascii()):
            from rdc.store.place import typed

            store = typed(os.fsencode(words.operands[1]))
            raise UsageError(
                f"{text}: expected the number of a snapshot, such as @17; see rdc store list {store}"
            )
        found.append(int(text[1:]))
    return tuple(found)


def read_range(words: Words) -> tuple[int | None, int]:
    """Read the older snapshot, if there is one, and the one to pack, such as @17..@18. Raises UsageError."""
    text = words.operands[2]
    found = _RANGE.fullmatch(text)
    if found is None:
        raise UsageError(f"{text}: expected a snapshot such as @18, or two such as @17..@18")
    return None if found[1] is None else int(found[1]), int(found[2])


def read_gc(words: Words) -> GcOptions:
    """Read the options of gc. Raises UsageError."""
    wait = words.last("--wait")
    try:
        seconds = 60.0 if wait is None else float(wait.value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 86400:
        shown = "" if wait is None else wait.value
        raise UsageError(f"--wait={shown}: expected 0 to 86400 seconds")
    return GcOptions(wait=seconds, exclusive=words.has("--exclusive"))


def run(
    words: Sequence[str], environment: Environment, *, putter: Callable[..., StoreReport] | None = None
) -> ExitCode:
    """Run `rdc store` with the words after it. `putter`: in place of rdc.store_put. Raises RdcError, which
    the caller prints."""
    with reporting_usage(words, environment):
        parsed = parse_store(words)
        first = parsed.operands[0] if parsed.operands else ""
        text = subverb_help(first) if first in SUBVERBS else help_text
        if text.shown(parsed, environment):
            return ExitCode.OK
        what, *operands = parsed.operands
        options = read_options(parsed, environment) if what == "put" else StoreOptions()
        share = read_share(parsed)
        retain = parsed.last("--retain")
        forgetting = ForgetOptions(
            retain=None if retain is None else retain.value,
            numbers=read_numbers(parsed) if what == "forget" else (),
            apply=parsed.has("--apply"),
        )
        collecting = read_gc(parsed)
        base, number = read_range(parsed) if what == "pack" else (None, 0)
    quiet = parsed.has("--quiet")
    output: Output
    if parsed.has("--json"):
        output = json_output(environment)
    else:
        bar = None if what in ("list", "forget") else environment.progress(quiet=quiet)
        output = StoreTerminal(environment.data, environment.talk, bar, quiet=quiet)
    if what == "put":
        return _put(operands[0], operands[1], options, parsed, output, putter)
    if what == "forget":
        return _forget(operands[0], forgetting, output)
    if what == "gc":
        return _gc(operands[0], collecting, output)
    if what == "pack":
        return _pack(operands[0], number, base, parsed.value("--output") or "", output)
    return _list(operands[0], output) if what == "list" else _verify(operands[0], share, output, environment)


def _put(
    source: str,
    store: str,
    options: StoreOptions,
    words: Words,
    output: Output,
    putter: Callable[..., StoreReport] | None,
) -> ExitCode:
    from rdc.cli.verb import stop_requests
    from rdc.library.stores import store_put

    with read_choice(words).store() as catalog, stop_requests() as stop:
        report = perform(
            output,
            lambda: (putter or store_put)(
                source, store, options, reporter=output, catalog=catalog, stop=stop
            ),
        )
    return report.exit


def _list(store: str, output: Output) -> ExitCode:
    from rdc.progress import Problem
    from rdc.store.listing import list_snapshots

    with reporting(output):
        output.start()
        listed = list_snapshots(os.fsencode(store), alone=True)
        for snapshot in listed.found:
            output(snapshot)
        for error in listed.errors:
            output(Problem(error.code, error.path_bytes, str(error)))
    return ExitCode.PARTIAL if listed.errors else ExitCode.OK


def _forget(store: str, options: ForgetOptions, output: Output) -> ExitCode:
    from rdc.library.stores import forget_snapshots
    from rdc.store.listing import list_snapshots

    def forget() -> ForgetReport:
        listed = list_snapshots(os.fsencode(store), alone=False).found
        report = forget_snapshots(store, options)
        for snapshot in listed:
            if snapshot.number in report.forgotten:
                output(snapshot)
        return report

    perform(output, forget)
    return ExitCode.OK


def _gc(store: str, options: GcOptions, output: Output) -> ExitCode:
    from rdc.cli.verb import stop_requests
    from rdc.library.stores import clean_store

    with stop_requests() as stop:
        perform(output, lambda: clean_store(store, options, reporter=output, stop=stop))
    return ExitCode.OK


def _pack(store: str, number: int, base: int | None, to: str, output: Output) -> ExitCode:
    from rdc.cli.verb import stop_requests
    from rdc.library.stores import store_pack

    with stop_requests() as stop:
        perform(output, lambda: store_pack(store, number, to, base=base, stop=stop))
    return ExitCode.OK


def _verify(store: str, share: float | None, output: Output, environment: Environment) -> ExitCode:
    from rdc.catalog.catalog import catalog_directory
    from rdc.library.stores import verify_store

    notes = catalog_directory(environment.environ)
    return perform(output, lambda: verify_store(store, share, reporter=output, notes=notes)).exit
