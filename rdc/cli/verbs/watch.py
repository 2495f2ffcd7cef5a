"""`rdc watch SRC DST`: keeps a directory equal to another. Either may be on another host."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rdc.cli.environment import Environment
from rdc.cli.options.filter_options import read_rule_file
from rdc.cli.options.sync_options import REFUSED_RSYNC_OPTIONS, SYNC_OPTIONS, SyncRequest, read_request
from rdc.cli.options.table import Option, OptionGroup, Words, options_help, parse_words
from rdc.cli.reporting_frame import reporting, reporting_usage
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.limits.watch import RESCAN_SECONDS
from rdc.model import sync as model
from rdc.model.location import Location, RemoteShell
from rdc.model.options import ALWAYS
from rdc.model.watch import (
    Disconnected,
    Halted,
    InStep,
    Limited,
    Resumed,
    WatchEvent,
    WatchOptions,
    WatchReport,
)
from rdc.progress import Event
from rdc.records import dataclass, replace
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike

    from rdc.catalog.location import UserCatalog
    from rdc.catalog.store import SignatureStore
    from rdc.watching.reporter import WatchReporter

__all__ = ["OPTIONS", "SUMMARY", "Watcher", "help_text", "run"]

SUMMARY = "keep a directory in step with another, here, over ssh or with a daemon (rdc://)"

_INTRODUCTION = """\
Usage: rdc watch [OPTIONS] SRC DST

Examples:
  rdc watch --delete src/ backup/          make backup/ equal to src/ and keep it so
  rdc watch --exclude='*.o' . host:work/   follow what is edited here, over ssh
  rdc watch host:logs/ logs/               follow what happens there
  rdc watch src/ rdc://host/module/src/    to a module of a daemon (rdc serve, rdc keys)
  rdc watch --json src/ host:copy/         tell of each turn as one JSON event a line
  rdc watch --delete one:src/ two:copy/    between two other hosts, through this machine

SRC is a directory; SRC, DST or both may be on other hosts, where an rdc follows or receives. The trees are
compared once, as rdc sync does; from then on one session stays open, in which each change is told and fetched
as it happens. It ends with Ctrl-C or SIGTERM.
"""

_CLOSING = """
Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 usage, 5 refused by a daemon; those of rdc sync when the first
comparison fails. A lost connection is dialled again; a source that is gone, empty or unmounted halts the
watch until it is back.
"""

_WITHOUT = {
    option
    for declared in model.OPTIONS.values()
    for option in declared.options
    if not declared.watch and option.sets is not ALWAYS and option.sets != declared.default
}
"""Options of fields that a watch does not take. Those that say what holds anyway stay."""

OPTIONS = (
    OptionGroup(
        "Watching",
        (
            Option(
                ("--rescan",),
                f"compare the whole trees every so often (default: {WatchOptions().rescan}; 0: never)",
                "SECONDS",
                note="It repairs what others change at DST. It costs 600 bytes where nothing did.",
                example="--rescan=3600 src/ host:backup/",
            ),
            Option(
                ("--on-sync",),
                "run CMD, without a shell, when the trees are in step and quiet after changes",
                "CMD",
                note="""CMD is split as a shell would, and no shell runs it. It runs after the first
                comparison as well, if that changed something. A run begins after a second without a
                change, and never beside another. `RDC_WATCH_CHANGED`, `RDC_WATCH_DELETED`,
                `RDC_WATCH_FILES` and `RDC_WATCH_TURNS` in its environment are counts. What it
                prints goes to stderr. Its failure is named, and the watch goes on.""",
                example="--on-sync='systemctl reload nginx' host:site/ /srv/site/",
            ),
        ),
    ),
    *(
        OptionGroup(group.title, remaining)
        for group in SYNC_OPTIONS
        if (remaining := tuple(option for option in group.options if option.watch and option not in _WITHOUT))
    ),
)


class Watcher(Protocol):
    """The signature of rdc.watch, which tests replace."""

    def __call__(
        self,
        source: Location,
        destination: Location,
        options: WatchOptions,
        *,
        shell: RemoteShell,
        reporter: WatchReporter,
        catalog: SignatureStore | UserCatalog | None,
        keys: str | PathLike[str] | None,
    ) -> WatchReport: ...


class _Output(Protocol):
    def start(self) -> None: ...
    def report(self, event: Event) -> None: ...
    def emit(self, event: WatchEvent) -> None: ...
    def finish(self, report: WatchReport) -> None: ...
    def fail(self, error: RdcError) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class _Request:
    sync: SyncRequest
    options: WatchOptions


def help_text() -> str:
    """Returns the text of --help."""
    return _INTRODUCTION + options_help(OPTIONS) + _CLOSING


def run(words: Sequence[str], environment: Environment, *, watcher: Watcher | None = None) -> ExitCode:
    """Runs `rdc watch` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, lambda: _json_output(environment)):
        parsed = parse_words(list(words), OPTIONS, REFUSED_RSYNC_OPTIONS, command="rdc watch")
        if parsed.has("--help"):
            environment.show_help(help_text())
            return ExitCode.OK
        request = _read(parsed, environment)
    if watcher is None:
        watcher = _watcher()
    return _perform(request, environment, watcher)


def _watcher() -> Watcher:
    try:
        from rdc.watching.watch import watch
    except ImportError as error:
        # watchdog cannot load without inotify.
        raise RdcError(f"rdc watch needs Linux's inotify: {error}", code=ExitCode.USAGE) from error
    return watch


def _read(words: Words, environment: Environment) -> _Request:
    last = words.last("--rescan")
    rescan = WatchOptions().rescan
    if last is not None:
        if not (last.value.isascii() and last.value.isdigit() and len(last.value) <= 9):
            raise UsageError(f"--rescan={last.value}: a number of seconds, 0 or more, is expected")
        rescan = int(last.value)
    if rescan > RESCAN_SECONDS:
        raise UsageError(f"--rescan={rescan}: at most {RESCAN_SECONDS} seconds (0: never)")
    request = read_request(words, lambda name: read_rule_file(name, environment), command="rdc watch")
    # A second -v or -i says nothing more: unchanged entries would be listed in each turn.
    return _Request(
        request, WatchOptions(replace(request.options, list_unchanged=False), rescan, _hook(words))
    )


def _hook(words: Words) -> tuple[str, ...]:
    """The words of --on-sync; () without it."""
    last = words.last("--on-sync")
    if last is None:
        return ()
    from rdc.transport.remote import shell_words

    try:
        found = tuple(shell_words(last.value))
    except ValueError as error:
        raise UsageError(f"--on-sync={last.value}: {error}; quote it as for a shell") from error
    if not found:
        raise UsageError("--on-sync needs a command, such as: --on-sync='systemctl reload nginx'")
    return found


def _perform(request: _Request, environment: Environment, watcher: Watcher) -> ExitCode:
    output = _json_output(environment) if request.sync.json else _terminal_output(request.sync, environment)
    with reporting(output):
        output.start()
        with request.sync.catalog.store() as catalog:
            report = watcher(
                request.sync.source,
                request.sync.destination,
                request.options,
                shell=request.sync.shell,
                reporter=_to(output),
                catalog=catalog,
                keys=None if request.sync.keys is None else Path(request.sync.keys),
            )
        output.finish(report)
    return ExitCode.OK


def _to(output: _Output) -> WatchReporter:
    """Returns a reporter that tells an event of the watch from one of its entries."""

    def report(event: Event | WatchEvent, /) -> None:
        if isinstance(event, InStep | Halted | Resumed | Limited | Disconnected):
            output.emit(event)
        else:
            output.report(event)

    return report


def _json_output(environment: Environment) -> _Output:
    from rdc.report.watch_json import WatchJson

    return WatchJson(environment.data, environment.flush, environment.clock)


def _terminal_output(request: SyncRequest, environment: Environment) -> _Output:
    from rdc.report.status_line import StatusLine
    from rdc.report.watch_terminal import WatchTerminal

    style, status = request.style, None
    # Names that scroll on the same terminal would interrupt a status line.
    scrolling = environment.stdout_is_terminal and (style.names or style.itemize)
    if environment.can_redraw and not style.quiet and not scrolling:
        status = StatusLine(environment.stderr, color=environment.color)
    return WatchTerminal(style, environment.data, environment.flush, environment.talk, status)
