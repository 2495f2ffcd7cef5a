"""Entry point of the `rdc` command: finds the verb, runs it, and turns every end into one exit code."""

from __future__ import annotations

import _signal  # signal makes enums of the numbers, for 0.4 ms
import contextlib
import errno
import os
import sys

from rdc.cli.environment import Environment, OutputClosedError, process_environment
from rdc.cli.settings import default_words
from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.descriptors import raise_descriptor_limit
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import NoReturn

    from rdc.cli.options import OptionGroup

__all__ = ["VERBS", "Verb", "entry", "run", "verbs"]

VERBS = (
    "sync",
    "watch",
    "scan",
    "merge",
    "dupes",
    "similar",
    "dedupe",
    "signature",
    "index",
    "catalog",
    "keys",
    "serve",
    "config",
    "completions",
)
"""Each is a module of rdc.cli, loaded when it is asked for."""


READER_GONE: int = 128 + _signal.SIGPIPE
"""Exit code when the reader of stdout has left, as in `rdc sync -v ... | head`: what a shell shows for a
program that SIGPIPE ended, and no rsync code."""


class Verb(Protocol):
    """A module of a verb. One that is followed by a word of its own, as in `rdc catalog show`, lists these as
    SUBVERBS."""

    SUMMARY: str
    OPTIONS: tuple[OptionGroup, ...]

    def help_text(self) -> str: ...
    def run(self, words: Sequence[str], environment: Environment) -> ExitCode: ...


def entry() -> None:
    """Run this process's command line and exit."""
    sys.unraisablehook = _unraisable
    # As on Ctrl-C, a run that is told to stop still removes what it was about to write.
    for number in (_signal.SIGINT, _signal.SIGTERM, _signal.SIGHUP):
        if _signal.getsignal(number) != _signal.SIG_IGN:
            _signal.signal(number, _stop)
    raise_descriptor_limit()
    code = run(sys.argv[1:], process_environment())
    try:
        sys.stdout.flush()
    except OSError:
        # A closed pipe or a full disk, which `run` has dealt with. Python flushes once more at exit, would
        # complain again, and would exit with a code of its own.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if sys.gettrace() is None and sys.getprofile() is None and not _others_run():
        # Everything is written and closed. Taking Python apart object by object takes 10 ms, a tenth of a
        # small update, and does nothing for anybody but who measures.
        os._exit(code)
    sys.exit(code)


def _others_run() -> bool:
    """Whether there are threads that a regular end waits for."""
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


def run(words: Sequence[str], environment: Environment) -> int:
    """Run one command line; returns the exit code. No exception leaves it."""
    try:
        code = _dispatch(words, environment)
        environment.flush()
        return code
    except OutputClosedError:
        return READER_GONE
    except RdcError as error:
        # A message that ends an -i listing must stand below it.
        _flush_quietly(environment)
        environment.talk(f"rdc: {error}\n")
        _traceback(environment)
        return error.code
    except KeyboardInterrupt:
        return _interrupted(environment)
    except Exception as error:  # noqa: BLE001 - the last line of defence: a traceback is for whoever asks
        # Python 3.11 wraps what ends the making of a class, which a signal may do while modules are loaded.
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _interrupted(environment)
        _flush_quietly(environment)
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            # Whatever it was that could not be opened, the program's own modules included.
            environment.talk(
                "rdc: too many open files; raise their limit to the usual 1,024 (ulimit -n) and run again\n"
            )
            _traceback(environment)
            return ExitCode.FILE_IO
        hint = "" if environment.environ.get("RDC_DEBUG") else " (set RDC_DEBUG=1 for the traceback)"
        environment.talk(f"rdc: internal error: {printable(f'{type(error).__name__}: {error}')}{hint}\n")
        _traceback(environment)
        return ExitCode.USAGE


def _interrupted(environment: Environment) -> ExitCode:
    _flush_quietly(environment)
    environment.talk("rdc: interrupted\n")
    return ExitCode.INTERRUPTED


def _dispatch(words: Sequence[str], environment: Environment) -> ExitCode:
    if not words:
        raise UsageError(f"a verb is needed: {', '.join(VERBS)} (see rdc --help)")
    first = words[0]
    if first in VERBS:
        return _run_verb(_verb(first), words[1:], environment)
    if first in ("--help", "-h", "help"):
        environment.show_help(_help_text(words[1:]))
        return ExitCode.OK
    if first in ("--version", "-V"):
        environment.data(_version_text())
        return ExitCode.OK
    if first == "--man":
        from rdc.cli.manual import manual

        environment.data(manual(verbs()))
        return ExitCode.OK
    if first.startswith("-"):
        raise UsageError(f"{first} stands before any verb; write rdc sync {first} ... (see rdc --help)")
    raise UsageError(f"rdc has no verb '{first}'; to sync, write: rdc sync SRC DST (see rdc --help)")


def _run_verb(verb: Verb, words: Sequence[str], environment: Environment) -> ExitCode:
    """What was set for all runs goes before what was typed, which so overrides it."""
    defaults = [] if "--help" in words else default_words(verb.OPTIONS, environment.environ)
    try:
        return verb.run([*(chosen.word for chosen in defaults), *words], environment)
    except UsageError as error:
        for chosen in defaults:
            if chosen.word in str(error) and chosen.word not in words:
                raise UsageError(f"{error} (from {chosen.source})") from error
        raise


def verbs() -> dict[str, Verb]:
    """All verbs by name."""
    return {name: _verb(name) for name in VERBS}


def _verb(name: str) -> Verb:
    # Not importlib.import_module: importlib takes 0.3 ms to load.
    return __import__(f"rdc.cli.{name}", fromlist=["run"])


def _version_text() -> str:
    from rdc import __version__
    from rdc.kernel import kernel_name

    return f"rdc {__version__} (kernel: {kernel_name()})\n"


def _help_text(words: Sequence[str]) -> str:
    if words and words[0] in VERBS:
        return _verb(words[0]).help_text()
    summaries = "".join(f"  {name:<13}{_verb(name).SUMMARY}\n" for name in VERBS)
    return (
        "Usage: rdc VERB ...\n\n"
        "Examples:\n"
        "  rdc sync src/ backup/         make backup/ hold what src/ holds, sending only what differs\n"
        "  rdc sync src/ host:backup/    the same over ssh\n"
        "  rdc signature FILE            show how a file is cut and named\n\n"
        f"Verbs:\n{summaries}\n"
        "rdc VERB --help tells more; rdc --man prints the manual, for man -l -; rdc --version names the\n"
        "version and the kernel in use.\n"
    )


def _stop(_number: int, _frame: FrameType | None) -> None:
    # What comes first ends the run in order. A terminal that closes may send its signals more than once, but
    # whoever presses Ctrl-C again does not want to wait for the disk or for the far side.
    for number in (_signal.SIGTERM, _signal.SIGHUP):
        _signal.signal(number, _signal.SIG_IGN)
    if _signal.getsignal(_signal.SIGINT) != _signal.SIG_IGN:
        _signal.signal(_signal.SIGINT, _stop_at_once)
    raise KeyboardInterrupt


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """A signal that came in a destructor or the like, where Python drops what is raised."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        _end_at_once()
    sys.__unraisablehook__(found)


def _stop_at_once(_number: int, _frame: FrameType | None) -> None:
    _end_at_once()


def _end_at_once() -> NoReturn:
    """As a kill: every path is wholly old or wholly new at any moment, and the next run goes on."""
    with contextlib.suppress(OSError):
        # A bar may have hidden the cursor.
        os.write(2, b"\x1b[?25h\n" if os.isatty(2) else b"")
    os._exit(ExitCode.INTERRUPTED)


def _flush_quietly(environment: Environment) -> None:
    # The run already has a failure to report, and it is the one that matters.
    with contextlib.suppress(OutputClosedError, RdcError):
        environment.flush()


def _traceback(environment: Environment) -> None:
    if environment.environ.get("RDC_DEBUG"):
        import traceback

        environment.talk(traceback.format_exc())
