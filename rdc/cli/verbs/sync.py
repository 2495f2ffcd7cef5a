"""`rdc sync SRC DST`: makes a file or directory equal to another, here or on another host."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from rdc.cli.environment import Environment
from rdc.cli.malloc_settings import keep_freed_memory
from rdc.cli.options.filter_options import read_rule_file
from rdc.cli.options.sync_options import SYNC_OPTIONS, SyncRequest, parse_sync, read_request
from rdc.cli.options.table import options_help
from rdc.cli.reporting_frame import reporting, reporting_usage
from rdc.errors import ExitCode, StoppedError
from rdc.limits.paths import SELECTED_LIST_BYTES
from rdc.model.location import Location, RemoteShell
from rdc.model.sync import SyncOptions
from rdc.model.sync_report import SyncReport
from rdc.progress import Reporter
from rdc.records import replace
from rdc.report.sync_terminal import SyncTerminal
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.progress import StopSignal
    from rdc.report.log_file import SyncOutput

__all__ = ["OPTIONS", "SUMMARY", "Syncer", "help_text", "run"]

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
Exit codes: 0 done, 1 usage, 2 the far side is no rdc of this version, 11 disk full or
read-only, or no such place as DST, 12 connection lost, 20 interrupted, 23 some files failed, 24 source files
changed meanwhile, 25 stopped by --max-delete, 30 nothing came for --timeout seconds or --stop-at ended
it, 127 no rdc on the far side. Of a daemon: 5 it refused, 10 it cannot be reached, 35 it did not answer.
"""


class Syncer(Protocol):
    """The signature of rdc.session.sync.sync, which tests replace."""

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


def help_text() -> str:
    """Returns the text of --help."""
    return _INTRODUCTION + options_help(OPTIONS) + _CLOSING


def run(words: Sequence[str], environment: Environment, *, syncer: Syncer | None = None) -> ExitCode:
    """Runs `rdc sync` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, lambda: _json_output(environment)):
        parsed = parse_sync(list(words))
        if parsed.has("--help"):
            environment.show_help(help_text())
            return ExitCode.OK
        if parsed.has("--list-only") or len(parsed.operands) == 1:
            from rdc.cli.source_listing import list_operand

            return list_operand(parsed, environment)
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
        from rdc.session.sync import sync

        keep_freed_memory()
        syncer = sync
    if not environment.stderr_is_terminal:
        return _perform(request, environment, syncer)
    from rdc.cli.verbs.guarded_sync import asks, perform_guarded, with_default_guard

    if not asks(parsed, environment):
        return _perform(request, environment, syncer)

    guarded = replace(request, options=with_default_guard(request.options, parsed))
    return perform_guarded(
        guarded, environment, lambda each, watch: _perform(each, environment, syncer, watch)
    )


def _check_log(path: str, request: SyncRequest, named: Sequence[str]) -> None:
    """Raise UsageError if the log is a file that this run reads: a SRC that is a file, or one of `named`."""
    from rdc.files.own.claims import claim_log

    local = [source.path for source in request.sources if source.host is None]
    claim_log(os.fsencode(path)).check_named([*local, *map(os.fsencode, named)])


def _perform(
    request: SyncRequest,
    environment: Environment,
    syncer: Syncer,
    watch: Callable[[SyncOutput], SyncOutput] | None = None,
) -> ExitCode:
    """Runs a request and reports it. `watch`: puts itself before the output."""
    environment.buffer(request.buffering)
    output: SyncOutput = _json_output(environment) if request.json else _terminal_output(request, environment)
    if request.log is not None:
        from rdc.report.log_file import LoggedOutput

        output = LoggedOutput(output, request.log)
    if watch is not None:
        output = watch(output)
    with reporting(output):
        output.start()
        report = _report(request, syncer, output)
        output.finish(report)
    return report.exit


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


def _json_output(environment: Environment) -> SyncOutput:
    from rdc.report.sync_json import SyncJson

    return SyncJson(environment.data, environment.flush, environment.clock)


def _terminal_output(request: SyncRequest, environment: Environment) -> SyncOutput:
    style = request.style
    scrolling = environment.stdout_is_terminal and (style.lists)
    progress = environment.progress(quiet=style.quiet, scrolling=scrolling, lines=style.progress)
    return SyncTerminal(style, environment.data, environment.talk, progress, environment.clock)
