"""`rdc unite LEFT RIGHT`: two-way sync of two directories that both change."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

from rdc.cli.environment import HELP, Environment, OptionGroup, Words, parse_words
from rdc.cli.options.own_places import FAR_OPTIONS, read_keys, read_shell
from rdc.cli.options.shared_options import FILTER_GROUP, read_rules
from rdc.cli.verb import (
    HelpText,
    json_output,
    perform,
    reporting,
    reporting_usage,
    short_help,
    stop_requests,
)
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.lean.records import Record
from rdc.limits import RESCAN_SECONDS
from rdc.model.location import RemoteShell
from rdc.model.options import Option, parse_keep_undo, parse_size_of
from rdc.model.selection import FilterRule
from rdc.uniting.records import (
    BASE_BYTES,
    COPIES,
    GUARD_PERCENT,
    WATCH_SECONDS,
    Prefer,
    Resolution,
    Resolve,
    UniteOptions,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.report.output import Output
    from rdc.uniting.records import UniteReport

_FILTERS = tuple(option for option in FILTER_GROUP.options if option.key in ("--exclude", "--include"))

UNITE_OPTIONS = (
    OptionGroup(
        "Run",
        (
            Option(
                ("-n", "--dry-run"),
                "show what would be done; change nothing, not even the saved state",
                common=True,
            ),
            Option(
                ("--status",),
                "show the last run and its conflicts; read no files",
                common=True,
                note="""It reads what the last run recorded in `.rdc-unite`, and ignores later changes.""",
            ),
            Option(
                ("--forget",),
                "forget the pair; the next run is like the first",
                note="""The common state is removed from both sides. No file is touched. The next run deletes
                nothing, and reports each difference as a conflict.""",
            ),
            Option(
                ("-c", "--checksum"),
                "compare files that are new on both sides by content, not by size and time",
                note="""Without it, such files are equal if size and modification time are, as in a first
                run. Files that changed on both sides are always compared by content.""",
            ),
            Option(
                ("--unit",),
                "handle directories of this NAME as one (.git always is); repeatable",
                "NAME",
                common=True,
                note="""If both sides changed something in such a directory, that is one conflict, and nothing
                in it is synced. `.git`, `.hg`, `.svn`, `.jj` and `.bzr` are always treated so.""",
                example="--unit=photos.lrdata ~/photos /mnt/photos",
            ),
            Option(
                ("-X", "--xattrs"),
                "sync extended attributes (user.*), too",
                note="""Each side's change goes to the other. If both sides changed the attributes of an entry
                differently, that is a conflict. What both had is remembered from a run with this option on,
                and a run without it that changes something forgets it: then an entry without attributes gets
                those of the other side, and different ones are a conflict. Where a file system keeps none,
                they take no part.""",
                example="-X ~/photos nas:photos",
            ),
            Option(
                ("-A", "--acls"),
                "sync POSIX ACLs, too",
                note="""As with `-X`, with users and groups by number, as with `rdc sync -A`. The mode and
                the attributes of an entry with an access ACL are one: what both sides changed differently of
                them is one conflict.""",
                example="-A /srv/team nas:team",
            ),
            Option(
                ("-H", "--hard-links"),
                "sync hard links, too: names of one file stay one file",
                note="""What links or parts names at one side does so at the other one, and the content of
                linked names is sent once. Links never hold up contents: only names that are equal in
                everything become one file. Links of both sides that cannot be made together are a conflict.
                As with `-X`, what both had is remembered from a run with this option on, and a run without
                it that changes something forgets it: then names that are one file at either side become one.
                Names outside and excluded ones do not count. Where a file system has no hard links, they
                take no part.""",
                example="-H ~/photos nas:photos",
            ),
            Option(("--no-fsync",), "do not fsync: faster, but a power failure may lose what this run wrote"),
            Option(
                ("--watch",),
                "keep running: sync again after each change, until Ctrl-C or SIGTERM",
                note="""Both sides are watched. To a side on another machine, one connection stays open, and
                is opened again if it breaks. Each run has all guards. A conflict is reported once, and again
                when it changes.""",
                common=True,
                example="--watch ~/work nas:work",
            ),
            Option(
                ("--rescan",),
                f"with --watch: run at least every SECONDS (default: {WATCH_SECONDS}; 0: only after events)",
                "SECONDS",
                example="--watch --rescan=3600 ~/work nas:work",
            ),
        ),
    ),
    OptionGroup(
        "Conflicts (both versions stay until you say otherwise)",
        (
            Option(
                ("--prefer",),
                "resolve all conflicts with the version that is left, right, newer, older, larger or smaller",
                "WHICH",
                values=("left", "right", "newer", "older", "larger", "smaller"),
                common=True,
                note="""It applies to all conflicts of this run. If both versions are equally new or large,
                the conflict remains. The replaced version is kept for `rdc undo`.""",
                example="--prefer=newer ~/work /mnt/work",
            ),
            Option(
                ("--resolve",),
                "resolve conflicts at and below PATH; HOW is left, right or both; repeatable",
                "PATH=HOW",
                common=True,
                note="""PATH is relative to both directories. With `both`, the newer version keeps
                its name and the older one gets a name of its own, as with `--keep-both`.""",
                example="--resolve=budget.ods=left ~/work /mnt/work",
            ),
            Option(
                ("--merge",),
                "merge texts that both sides edited in different places",
                note="""The result is written to both sides, and the old versions are kept for `rdc undo`.
                Edits of the same lines, or of lines next to each other, stay a conflict. The texts as both
                sides had them are kept from a run with this option on, so merges begin with the next
                one.""",
                example="--merge ~/notes nas:notes",
            ),
            Option(
                ("--keep-base",),
                "with --merge: keep at most SIZE of common texts (default: 64M)",
                "SIZE",
                note="Those that changed last are kept, each of at most 1 MiB.",
                example="--merge --keep-base=500M ~/notes nas:notes",
            ),
            Option(
                ("--keep-both",),
                "keep both versions on both sides; the older one gets a new name",
                common=True,
                note="""The name is `stem.conflict-HOST-YYYYMMDD-HHMMSS.ext`, with the time of that version
                in UTC. A file that has such a name gets no second one. If one side has a file and the other
                one a directory or symlink, the file gets the new name.""",
            ),
            Option(
                ("--max-copies",),
                f"with --keep-both: rename at most N files (default: {COPIES})",
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
                f"stop if more than PERCENT of a side would change (default: {GUARD_PERCENT})",
                "PERCENT",
                common=True,
                note="A side with fewer than 100 entries is not guarded. Renamed entries count as kept.",
                example="--guard=100 ~/work /mnt/work",
            ),
            Option(
                ("--force-empty",),
                "if one side is empty now, delete everything on the other side",
                common=True,
                note="""Without it, the run stops with exit code 11 if a directory that had entries is empty:
                its file system may not be mounted.""",
            ),
            Option(
                ("--ring",),
                "unite two directories that other pairs connect already",
                note="""Without it, the first run of such a pair is rejected. In a ring, an entry that one run
                deletes can return through the other pairs.""",
            ),
            Option(
                ("--keep-undo",),
                "keep replaced and deleted data for rdc undo on each side (default: 7d)",
                "SIZE|DAYS",
                common=True,
                example="--keep-undo=30d ~/work /mnt/work",
            ),
            Option(("--no-undo",), "keep no replaced or deleted data"),
        ),
    ),
    OptionGroup(
        "Choose (remembered with the pair)",
        (
            *_FILTERS,
            Option(
                ("--no-rules",),
                "forget --exclude, --include and --unit of earlier runs",
                note="""A run without these options uses those of the last run that had any. Both sides store
                them, and `--status` shows them. Entries that are excluded later stay on both sides.""",
            ),
        ),
    ),
    OptionGroup("Connect", FAR_OPTIONS),
    OptionGroup(
        "Show",
        (
            Option(("-q", "--quiet"), "show only conflicts and errors"),
            Option(("-v", "--verbose"), "print each changed entry", common=True),
            Option(("--json",), "print one JSON event per line on stdout instead"),
            HELP,
        ),
    ),
)

_LATER = "rdc unite does not support it yet"

REFUSED = {
    "--owner": f"{_LATER}; files belong to whoever runs it",
    "--delete": "deletions of each side go to the other anyway; what is new is never deleted",
    "--update": "times decide nothing in rdc unite; --prefer=newer resolves conflicts by time",
    "-u": "times decide nothing in rdc unite; --prefer=newer resolves conflicts by time",
    "--inplace": "files are always replaced whole",
    "--append": "files are always replaced whole",
    "--backup": "each side keeps old versions for rdc undo: --keep-undo",
    "-b": "each side keeps old versions for rdc undo: --keep-undo",
    "--files-from": "a pair is always united whole; leave entries out with --exclude",
    "--link-dest": "both sides contain all their files",
    "--copy-dest": "both sides contain all their files",
    "--compare-dest": "both sides contain all their files",
    "--fake-super": f"{_LATER}",
    "--max-delete": "--guard=PERCENT bounds deletions",
    "--resync": "there is nothing to repair: a lost or damaged state blocks no run; --forget starts over",
}


class UniteRequest(Record):
    """The checked command line of `rdc unite`."""

    left: str
    right: str
    options: UniteOptions
    status: bool
    forget: bool
    quiet: bool
    verbose: bool
    json: bool
    shell: RemoteShell
    keys: str | None
    connection: tuple[str, ...]
    """The options of the connection as words, for a command that the user is to run next."""

    @property
    def is_remote(self) -> bool:
        """Return whether one directory is on another machine."""
        from rdc.model.location import parse_location

        return any(parse_location(place).host is not None for place in (self.left, self.right))


OPTIONS = UNITE_OPTIONS

SUMMARY = "two-way sync of two directories that both change"

_INTRODUCTION = """\
Usage: rdc unite [OPTIONS] LEFT RIGHT
       rdc unite                 list the pairs and their last results

Examples:
  rdc unite -n ~/work /mnt/work    show what would be done; change nothing
  rdc unite ~/work /mnt/work       apply edits, renames and deletions of each side to the other
  rdc unite ~/work nas:work        the same over ssh; later runs may start on either machine
  rdc unite --resolve=plan.txt=left ~/work /mnt/work
                                   resolve a conflict: the left plan.txt replaces the right one
"""

_MORE_EXAMPLES = """\
  rdc unite --watch ~/work nas:work
                                   keep running: apply each change to the other side
  rdc undo ~/work                  revert the last run on that side
  rdc unite --status ~/work /mnt/work
                                   show the last run and the remaining conflicts
"""

_ABOUT = """
Two-way sync: a change on one side is applied to the other. If both sides changed an entry, that is a
conflict: each side keeps its version, and each run reports it until you resolve it. Times decide nothing
unless --prefer says so. The directory .rdc-unite on both sides records their common state. Without it, as in
a first run, nothing is deleted, and differing files are conflicts. One directory may be on another machine:
host:dir over ssh, or rdc://host/module/dir.
"""

_CLOSING = """
Exit codes: 0 both sides are identical, or --watch was stopped, 1 usage, 11 a directory is missing or empty,
or a disk is full, 20 interrupted, 23 some entries were skipped or failed, 25 the guard stopped the run,
40 another run uses the pair, 41 conflicts remain.
"""

help_text = HelpText(
    _INTRODUCTION + _MORE_EXAMPLES + _ABOUT, OPTIONS, _CLOSING, short_help("unite", _INTRODUCTION + _ABOUT)
)


def parse_unite(words: Sequence[str]) -> Words:
    """Parse the words after `rdc unite`. Raises UsageError."""
    return parse_words(words, UNITE_OPTIONS, REFUSED, command="rdc unite")


def read_unite(words: Words) -> UniteRequest:
    """Read the request. Raises UsageError."""
    if len(words.operands) != 2:
        message = f"LEFT and RIGHT are needed, two directories; {len(words.operands)} given"
        raise words.missing(message, "rdc unite")
    for operand in words.operands:
        if not operand or "\0" in operand:
            raise UsageError("a directory is empty or has a NUL character; for the current one, write .")
    if words.has("--status") and words.has("--forget"):
        raise UsageError("--status and --forget exclude each other")
    for mode, keys in (
        ("--forget", ("--dry-run", "--resolve", "--force-empty")),
        ("--status", ("--resolve", "--force-empty")),
    ):
        for key in keys:
            if words.has(mode) and words.has(key):
                raise UsageError(f"{mode} and {key} exclude each other: {mode} unites nothing")
    if words.has("--keep-undo") and words.has("--no-undo"):
        raise UsageError("--keep-undo and --no-undo exclude each other")
    for key in ("--dry-run", "--status", "--forget", "--resolve", "--force-empty"):
        if words.has("--watch") and words.has(key):
            raise UsageError(f"--watch and {key} exclude each other: {key} is for one run")
    if words.has("--keep-base") and not words.has("--merge"):
        raise UsageError("--keep-base needs --merge")
    if words.has("--rescan") and not words.has("--watch"):
        raise UsageError("--rescan needs --watch")
    left, right = words.operands
    check_places(left, right)
    return UniteRequest(
        left,
        right,
        _read_options(words),
        status=words.has("--status"),
        forget=words.has("--forget"),
        quiet=words.has("--quiet"),
        verbose=words.has("--verbose"),
        json=words.has("--json"),
        shell=read_shell(words),
        keys=read_keys(words),
        connection=tuple(
            f"{given.key}={given.value}"
            for given in words.given
            if any(given.key in option.names for option in FAR_OPTIONS)
        ),
    )


def check_places(left: str, right: str) -> None:
    """Raise UsageError for two directories of other machines."""
    from rdc.model.location import parse_location

    if parse_location(left).host is not None and parse_location(right).host is not None:
        raise UsageError(
            f"{left} and {right} are both on other machines: run rdc unite at one of the two hosts"
        )


def _read_options(words: Words) -> UniteOptions:
    rules = read_rules(words, _no_rule_file)
    filters = tuple(rule for rule in rules if isinstance(rule, FilterRule))
    units = tuple(os.fsencode(given.value) for given in words.given if given.key == "--unit")
    forgets = words.has("--no-rules")
    if forgets and (filters or units):
        raise UsageError("--no-rules excludes --exclude, --include and --unit")
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
        units=units if units or forgets else None,
        rules=filters if filters or forgets else None,
        merge=words.has("--merge"),
        keep_base=_read_size(words, "--keep-base", BASE_BYTES),
        checksum=words.has("--checksum"),
        guard=_read_number(words, "--guard", GUARD_PERCENT, 100),
        force_empty=words.has("--force-empty"),
        ring=words.has("--ring"),
        keep_undo=keep,
        fsync=not words.has("--no-fsync"),
        xattrs=words.has("--xattrs"),
        acls=words.has("--acls"),
        hard_links=words.has("--hard-links"),
        watch=words.has("--watch"),
        rescan=_read_number(words, "--rescan", WATCH_SECONDS, RESCAN_SECONDS),
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
    path = os.path.normpath(path.strip("/")) if path else ""
    if not equals or not path or path.split("/")[0] == ".." or how not in {each.value for each in Resolution}:
        raise UsageError(
            f"--resolve={value}: a path below both directories, = and one of these are expected: {choices};"
            " such as --resolve=notes.txt=left"
        )
    return Resolve(os.fsencode("" if path == "." else path), Resolution(how))


def _read_size(words: Words, key: str, default: int) -> int:
    last = words.last(key)
    if last is None:
        return default
    try:
        return parse_size_of(last.value)
    except ValueError as error:
        raise UsageError(f"{key}={last.value}: {error}") from error


def _read_number(words: Words, key: str, default: int, most: int) -> int:
    last = words.last(key)
    if last is None:
        return default
    text = last.value.removesuffix("%") if key == "--guard" else last.value
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) <= most):
        raise UsageError(f"{key}={last.value}: a number of 0 to {most:,} is expected")
    return int(text)


def run(
    words: Sequence[str], environment: Environment, *, uniter: Callable[..., UniteReport] | None = None
) -> ExitCode:
    """Run `rdc unite` with the words after it. `uniter`: in place of rdc.unite. Raises RdcError, which the
    caller prints."""
    with reporting_usage(words, environment):
        parsed = parse_unite(words)
        if help_text.shown(parsed, environment):
            return ExitCode.OK
        if not (parsed.operands or parsed.given):
            return _list_pairs(environment)
        request = read_unite(parsed)
        if request.options.watch:
            _check_watch(is_job=uniter is not None)
    from rdc.library.trees import forget_united, unite, unite_status

    output = _output(request, environment)
    if request.forget:
        removed = forget_united(request.left, request.right)
        if not request.quiet:
            none = "nothing to forget" + _others(request)
            environment.talk(("forgotten; the next run is a first one" if removed else none) + "\n")
        _note(environment, request, ExitCode.OK, forgotten=True)
        return ExitCode.OK
    if request.status:
        with reporting(output):
            output.start()
            pair = unite_status(request.left, request.right)
            if pair is not None:
                output(pair)
        if pair is None:
            if not (request.json or request.quiet):
                text = "these two were not united yet, or the state is lost"
                environment.talk(text + _others(request) + "\n")
            return ExitCode.OK
        return ExitCode.CONFLICTS if pair.conflicts else ExitCode.OK
    try:
        with stop_requests() as stop:
            report = perform(
                output,
                lambda: (uniter or unite)(
                    request.left,
                    request.right,
                    request.options,
                    shell=request.shell,
                    reporter=output,
                    keys=request.keys,
                    stop=stop,
                ),
            )
    except RdcError as error:
        if error.code is not ExitCode.USAGE:
            _note(environment, request, error.code)
        raise
    changed = bool(report.left or report.right)
    _note(environment, request, report.exit, conflicts=report.conflicts, changed=changed)
    return report.exit


def _others(request: UniteRequest) -> str:
    """Return what else the directory of this machine was united with, "" for nothing: one on another machine
    has as many names as ways lead to it."""
    from rdc.model.location import parse_location
    from rdc.uniting.run import known_places

    for place in (request.left, request.right):
        location = parse_location(place)
        if location.host is None:
            with suppress(RdcError):
                known = known_places(location.path)
                if known:
                    return f"; {place} was united with {', '.join(map(printable, known))}"
    return ""


def _check_watch(*, is_job: bool) -> None:
    """Raise RdcError if nothing can be watched."""
    if is_job:
        raise UsageError("--watch does not end, and a job has to: run it as a service of its own")
    try:
        # The library would load it when it is called, which is too late for an answer in one line.
        import_module("rdc.uniting.watch")
    except ImportError as error:
        # watchdog cannot load without inotify.
        raise RdcError(f"rdc unite --watch needs Linux's inotify: {error}", code=ExitCode.USAGE) from error


def _output(request: UniteRequest, environment: Environment) -> Output:
    if request.json:
        return json_output(environment, dry_run=request.options.dry_run)
    from rdc.uniting.report import UniteTerminal, WatchTerminal

    kind = WatchTerminal if request.options.watch else UniteTerminal
    options = request.options
    both = tuple(each.path for each in options.resolve if each.how is Resolution.BOTH)
    return kind(
        environment.data,
        environment.talk,
        (request.left, request.right),
        request.connection,
        quiet=request.quiet,
        items=request.verbose or (request.options.dry_run and not request.quiet),
        dry_run=request.options.dry_run,
        flush=environment.flush,
        prefer=options.prefer,
        both=(*both, b"") if options.keep_both else both,
        # A watch has a line for each run instead.
        bar=None if request.options.watch else environment.progress(quiet=request.quiet),
        dials=request.is_remote and not request.status,
        unseen=environment.unseen,
    )


def _note(
    environment: Environment,
    request: UniteRequest,
    code: ExitCode,
    *,
    conflicts: int = 0,
    changed: bool = False,
    forgotten: bool = False,
) -> None:
    """Note the last run of a pair, for the list of all."""
    if request.options.dry_run:
        return
    from rdc.model.location import state_directory
    from rdc.uniting.registry import LastRun, note

    left, right = map(_place, (request.left, request.right))
    run = LastRun(left, right, int(time.time()), int(code), conflicts, forgotten)
    note(state_directory(environment.environ), run, changed=changed)


def _place(operand: str) -> bytes:
    """Return how the list of pairs shows a directory: as an absolute path without links, or a place
    elsewhere."""
    from rdc.model.location import parse_location

    location = parse_location(operand)
    return os.path.realpath(location.path) if location.host is None else os.fsencode(str(location))


def _list_pairs(environment: Environment) -> ExitCode:
    """List the pairs that the user united here, with their last results."""
    from rdc.model.location import state_directory
    from rdc.uniting.registry import last_runs

    runs = last_runs(state_directory(environment.environ))
    for run in runs:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(run.seconds))
        environment.data(f"{when}  {printable(run.left)}  {printable(run.right)}: {run.result}\n")
    if not runs:
        environment.talk("no pairs were united here yet; rdc unite --help says how\n")
    return ExitCode.OK
