"""`rdc unite LEFT RIGHT`: two-way sync of two directories that both change."""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment, OptionGroup, Words, parse_words
from rdc.cli.options.shared_options import FILTER_GROUP, read_rules
from rdc.cli.verb import HelpText, json_output, perform, reporting, reporting_usage, stop_requests
from rdc.errors import ExitCode, UsageError
from rdc.lean.records import dataclass
from rdc.model.options import Option, parse_keep_undo
from rdc.model.selection import FilterRule
from rdc.uniting.records import COPIES, GUARD_PERCENT, Prefer, Resolution, Resolve, UniteOptions

_FILTERS = tuple(option for option in FILTER_GROUP.options if option.key in ("--exclude", "--include"))

UNITE_OPTIONS = (
    OptionGroup(
        "What is done",
        (
            Option(("-n", "--dry-run"), "show what would happen; write nothing, not even the state"),
            Option(
                ("--status",),
                "show the last run and its conflicts; look at no file",
                note="""It reads what the last run left in `.rdc-unite`. Files changed since are not looked
                at.""",
            ),
            Option(
                ("--forget",),
                "forget the pair: the next run is a first one",
                note="""What both sides remember of each other is removed. No file is touched. The next run
                deletes nothing, and what differs then is a conflict.""",
            ),
            Option(
                ("-c", "--checksum"),
                "compare files by content that both sides have and that no run has seen yet",
                note="""Without it, such files are equal if size and modification time are, as in a first
                run. Files that changed on both sides are always compared by content.""",
            ),
            Option(
                ("--unit",),
                "a directory name that is one unit, like .git; repeatable",
                "NAME",
                note="""A unit that both sides changed is one conflict, and nothing in it moves. `.git`,
                `.hg`, `.svn`, `.jj` and `.bzr` are units anyway.""",
                example="--unit=photos.lrdata ~/photos /mnt/photos",
            ),
            Option(("--no-fsync",), "do not wait for the disk; a power cut may cost what this run wrote"),
        ),
    ),
    OptionGroup(
        "Conflicts (both versions stay until you say otherwise)",
        (
            Option(
                ("--prefer",),
                "the version that wins: left, right, newer, older, larger or smaller",
                "WHICH",
                note="""For all conflicts of this run. Where both are equally new or large, the conflict
                stays. The other version is kept for `rdc undo`.""",
                example="--prefer=newer ~/work /mnt/work",
            ),
            Option(
                ("--resolve",),
                "solve the conflicts at and below PATH: left, right or both; repeatable",
                "PATH=HOW",
                note="""PATH is relative to both directories. `both` leaves the newer version its name and
                gives the older one a name of its own, as `--keep-both` does.""",
                example="--resolve=budget.ods=left ~/work /mnt/work",
            ),
            Option(
                ("--keep-both",),
                "give the older version of each file a name of its own, on both sides",
                note="""The name is `stem.conflict-HOST-YYYYMMDD-HHMMSS.ext`, with the time of that version
                in UTC. A file that has such a name gets no second one.""",
            ),
            Option(
                ("--max-copies",),
                f"give at most N files such names (default: {COPIES})",
                "N",
                example="--keep-both --max-copies=100 ~/work /mnt/work",
            ),
        ),
    ),
    OptionGroup(
        "Guards",
        (
            Option(
                ("--guard",),
                f"stop before more than PERCENT of a side is deleted or replaced (default: {GUARD_PERCENT})",
                "PERCENT",
                note="A side with fewer than 100 entries is not guarded. Renamed entries count as kept.",
                example="--guard=100 ~/work /mnt/work",
            ),
            Option(
                ("--force-empty",),
                "delete everything at the other side of a directory that is empty now",
                note="""Without it, the run stops with 11 where a directory is empty that had entries, as one
                that is not mounted.""",
            ),
            Option(
                ("--keep-undo",),
                "keep what rdc undo needs, at each side (default: 7d)",
                "SIZE|DAYS",
                example="--keep-undo=30d ~/work /mnt/work",
            ),
            Option(("--no-undo",), "keep nothing of what is replaced or deleted"),
        ),
    ),
    OptionGroup("Choosing files (give the same at each run)", _FILTERS),
    OptionGroup(
        "What is shown",
        (
            Option(("-q", "--quiet"), "show nothing but conflicts and errors"),
            Option(("-v", "--verbose"), "name each entry that changes"),
            Option(("--json",), "one JSON event a line on stdout instead"),
            Option(("--help",), "show this text"),
        ),
    ),
)

_LATER = "rdc unite does not have it yet"

REFUSED = {
    "--watch": f"{_LATER}; run it again and again, as by cron",
    "--merge": f"{_LATER}; solve conflicts with --resolve",
    "--hard-links": f"{_LATER}; hard links are copied as separate files",
    "-H": f"{_LATER}; hard links are copied as separate files",
    "--acls": f"{_LATER}",
    "-A": f"{_LATER}",
    "--xattrs": f"{_LATER}",
    "-X": f"{_LATER}",
    "--owner": f"{_LATER}; files belong to whoever runs it",
    "--delete": "deletions of each side go to the other anyway; what is new is never deleted",
    "--update": "no clock decides; --prefer=newer solves conflicts so",
    "-u": "no clock decides; --prefer=newer solves conflicts so",
    "--inplace": "files are always replaced whole",
    "--append": "files are always replaced whole",
    "--backup": "each side keeps old versions for rdc undo: --keep-undo",
    "-b": "each side keeps old versions for rdc undo: --keep-undo",
    "--files-from": "a pair is always united whole; leave entries out with --exclude",
    "--link-dest": "both sides hold all their files",
    "--copy-dest": "both sides hold all their files",
    "--compare-dest": "both sides hold all their files",
    "--fake-super": f"{_LATER}",
    "--max-delete": "--guard=PERCENT bounds deletions",
    "--resync": "there is nothing to repair: a lost or damaged state blocks no run; --forget starts over",
}


@dataclass(frozen=True, slots=True)
class UniteRequest:
    """The checked command line of `rdc unite`."""

    left: str
    right: str
    options: UniteOptions
    status: bool
    forget: bool
    quiet: bool
    verbose: bool
    json: bool


OPTIONS = UNITE_OPTIONS

SUMMARY = "two-way sync of two directories that both change"

_INTRODUCTION = """\
Usage: rdc unite [OPTIONS] LEFT RIGHT

Examples:
  rdc unite -n ~/work /mnt/stick/work
                               show what would go which way; write nothing
  rdc unite ~/work /mnt/stick/work
                               edits, renames and deletions of each side go to the other
  rdc unite ~/work /mnt/stick/work --resolve=plan.txt=left
                               solve a conflict: the left version of plan.txt goes to the right
  rdc undo ~/work              take back what the last run did at that side
  rdc unite --status ~/work /mnt/stick/work
                               the last run, and conflicts that are left

Two-way sync. What only one side changed goes to the other. What both sides changed is a conflict: both
versions stay as they are, the rest goes on, and each run names it until it is solved. No clock decides unless
--prefer asks for it. What both had in common is remembered in .rdc-unite at both sides. Without it, as in the
first run, nothing is deleted. Both are directories of this machine.
"""

_CLOSING = """
Exit codes: 0 both sides are the same, 1 usage, 11 a directory is gone or empty, or a disk full,
20 interrupted, 23 some entries were held or failed, 25 the guard stopped the run, 40 another run works here,
41 conflicts left.
"""

help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING)


def parse_unite(words: Sequence[str]) -> Words:
    """Parse the words after `rdc unite`. Raises UsageError."""
    return parse_words(words, UNITE_OPTIONS, REFUSED, command="rdc unite")


def read_unite(words: Words) -> UniteRequest:
    """Read the request. Raises UsageError."""
    if len(words.operands) != 2:
        raise UsageError(
            f"LEFT and RIGHT are needed, two directories; {len(words.operands)} given (see rdc unite --help)"
        )
    for operand in words.operands:
        if not operand or "\0" in operand:
            raise UsageError("a directory is empty or has a NUL character; for the current one, write .")
        check_local(operand)
    if words.has("--status") and words.has("--forget"):
        raise UsageError("--status and --forget exclude each other")
    if words.has("--keep-undo") and words.has("--no-undo"):
        raise UsageError("--keep-undo and --no-undo exclude each other")
    left, right = words.operands
    return UniteRequest(
        left,
        right,
        _read_options(words),
        status=words.has("--status"),
        forget=words.has("--forget"),
        quiet=words.has("--quiet"),
        verbose=words.has("--verbose"),
        json=words.has("--json"),
    )


def check_local(operand: str) -> None:
    """Raise UsageError for a directory of another machine."""
    from rdc.model.location import parse_location

    if parse_location(operand).host is not None and not os.path.exists(operand):
        raise UsageError(
            f"{operand}: rdc unite works on directories of this machine alone yet; mount the other one, as by"
            " sshfs, or write ./ in front of a local name with a colon"
        )


def _read_options(words: Words) -> UniteOptions:
    rules = read_rules(words, _no_rule_file)
    last = words.last("--keep-undo")
    try:
        keep = parse_keep_undo(last.value) if last is not None else UniteOptions().keep_undo
    except ValueError as error:
        raise UsageError(f"--keep-undo={last.value if last else ''}: {error}") from error
    if words.has("--no-undo"):
        keep = None
    return UniteOptions(
        dry_run=words.has("--dry-run"),
        prefer=_read_prefer(words),
        resolve=tuple(_read_resolve(given.value) for given in words.given if given.key == "--resolve"),
        keep_both=words.has("--keep-both"),
        max_copies=_read_number(words, "--max-copies", COPIES, 1_000_000),
        units=tuple(os.fsencode(given.value) for given in words.given if given.key == "--unit"),
        rules=tuple(rule for rule in rules if isinstance(rule, FilterRule)),
        checksum=words.has("--checksum"),
        guard=_read_number(words, "--guard", GUARD_PERCENT, 100),
        force_empty=words.has("--force-empty"),
        keep_undo=keep,
        fsync=not words.has("--no-fsync"),
    )


def _no_rule_file(name: str) -> bytes:
    raise UsageError(f"{name}: rdc unite reads no files of rules yet; use --exclude")


def _read_prefer(words: Words) -> Prefer | None:
    last = words.last("--prefer")
    if last is None:
        return None
    try:
        return Prefer(last.value)
    except ValueError:
        choices = ", ".join(each.value for each in Prefer)
        raise UsageError(f"--prefer={last.value}: one of these is expected: {choices}") from None


def _read_resolve(value: str) -> Resolve:
    path, equals, how = value.rpartition("=")
    choices = ", ".join(each.value for each in Resolution)
    if not equals or not path.strip("/") or how not in {each.value for each in Resolution}:
        raise UsageError(
            f"--resolve={value}: a path, = and one of these are expected: {choices}; such as"
            " --resolve=notes.txt=left"
        )
    return Resolve(os.fsencode(path.strip("/")), Resolution(how))


def _read_number(words: Words, key: str, default: int, most: int) -> int:
    last = words.last(key)
    if last is None:
        return default
    text = last.value.removesuffix("%") if key == "--guard" else last.value
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most):
        raise UsageError(f"{key}={last.value}: a number of 0 to {most:,} is expected")
    return int(text)


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc unite` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, environment):
        parsed = parse_unite(words)
        if help_text.shown(parsed, environment):
            return ExitCode.OK
        request = read_unite(parsed)
    from rdc.library.trees import forget_united, unite, unite_status
    from rdc.uniting.report import UniteTerminal

    output = (
        json_output(environment, dry_run=request.options.dry_run)
        if request.json
        else UniteTerminal(
            environment.data,
            environment.talk,
            (request.left, request.right),
            quiet=request.quiet,
            items=request.verbose or (request.options.dry_run and not request.quiet),
            dry_run=request.options.dry_run,
        )
    )
    if request.forget:
        removed = forget_united(request.left, request.right)
        if not request.quiet:
            environment.talk("forgotten; the next run is a first one\n" if removed else "nothing to forget\n")
        return ExitCode.OK
    if request.status:
        with reporting(output):
            output.start()
            pair = unite_status(request.left, request.right)
            if pair is not None:
                output(pair)
        if pair is None:
            if not (request.json or request.quiet):
                environment.talk("these two were not united yet, or the state is lost\n")
            return ExitCode.OK
        return ExitCode.CONFLICTS if pair.conflicts else ExitCode.OK
    with stop_requests() as stop:
        report = perform(
            output, lambda: unite(request.left, request.right, request.options, reporter=output, stop=stop)
        )
    return report.exit
