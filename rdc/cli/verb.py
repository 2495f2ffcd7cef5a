"""The verbs of the command line: their names, how one is loaded, and the frame in which it runs its job."""

from __future__ import annotations

import contextlib
import sys

from rdc.cli.environment import (
    Environment,
    OptionGroup,
    OutputClosedError,
    Words,
    default_words,
    options_help,
)
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.lean.records import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from types import FrameType
    from typing import Any, Protocol, TypeVar

    from rdc.model.options import Option
    from rdc.report.output import Output

    R = TypeVar("R")

    class Verb(Protocol):
        """The interface of the module of a verb.

        A module with verbs of its own, such as `rdc catalog show`, lists their names in SUBVERBS.
        """

        SUMMARY: str
        OPTIONS: tuple[OptionGroup, ...]
        help_text: HelpText

        def run(self, words: Sequence[str], environment: Environment) -> ExitCode:
            """Run the verb with the words after it. Raises RdcError, which the caller prints."""


VERBS = {
    "sync": "rdc.cli.verbs.sync",
    "check": "rdc.checking.command",
    "undo": "rdc.undoing.command",
    "unite": "rdc.uniting.command",
    "watch": "rdc.watching.command",
    "scan": "rdc.survey.scan_command",
    "merge": "rdc.survey.merge_command",
    "dupes": "rdc.duplicates.dupes_command",
    "similar": "rdc.survey.similar_command",
    "dedupe": "rdc.duplicates.dedupe_command",
    "signature": "rdc.cli.verbs.signature",
    "index": "rdc.survey.index_command",
    "catalog": "rdc.cli.verbs.catalog",
    "keys": "rdc.cli.verbs.keys",
    "serve": "rdc.cli.verbs.serve",
    "store": "rdc.store.command",
    "run": "rdc.jobs.run_command",
    "jobs": "rdc.jobs.jobs_command",
    "install": "rdc.install.command",
    "config": "rdc.cli.verbs.config",
    "completions": "rdc.cli.verbs.completions",
}
"""The modules of the verbs. A module loads when a command line names its verb."""

HOST_VERBS = ("install",)
"""Verbs whose operand is a host, not a place."""

JOB_VERBS = ("run", "jobs")
"""Verbs whose operand is a job."""


class ShortHelp(Record):
    """The text before and after the common options in the short --help."""

    introduction: str
    closing: str


def short_help(verb: str, introduction: str) -> ShortHelp:
    """Return the short help of a verb whose groups' titles are the stages."""
    return ShortHelp(
        introduction, f"\nAll options: rdc {verb} --help=all. The man page: rdc {verb} --man | man -l -\n"
    )


class HelpText(Record):
    """The text of --help: an introduction with examples, the options, and what follows them.

    A verb with more options than a screen has lines also has a short text: --help shows it, and --help=all
    shows the whole one.
    """

    introduction: str
    options: tuple[OptionGroup, ...]
    closing: str = ""
    short: ShortHelp | None = None

    def __call__(self) -> str:
        """Return the whole text."""
        return self.introduction + options_help(self.options) + self.closing

    def brief(self) -> str:
        """Return the text of --help: the short one if there is one, with the common options by stage."""
        if self.short is None:
            return self()
        by_stage: dict[str, list[Option]] = {}
        for group in self.options:
            by_stage.setdefault(group.stage or group.title, []).extend(
                option for option in group.options if option.common
            )
        found = [OptionGroup(stage, tuple(options)) for stage, options in by_stage.items() if options]
        return self.short.introduction + options_help(found) + self.short.closing

    def shown(self, words: Words, environment: Environment) -> bool:
        """Show the text that `words` ask for. Return whether they ask for one."""
        last = words.last("--help")
        if last is not None:
            environment.show_help(self() if last.value == "all" else self.brief())
        return last is not None


def load_verbs() -> dict[str, Verb]:
    """Return every verb by name."""
    return {name: load_verb(name) for name in VERBS}


def load_verb(name: str) -> Verb:
    """Return the module of one verb. `name` is one of VERBS."""
    # importlib would load 40 KB of code for its import_module.
    __import__(VERBS[name])
    return sys.modules[VERBS[name]]


def run_with_settings(
    name: str,
    words: Sequence[str],
    environment: Environment,
    run: Callable[[Sequence[str], Environment], ExitCode] | None = None,
) -> ExitCode:
    """Run a verb. The words of the settings precede `words`, which override them. `run`: in place of the
    verb's own. Raises RdcError, which names the setting if a setting is wrong."""
    verb = load_verb(name)
    asks = any(word.partition("=")[0] == "--help" for word in words)
    defaults = [] if asks else default_words(verb.OPTIONS, environment.environ, words, name in HOST_VERBS)
    try:
        return (run or verb.run)([*(chosen.word for chosen in defaults), *words], environment)
    except UsageError as error:
        for chosen in defaults:
            if chosen.word in str(error) and chosen.word not in words:
                raise UsageError(f"{error} (from {chosen.source})") from error
        raise


def json_output(environment: Environment, **start: bool | bytes) -> Output:
    """Return the output of --json. `start`: the fields of the first event."""
    from rdc.report.json_output import JsonOutput

    return JsonOutput(environment.data, environment.flush, environment.clock, **start)


def list_output(
    environment: Environment,
    results: Callable[[Any], Iterable[str | bytes]],
    summary: Callable[[Any], str],
    *,
    quiet: bool,
) -> Output:
    """Return the output of a verb that prints a list of what it found.

    `results` returns what stdout gets of a report, `summary` the last line. `quiet`: without progress and
    without that line.
    """
    # This module also runs the remote side of a session, which prints nothing and needs no output.
    from rdc.report.output import ListOutput

    return ListOutput(
        environment.data,
        environment.talk,
        environment.progress(quiet=quiet),
        binary=environment.binary,
        flush=environment.flush,
        results=results,
        last_line=None if quiet else summary,
    )


def perform(output: Output, job: Callable[[], R]) -> R:
    """Run a job from its start to its report, which `output` shows and this returns."""
    with reporting(output):
        output.start()
        report = job()
        output.finish(report)
    return report


@contextlib.contextmanager
def reporting(output: Output) -> Iterator[None]:
    """Report an exception of the block to `output`, raise it again, and close `output` at the end.

    OutputClosedError is not reported, because the reader of the output has left.
    """
    try:
        yield
    except OutputClosedError:
        raise
    except RdcError as error:
        output.fail(error)
        raise
    except KeyboardInterrupt:
        output.fail(RdcError("interrupted", code=ExitCode.INTERRUPTED))
        raise
    except Exception as error:  # the reader of events must see every failure
        output.fail(RdcError(f"internal error: {type(error).__name__}: {error}", code=ExitCode.USAGE))
        raise
    finally:
        output.close()


@contextlib.contextmanager
def reporting_usage(words: Sequence[str], environment: Environment) -> Iterator[None]:
    """Report an RdcError of the block as an event, too, if `words` ask for events, and raise it again.

    The block reads the words, so nothing else knows yet which output they ask for.
    """
    try:
        yield
    except RdcError as error:
        if "--json" in words:
            json_output(environment).fail(error)
        raise


@contextlib.contextmanager
def waiting(environment: Environment, word: str) -> Iterator[None]:
    """Show a word on a terminal while the block waits for another machine."""
    if not environment.can_redraw:
        yield
        return
    from rdc.report.progress_display import StatusLine

    line = StatusLine(environment.stderr, color=environment.color)
    line.note(word)
    try:
        yield
    finally:
        line.close()


@contextlib.contextmanager
def stop_requests() -> Iterator[threading.Event]:
    """Delay the first SIGINT, SIGTERM or SIGHUP, so that a job ends between two steps.

    Yields the event that a signal sets. The earlier handlers take the second signal.
    """
    import threading

    from rdc.lean.enums import signal

    requested = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield requested
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}

    def restore() -> None:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)

    def note(_number: int, _frame: FrameType | None) -> None:
        requested.set()
        restore()

    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, note)
    try:
        yield requested
    finally:
        restore()


# Parameters of mallopt(3).
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3

UNTRIMMED_BYTES = 16 << 20
"""Free memory at the end of the heap that stays with the process: the size of a queue of messages."""

MAPPED_BYTES = 4 << 20
"""The least size of an allocation that has its own mapping. No message is as large."""


def keep_freed_memory(mapped: int = MAPPED_BYTES, untrimmed: int = UNTRIMMED_BYTES) -> None:
    """Set malloc options for the whole process; only a program may call this, not a library.

    By default each message's pages return to the kernel and are cleared on reuse. That costs a fifth of
    the CPU time of receiving. Does nothing if the C library is not glibc. `mapped` and `untrimmed`: as the
    constants of this module.
    """
    from rdc.files.base.syscalls import set_malloc_option

    with contextlib.suppress(OSError):
        set_malloc_option(MMAP_THRESHOLD, mapped)
        set_malloc_option(TRIM_THRESHOLD, untrimmed)
