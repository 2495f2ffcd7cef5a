"""`rdc watch SRC DST`: keeps a directory equal to another. Either may be on another host."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from rdc.cli.environment import Environment, OptionGroup, Words, parse_words, read_command
from rdc.cli.options.shared_options import read_rule_file
from rdc.cli.options.sync_options import (
    REFUSED_RSYNC_OPTIONS,
    SYNC_OPTIONS,
    SyncRequest,
    is_default,
    read_request,
)
from rdc.cli.verb import HelpText, ShortHelp, json_output, perform, reporting_usage
from rdc.errors import ExitCode, RdcError, UsageError, one_line
from rdc.lean.records import Record, replace
from rdc.limits import RESCAN_SECONDS
from rdc.model import sync as model
from rdc.model.options import Option
from rdc.progress import Progressed
from rdc.report.output import CONNECTING, Output, counted, duration_text, size_text
from rdc.report.progress_display import PhaseProgress, StatusLine, progress_text
from rdc.report.sync_terminal import SyncTerminal, TerminalStyle
from rdc.watching.records import (
    Disconnected,
    Halted,
    InStep,
    Limited,
    Resumed,
    WatchOptions,
    WatchReport,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


SUMMARY = "keep a directory in sync with another, here, over ssh or with a daemon (rdc://)"

_INTRODUCTION = """\
Usage: rdc watch [OPTIONS] SRC DST

Examples:
  rdc watch --delete src/ backup/          make backup/ identical to src/ and keep it so
  rdc watch --exclude='*.o' . host:work/   send edits to host as they happen, over ssh
  rdc watch host:logs/ logs/               fetch what changes on host
  rdc watch src/ rdc://host/module/src/    to a module of a daemon (see rdc serve and rdc keys)
  rdc watch --json src/ host:copy/         print one JSON event per line
  rdc watch --delete one:src/ two:copy/    between two remote hosts, through this machine

SRC is a directory. rdc compares the trees once, as rdc sync does. Then one session stays open, and each
change is sent as it happens. Ctrl-C or SIGTERM ends it.
"""

_CLOSING = """
Exit codes: 0 stopped by Ctrl-C or SIGTERM, 1 wrong usage, 5 refused by a daemon; those of rdc sync if the
first comparison fails. rdc reconnects after a lost connection. If the source is missing, empty or unmounted,
the watch pauses until it is back.
"""

_SHORT = """\
Usage: rdc watch [OPTIONS] SRC DST

Examples:
  rdc watch --delete src/ backup/          make backup/ identical to src/ and keep it so
  rdc watch --exclude='*.o' . host:work/   send edits to host as they happen, over ssh
  rdc watch host:logs/ logs/               fetch what changes on host

rdc compares the trees once, as rdc sync does. Then it sends each change as it happens, until Ctrl-C or
SIGTERM.
"""

_SHORT_CLOSING = """
All options and exit codes: rdc watch --help=all. The man page: rdc watch --man | man -l -
"""

_WITHOUT = {
    option
    for name, declared in model.OPTIONS.items()
    for option in declared.options
    if not declared.watch and not is_default(name, option)
}
"""Options of fields that a watch does not take. Those that say what holds anyway stay."""

OPTIONS = (
    OptionGroup(
        "Watch",
        (
            Option(
                ("--rescan",),
                f"compare the whole trees every SECONDS (default: {WatchOptions().rescan}; 0: never)",
                "SECONDS",
                note="""It repairs what others change at DST. It costs 600 bytes if nothing changed.""",
                common=True,
                example="--rescan=3600 src/ host:backup/",
            ),
            Option(
                ("--on-sync",),
                "run CMD (no shell) once the trees are in sync and quiet after changes",
                "CMD",
                note="""CMD is split as a shell would, and no shell runs it. It runs after the first
                comparison as well, if that changed something. A run begins after a second without a
                change, and never beside another. `RDC_WATCH_CHANGED`, `RDC_WATCH_DELETED`,
                `RDC_WATCH_FILES` and `RDC_WATCH_TURNS` in its environment are counts. What it
                prints goes to stderr. Its failure is named, and the watch goes on.""",
                common=True,
                example="--on-sync='systemctl reload nginx' host:site/ /srv/site/",
            ),
        ),
        stage="Watch",
    ),
    *(
        replace(group, options=remaining)
        for group in SYNC_OPTIONS
        if (remaining := tuple(option for option in group.options if option.watch and option not in _WITHOUT))
    ),
)


help_text = HelpText(_INTRODUCTION, OPTIONS, _CLOSING, ShortHelp(_SHORT, _SHORT_CLOSING))


class _Request(Record):
    sync: SyncRequest
    options: WatchOptions


def run(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run `rdc watch` with the words after it. Raises RdcError, which the caller prints."""
    with reporting_usage(words, environment):
        parsed = parse_words(
            list(words), OPTIONS, REFUSED_RSYNC_OPTIONS, command="rdc watch", of_sync=SYNC_OPTIONS
        )
        if help_text.shown(parsed, environment):
            return ExitCode.OK
        request = _read(parsed, environment)
    try:
        # The library would load it when it is called, which is too late for an answer in one line.
        import_module("rdc.watching.watch")
    except ImportError as error:
        # watchdog cannot load without inotify.
        raise RdcError(f"rdc watch needs Linux's inotify: {error}", code=ExitCode.USAGE) from error
    return _perform(request, environment)


def _read(words: Words, environment: Environment) -> _Request:
    seconds = "a number of seconds, 0 or more, is expected"
    rescan = words.number("--rescan", WatchOptions().rescan, seconds, digits=9)
    if rescan > RESCAN_SECONDS:
        raise UsageError(f"--rescan={rescan}: at most {RESCAN_SECONDS} seconds (0: never)")
    request = read_request(words, lambda name: read_rule_file(name, environment), command="rdc watch")
    # A second -v or -i says nothing more: unchanged entries would be listed in each turn.
    command = words.value("--on-sync")
    example = "--on-sync='systemctl reload nginx'"
    hook = () if command is None else read_command(command, f"--on-sync={command}", example)
    options = replace(request.options, list_unchanged=False)
    return _Request(request, WatchOptions(options, rescan, hook))


def _perform(request: _Request, environment: Environment) -> ExitCode:
    from rdc.library.trees import watch

    output = json_output(environment) if request.sync.json else _terminal(request.sync, environment)

    def job() -> WatchReport:
        with request.sync.catalog.store() as catalog:
            return watch(
                request.sync.source,
                request.sync.destination,
                request.options,
                shell=request.sync.shell,
                reporter=output,
                catalog=catalog,
                keys=None if request.sync.keys is None else Path(request.sync.keys),
            )

    perform(output, job)
    return ExitCode.OK


def _terminal(request: SyncRequest, environment: Environment) -> Output:
    style, status = request.style, None
    if environment.can_redraw and not style.quiet:
        status = StatusLine(environment.stderr, color=environment.color)
    return WatchTerminal(
        style, environment.data, environment.flush, environment.talk, status, unseen=environment.unseen
    )


SHOW_AFTER = 0.5
"""Seconds of a turn after which its progress is shown."""

REFRESH_SECONDS = 0.1
"""Seconds between two redraws for progress."""


class WatchTerminal(SyncTerminal):
    """A status line where one can be redrawn, and a line per problem."""

    def __init__(
        self,
        style: TerminalStyle,
        data: Callable[[str], None],
        flush: Callable[[], None],
        talk: Callable[[str], None],
        status: StatusLine | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        time_of_day: Callable[[], str] = lambda: time.strftime("%H:%M:%S"),
        unseen: bool = False,
    ) -> None:
        """Take `data`, which writes to stdout, `flush`, which flushes it, and `talk`, which writes to stderr;
        both write whole lines. `clock`: seconds that never go back. `status` is None if no line can be
        redrawn. `unseen`: as in SyncTerminal."""
        super().__init__(style, self._below, self._above, clock=clock, unseen=unseen)
        self._flush = flush
        self._write = talk
        self._write_names = data
        self._status = status
        self._time_of_day = time_of_day
        self._turns = self._changed = self._deleted = self._sent = self._received = 0
        self._trouble: str | None = None
        """The last problem printed that stops the watch; None while it runs."""
        self._status_words: tuple[str, ...] = ("resumed",)
        """The status at the end of the last turn."""
        self._turn_began: float | None = None
        """Time of this turn's first progress event."""
        self._drawn = 0.0

    def __call__(self, event: object, /) -> None:
        if isinstance(event, InStep):
            self._in_step(event)
        elif isinstance(event, Resumed):
            self._trouble = None
            self._talk("rdc: resumed: the source is back\n")
            self._show(*self._status_words, good=True)
        elif isinstance(event, Limited):
            self.reported = True
            self._talk(f"rdc: {trouble_line(event)}\n")
        elif isinstance(event, Halted | Disconnected):
            line = trouble_line(event)
            if line != self._trouble:
                # A remote side that is away for a night is reported once, not every minute.
                self._trouble, self.reported = line, True
                self._talk(f"rdc: {line}\n")
            later = f"next try in {event.seconds:g} s" if isinstance(event, Disconnected) else ""
            self._show(*filter(None, (line, later)), good=False)
        else:
            super().__call__(event)
            if self._status is not None and isinstance(event, Progressed):
                self._progress(self._status, event)

    def start(self) -> None:
        if self._dials and self._status is not None:
            self._status.note(CONNECTING)

    def finish(self, report: Any) -> None:
        """Show the totals of a WatchReport."""
        self.close()
        if not self._is_silent(ExitCode.OK):
            self._talk(
                f"stopped after {counted(report.turns, 'turn')}: {report.changed:,} changed, "
                f"{report.deleted:,} deleted, sent {size_text(report.bytes_sent)}, "
                f"received {size_text(report.bytes_received)}\n"
            )

    def close(self) -> None:
        super().close()
        if self._status is not None:
            self._status.close()

    def _in_step(self, event: InStep) -> None:
        self.settle()
        self._flush()
        first, again = not self._turns, self._trouble is not None
        self._trouble, self._turn_began = None, None
        self._turns += 1
        self._changed += event.changed
        self._deleted += event.deleted
        self._sent += event.bytes_sent
        self._received += event.bytes_received
        if again or (first and self._status is None and not self._quiet):
            self._talk(f"in sync{' again' if again else ''}: {counted(event.files, 'file')}; watching\n")
        self._status_words = (
            f"in sync: {counted(event.files, 'file')}",
            f"last {self._time_of_day()}, {_short(event.seconds)}",
            f"{self._changed:,} changed",
            f"{self._deleted:,} deleted",
            f"sent {size_text(self._sent)}",
            f"received {size_text(self._received)}",
        )
        self._show(*self._status_words, good=True)

    def _progress(self, status: StatusLine, event: Progressed) -> None:
        """Show the progress of a turn that takes longer than SHOW_AFTER."""
        now = self._clock()
        if self._turn_began is None:
            self._turn_began = now
        if now - self._turn_began >= SHOW_AFTER and now - self._drawn >= REFRESH_SECONDS:
            self._drawn = now
            status.show([progress_text(PhaseProgress(event.phase, event.done, event.total))])

    def _show(self, *parts: str, good: bool) -> None:
        if self._status is not None:
            self._status.show(parts, good=good)

    def _below(self, text: str) -> None:
        """Write names to stdout, where the status line may be: it comes back at the end of the turn."""
        if self._status is not None:
            self._status.hide()
        self._write_names(text)

    def _above(self, text: str) -> None:
        """Write to stderr, above the status line."""
        if self._status is None or not self._status.line(text.rstrip("\n")):
            self._write(text)


def trouble_line(event: Halted | Limited | Disconnected) -> str:
    """Describe what keeps a watch from working."""
    reason = one_line(event.reason)
    if isinstance(event, Halted):
        return f"halted: {reason}"
    if isinstance(event, Limited):
        return (
            f"not every directory can be watched: {reason}; the tree is read every {event.seconds} seconds"
            " instead"
        )
    return f"interrupted: {reason}"


def _short(seconds: float) -> str:
    """`85 ms`, `3.2 s`, `12:34`."""
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 60 else duration_text(seconds)
