"""`rdc sync SRC DST`: makes a file or directory equal to another, here or on another host.

Three stories are told here: a sync, a sync on a terminal, where the user is asked if its guard stops it, and
the listing of a source, for `rdc sync SRC` and --list-only.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Sequence

from rdc.cli.environment import Environment, Words
from rdc.cli.options.shared_options import read_rule_file
from rdc.cli.options.sync_options import SYNC_OPTIONS, SyncRequest, parse_sync, read_request
from rdc.cli.verb import (
    HelpText,
    ShortHelp,
    json_output,
    keep_freed_memory,
    perform,
    reporting,
    reporting_usage,
)
from rdc.errors import ExitCode, RdcError, StoppedError, UsageError, one_line, printable
from rdc.lean.records import replace
from rdc.limits import SELECTED_LIST_BYTES
from rdc.model.entries import Kind
from rdc.model.runs import DEFAULT_SHARE, is_stop
from rdc.progress import Problem, Progressed
from rdc.report.output import Output, TerminalOutput, size_text
from rdc.report.sync_terminal import LoggedOutput, SyncTerminal, grouped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from rdc.model.runs import SyncReport
    from rdc.progress import Event, Reporter
    from rdc.session.listing import ListedEntry

    Syncer: TypeAlias = Callable[..., SyncReport]
    """rdc.sync, which tests replace."""


OPTIONS = SYNC_OPTIONS

SUMMARY = "update a directory or file from another one, here or on another host"

_INTRODUCTION = """\
Usage: rdc sync [OPTIONS] SRC... DST

Examples:
  rdc sync src/ backup/                  update backup/ from src/; only the differences are sent
  rdc sync -n -v src/ backup/            print what that would change
  rdc sync --delete src/ host:backup/    over ssh; delete there what src/ no longer has
  rdc sync host:data .                   fetch the directory data from host
  rdc sync notes photos/ host:backup/    the directory notes and the contents of photos/
  rdc sync src/ rdc://host/module/       to a module of a daemon (see rdc serve and rdc keys)
  rdc sync --delete one:src/ two:copy/   from one remote host to another, through this machine
  rdc sync -e 'ssh -p 2222' --exclude='*.o' --exclude=/build/ . me@host:project/

SRC/ means the contents of the directory, SRC the directory itself, as in rsync. Several SRC must be on one
host, such as HOST:a :b. If they contain the same path, directories are merged, and the first file is taken.
HOST:PATH is relative to the home directory there. rdc must be installed on both sides (see rdc install). If
SRC and DST are on two other hosts, all content passes through this machine, which stores none of it. An
unsupported option of rsync is rejected with a message that names the replacement. Without DST, rdc lists SRC.
"""

_CLOSING = """
Exit codes: 0 success, 1 wrong usage, 2 no rdc there, or none that speaks the same protocol, 11 disk full or
read-only, or the parent of DST is missing, 12 connection lost, 20 interrupted, 23 some files failed, 24 files
of SRC changed while they were read, 25 stopped by --max-delete or --guard, 30 stopped by --timeout,
--stop-after or --stop-at, 127 rdc not found on the remote side. From a daemon: 5 it refused, 10 it cannot be
reached, 35 it did not answer.
"""

_SHORT = """\
Usage: rdc sync [OPTIONS] SRC... DST

Examples:
  rdc sync src/ backup/                  update backup/ from src/; only the differences are sent
  rdc sync -n -v src/ backup/            print what that would change
  rdc sync --delete src/ host:backup/    over ssh; delete there what src/ no longer has
  rdc sync host:data .                   fetch the directory data from host

SRC/ means the contents of the directory, SRC the directory itself. Subdirectories, symlinks, permissions and
times are always copied, and owners if you are root, so no -a is needed. A host needs rdc (see rdc install).
"""

_SHORT_CLOSING = """
All options: rdc sync --help=all. The man page: rdc sync --man | man -l -
"""

help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING, ShortHelp(_SHORT, _SHORT_CLOSING))

_IGNORED_ARE_DELETED = (
    "rdc: warning: --delete-excluded deletes at DST what .rdcignore leaves out; see what that is with -n\n"
)

ANSWER_BYTES = 64
"""The longest answer to a question."""

SIZE_COLUMNS = 14
"""Columns of a size in a listing, as in rsync."""


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
    if parsed.has("--rdcignore") and request.options.delete_excluded and not request.style.quiet:
        environment.talk(_IGNORED_ARE_DELETED)
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
        progress = environment.progress(quiet=style.quiet, lines=style.progress)
        output = SyncTerminal(
            style, environment.data, environment.talk, progress, environment.clock, unseen=environment.unseen
        )
    if request.log is None:
        return output
    return LoggedOutput(output, request.log)


def _perform(request: SyncRequest, output: Output, environment: Environment, syncer: Syncer) -> ExitCode:
    environment.buffer(request.buffering)
    return perform(output, lambda: _report(request, syncer, output)).exit


def _report(request: SyncRequest, syncer: Syncer, reporter: Reporter) -> SyncReport:
    arrived = _Arrived(reporter)
    try:
        with request.catalog.store() as catalog:
            return syncer(
                request.source if len(request.sources) == 1 else request.sources,
                request.destination,
                request.options,
                shell=request.shell,
                reporter=arrived,
                catalog=catalog,
                keys=request.keys,
                stop=request.deadline,
            )
    except KeyboardInterrupt:
        raise arrived.interrupted(dry_run=request.options.dry_run) from None
    except StoppedError as error:
        if request.deadline is None:
            raise
        raise request.deadline.error from error


class _Arrived:
    """Passes events on, and keeps what the user wants to know of an interrupted run."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._last: Progressed | None = None
        """The last event of the transfer."""

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Progressed) and event.phase == "transfer":
            self._last = event
        self._reporter(event)

    def interrupted(self, *, dry_run: bool) -> RdcError:
        """Return the error of a run that Ctrl-C or a signal ended: what came, and what the next run does."""
        text = "interrupted; nothing was changed"
        if not dry_run:
            came = ""
            if self._last is not None:
                total = "" if self._last.total is None else f" of {size_text(self._last.total)}"
                came = f"{size_text(self._last.done)}{total} arrived; "
            text = f"interrupted: {came}complete files are in place, and the next run resumes from there"
        return RdcError(text, code=ExitCode.INTERRUPTED)


def _perform_guarded(request: SyncRequest, environment: Environment, syncer: Syncer) -> ExitCode:
    """Perform a request. If its guard stops it, asks; on yes the request is performed without a guard.

    What the first run did is done, so the second one has only the rest to do.
    """
    stopped = ""

    def watched(*operands: object, reporter: Reporter, **others: object) -> SyncReport:
        def report(event: Event, /) -> None:
            nonlocal stopped
            if isinstance(event, Problem) and is_stop(event):
                stopped = one_line(event.message)
            reporter(event)

        return syncer(*operands, reporter=report, **others)

    code = _perform(request, _output(request, environment), environment, watched)
    if stopped and request.json:
        environment.talk(f"rdc: {stopped}\n")
    if request.options.guard is None or not stopped or not _agrees(environment):
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
    """Return whether someone is there who can be asked. --quiet and --json do not keep a guard from asking:
    the question is on stderr, and the answer decides about data."""
    return not words.has("--dry-run", "--no-guard") and environment.stdin.isatty()


def _with_default_guard(request: SyncRequest, words: Words) -> SyncRequest:
    """Return the request with the guard that applies where someone can be asked."""
    if not request.options.delete or words.has("--guard", "--no-guard"):
        return request
    return replace(request, options=replace(request.options, guard=DEFAULT_SHARE))


class _Listing(TerminalOutput):
    """The output of a listing: entries on stdout, as rsync --list-only prints them, problems on stderr."""

    def __init__(self, environment: Environment, *, level: int, quiet: bool) -> None:
        """`level`: of readability, as in `grouped`."""
        super().__init__(environment.data, environment.talk, quiet=quiet)
        self._level = level

    def entry(self, entry: ListedEntry) -> None:
        """Print permissions, size, time and name."""
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
    from rdc.model.preserved import real_time

    seconds = real_time(entry.metadata.mtime_ns) // 10**9
    try:
        return time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(seconds))
    except (ValueError, OverflowError, OSError):
        return f"{seconds:>19}"
