"""`rdc sync SRC DST`: makes a file or directory equal to another, here or on another host.

Three stories are told here: a sync, a sync on a terminal, where the user is asked if its guard stops it, and
the listing of a source, for `rdc sync SRC` and --list-only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from rdc.cli.environment import Environment, Words
from rdc.cli.options.file_options import read_rule_file
from rdc.cli.options.sync_options import SYNC_OPTIONS, SyncRequest, parse_sync, read_request
from rdc.cli.verb import HelpText, json_output, keep_freed_memory, perform, reporting, reporting_usage
from rdc.errors import ExitCode, StoppedError, UsageError, printable
from rdc.lean.records import replace
from rdc.lean.typed import Protocol
from rdc.limits import SELECTED_LIST_BYTES
from rdc.model.location import Location, RemoteShell
from rdc.report.output import ForwardedOutput, Output, TerminalOutput
from rdc.report.sync_terminal import SyncTerminal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from rdc.catalog.catalog import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.model.runs import SyncReport
    from rdc.model.sync import SyncOptions
    from rdc.progress import Reporter, StopSignal
    from rdc.session.listing import ListedEntry


OPTIONS = SYNC_OPTIONS

SUMMARY = "bring a directory or file up to another, here or on another host"

_INTRODUCTION = """\
Usage: rdc sync [OPTIONS] SRC... DST

Examples:
  rdc sync src/ backup/                  make backup/ hold what src/ holds, sending only what differs
  rdc sync -n -i src/ backup/            show what that would change
  rdc sync --delete src/ host:backup/    over ssh, and remove there what src/ no longer has
  rdc sync host:data .                   fetch the directory data from host
  rdc sync notes photos/ host:backup/    the directory notes and what photos/ holds
  rdc sync src/ rdc://host/module/       to a module of a daemon (rdc serve, rdc keys)
  rdc sync --delete one:src/ two:copy/   from one other host to another, through this machine
  rdc sync -e 'ssh -p 2222' --exclude='*.o' --exclude=/build/ . me@host:project/

A '/' at the end of SRC means its content, without it the directory itself, as in rsync. Several SRC are on
one host, such as HOST:a :b; of equal names the first file counts, and directories become one. HOST:PATH is
relative to the home directory there; rdc must be installed on both sides. With SRC and DST on other hosts all
content passes through this machine, and none is written here. Options of rsync that rdc does not have fail by
name. Without DST, SRC is listed.
"""

_CLOSING = """
Exit codes: 0 done, 1 usage, 2 the remote side is no rdc of this version, 11 disk full or
read-only, or no such place as DST, 12 connection lost, 20 interrupted, 23 some files failed, 24 source files
changed meanwhile, 25 stopped by --max-delete, 30 nothing came for --timeout seconds or --stop-at ended
it, 127 no rdc on the remote side. Of a daemon: 5 it refused, 10 it cannot be reached, 35 it did not answer.
"""


help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING)

ANSWER_BYTES = 64
"""The longest answer to a question."""

SIZE_COLUMNS = 14
"""Columns of a size in a listing, as in rsync."""


class Syncer(Protocol):
    """The signature of rdc.sync, which tests replace."""

    def __call__(
        self,
        source: Location | Sequence[Location],
        destination: Location,
        options: SyncOptions,
        *,
        shell: RemoteShell,
        reporter: Reporter,
        catalog: SignatureStore | UserCatalog | None,
        keys: str | PathLike[str] | None,
        stop: StopSignal | None,
    ) -> SyncReport: ...


def run(words: Sequence[str], environment: Environment, *, syncer: Syncer | None = None) -> ExitCode:
    """Run `rdc sync` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, environment):
        parsed = parse_sync(list(words))
        if help_text.shown(parsed, environment):
            return ExitCode.OK
        if parsed.has("--list-only") or len(parsed.operands) == 1:
            return _list(parsed, environment)
        named: list[str] = []

        def read_rules(name: str) -> bytes:
            named.append(name)
            return read_rule_file(name, environment)

        def read_list(name: str) -> bytes:
            named.append(name)
            return read_rule_file(name, environment, limit=SELECTED_LIST_BYTES, of="paths")

        request = read_request(parsed, read_rules, read_list=read_list)
        if request.log is not None:
            _check_log(request.log.path, request, named)
    if syncer is None:
        from rdc.library.trees import sync

        keep_freed_memory()
        syncer = sync
    if environment.stderr_is_terminal and _asks(parsed, environment):
        return _perform_guarded(_with_default_guard(request, parsed), environment, syncer)
    return _perform(request, _output(request, environment), environment, syncer)


def _check_log(path: str, request: SyncRequest, named: Sequence[str]) -> None:
    """Raise UsageError if the log is a file that this run reads: a SRC that is a file, or one of `named`."""
    from rdc.files.own.output_file import claim_log

    local = [source.path for source in request.sources if source.host is None]
    claim_log(os.fsencode(path)).check_named([*local, *map(os.fsencode, named)])


def _output(request: SyncRequest, environment: Environment) -> Output:
    style = request.style
    if request.json:
        output = json_output(environment)
    else:
        scrolling = environment.stdout_is_terminal and style.lists
        progress = environment.progress(quiet=style.quiet, scrolling=scrolling, lines=style.progress)
        output = SyncTerminal(style, environment.data, environment.talk, progress, environment.clock)
    if request.log is None:
        return output
    from rdc.report.sync_terminal import LoggedOutput

    return LoggedOutput(output, request.log)


def _perform(request: SyncRequest, output: Output, environment: Environment, syncer: Syncer) -> ExitCode:
    environment.buffer(request.buffering)
    return perform(output, lambda: _report(request, syncer, output)).exit


def _report(request: SyncRequest, syncer: Syncer, reporter: Reporter) -> SyncReport:
    try:
        with request.catalog.store() as catalog:
            return syncer(
                request.source if len(request.sources) == 1 else request.sources,
                request.destination,
                request.options,
                shell=request.shell,
                reporter=reporter,
                catalog=catalog,
                keys=request.keys,
                stop=request.deadline,
            )
    except StoppedError as error:
        if request.deadline is None:
            raise
        raise request.deadline.error from error


class _Watched(ForwardedOutput):
    """Passes everything on, and notes whether the guard stopped the run."""

    stopped = False

    def __call__(self, event: object, /) -> None:
        from rdc.model.runs import is_stop

        self.stopped = self.stopped or is_stop(event)
        super().__call__(event)


def _perform_guarded(request: SyncRequest, environment: Environment, syncer: Syncer) -> ExitCode:
    """Perform a request. If its guard stops it, asks; on yes the request is performed without a guard.

    What the first run did is done, so the second one has only the rest to do.
    """
    watched = _Watched(_output(request, environment))
    code = _perform(request, watched, environment, syncer)
    if request.options.guard is None or not watched.stopped or not _agrees(environment):
        return code
    request = replace(request, options=replace(request.options, guard=None))
    return _perform(request, _output(request, environment), environment, syncer)


def _agrees(environment: Environment) -> bool:
    environment.talk("Do it anyway? [y/N] ")
    try:
        answer = environment.stdin.readline(ANSWER_BYTES)
    except OSError:
        return False
    return answer.strip().lower() in (b"y", b"yes")


def _asks(words: Words, environment: Environment) -> bool:
    """Return whether someone is there who can be asked, and no program reads what is said."""
    silent = words.has("--json", "--dry-run", "--quiet", "--no-guard")
    return not silent and environment.stdin.isatty()


def _with_default_guard(request: SyncRequest, words: Words) -> SyncRequest:
    """The request with the guard that applies where someone can be asked."""
    from rdc.model.runs import DEFAULT_SHARE

    if not request.options.delete or words.has("--guard", "--no-guard"):
        return request
    return replace(request, options=replace(request.options, guard=DEFAULT_SHARE))


class _Listing(TerminalOutput):
    """What a listing prints: entries on stdout, as rsync --list-only prints them, problems on stderr."""

    def __init__(self, environment: Environment, *, level: int, quiet: bool) -> None:
        """`level`: of readability, as in `grouped`."""
        super().__init__(environment.data, environment.talk, quiet=quiet)
        self._level = level

    def entry(self, entry: ListedEntry) -> None:
        """Print permissions, size, time and name."""
        import stat

        from rdc.model.entries import Kind
        from rdc.report.sync_terminal import grouped

        mode = 0o777 if entry.kind is Kind.SYMLINK else entry.metadata.mode
        kind = {Kind.FILE: "-", Kind.DIRECTORY: "d", Kind.SYMLINK: "l"}.get(entry.kind, "?")
        size = entry.size if entry.link is None else len(entry.link)
        name = printable(entry.path) + ("" if entry.link is None else f" -> {printable(entry.link)}")
        shown = f"{kind}{stat.filemode(mode)[1:]} {grouped(size, self._level):>{SIZE_COLUMNS}}"
        self._data(f"{shown} {_time(entry)} {name}\n")


def _list(words: Words, environment: Environment) -> ExitCode:
    """List the first operand. Raises RdcError."""
    if words.has("--json"):
        raise UsageError("--list-only and --json exclude each other: a listing has no events")
    # The destination takes no part; the options are read as for any.
    operands = (words.operands[0], os.devnull) if len(words.operands) == 1 else words.operands
    request = read_request(
        Words(words.given, operands),
        lambda name: read_rule_file(name, environment),
        read_list=lambda name: read_rule_file(name, environment, limit=SELECTED_LIST_BYTES, of="paths"),
    )
    environment.buffer(request.buffering)
    from rdc.library.trees import selected_of
    from rdc.session.listing import list_source

    output = _Listing(environment, level=request.style.level, quiet=request.style.quiet)
    with reporting(output):
        try:
            source, selected = selected_of((request.source,), request.options)
            report = list_source(
                source,
                selected,
                request.options,
                output.entry,
                shell=request.shell,
                reporter=output,
                keys=request.keys,
                stop=request.deadline,
            )
        except StoppedError as error:
            if request.deadline is None:
                raise
            raise request.deadline.error from error
    return report.exit


def _time(entry: ListedEntry) -> str:
    import time

    from rdc.model.preserved import real_time

    seconds = real_time(entry.metadata.mtime_ns) // 10**9
    try:
        return time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):
        return f"{seconds:>19}"
