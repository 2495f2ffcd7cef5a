"""The entry point of the `rdc` command. Finds the verb, runs it and returns one exit code."""

from __future__ import annotations

import contextlib
import errno
import os
import sys

from rdc.cli.environment import Environment, OutputClosedError, process_environment
from rdc.cli.verb import VERBS, load_verb, load_verbs, run_with_settings
from rdc.errors import ExitCode, RdcError, UsageError, one_line
from rdc.lean.enums import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType
    from typing import NoReturn


READER_GONE: int = 128 + signal.SIGPIPE
"""The exit code when the reader of stdout has left, as in `rdc sync -v ... | head`.

A shell shows this code for a program that SIGPIPE ended. rsync has no code of that number.
"""


_WITHOUT_C = (
    "rdc: {} lacks its C modules; install a C compiler and Python's headers (Debian: apt-get install gcc"
    " python3-dev), then rdc again, from its sources (python3 -m pip install --force-reinstall .)\n"
)


def entry() -> None:
    """Run this process's command line, then exit."""
    sys.unraisablehook = _unraisable
    try:
        from rdc.files.base.syscalls import raise_descriptor_limit

        raise_descriptor_limit()
    except ImportError:
        pass  # without its C modules, `run` says what to install
    words, environment = sys.argv[1:], process_environment()
    # SIGTERM and SIGHUP end a run like Ctrl-C: it removes its temporary files. Before, nothing is begun, and
    # an exception of `_stop` would leave this function as a traceback.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, _stop)
    code = run(words, environment)
    try:
        sys.stdout.flush()
    except OSError:
        # A closed pipe or a full disk. `run` has reported it. Without this, Python's flush at exit would
        # fail again, print a second message and change the exit code.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if sys.gettrace() is None and sys.getprofile() is None and not _others_run():
        # All output is written and closed. This skips the clean-up of the interpreter. Measured: it saves
        # 9.6 ms of CPU per local sync and 3.3 ms per --version. Debuggers and profilers need the clean-up.
        os._exit(code)
    sys.exit(code)


def _others_run() -> bool:
    """Return whether threads run that a regular exit waits for."""
    threading = sys.modules.get("threading")
    return threading is not None and threading.active_count() > 1


def run(words: Sequence[str], environment: Environment) -> int:
    """Run one command line, and return its exit code. Raises nothing."""
    try:
        code = _dispatch(words, environment)
        environment.flush()
        return code
    except OutputClosedError:
        return READER_GONE
    except RdcError as error:
        # The message must follow the listing of -i.
        _flush_quietly(environment)
        environment.talk(f"rdc: {error}\n")
        _traceback(environment)
        return _code_of(words, error.code)
    except KeyboardInterrupt:
        return _interrupted(environment)
    except Exception as error:  # noqa: BLE001 - the last resort; RDC_DEBUG shows the traceback
        # Python 3.11 wraps an exception that ends a class statement. A signal can raise one during imports.
        if isinstance(error.__cause__, KeyboardInterrupt):
            return _interrupted(environment)
        _flush_quietly(environment)
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            # This covers the program's own modules, too.
            environment.talk(
                "rdc: too many open files; raise their limit to the usual 1,024 (ulimit -n) and run again\n"
            )
            _traceback(environment)
            return ExitCode.FILE_IO
        if isinstance(error, ImportError) and _lacks_module(error):
            environment.talk(_WITHOUT_C.format(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
            _traceback(environment)
            return _code_of(words, ExitCode.USAGE)
        hint = "" if environment.environ.get("RDC_DEBUG") else " (set RDC_DEBUG=1 for the traceback)"
        environment.talk(f"rdc: internal error: {one_line(f'{type(error).__name__}: {error}')}{hint}\n")
        _traceback(environment)
        return _code_of(words, ExitCode.USAGE)


def _lacks_module(error: ImportError) -> bool:
    """Return whether it is a C module of rdc that is not there."""
    return (error.name or "").startswith("rdc.") and "cannot import name '_" in str(error)


def _code_of(words: Sequence[str], code: ExitCode) -> ExitCode:
    """Return the exit code of a failure. Of `rdc check`, 1 means that the trees differ."""
    return ExitCode.CHECK_USAGE if code is ExitCode.USAGE and words[:1] == ["check"] else code


def _interrupted(environment: Environment) -> ExitCode:
    _flush_quietly(environment)
    environment.talk("rdc: interrupted\n")
    return ExitCode.INTERRUPTED


_COMPARE = "to compare two directories, write: rdc check SRC DST"
_TWO_WAY = "to sync both ways, write: rdc unite LEFT RIGHT"
_SNAPSHOT = "to keep snapshots, write: rdc store put SRC STORE"
_LIST = "to list a directory, write: rdc sync SRC"
_OTHER_VERBS = {
    **dict.fromkeys(("verify", "diff", "compare", "cmp", "audit"), _COMPARE),
    **dict.fromkeys(("bisync", "twoway", "two-way"), _TWO_WAY),
    **dict.fromkeys(("backup", "snapshot", "snapshots", "put"), _SNAPSHOT),
    **dict.fromkeys(("ls", "list", "dir"), _LIST),
    "status": "to see what a sync would change, write: rdc sync -n -i SRC DST",
    "restore": "to revert the last sync, write: rdc undo DST; a snapshot: rdc sync STORE/@latest/ DST",
    **dict.fromkeys(
        ("prune", "gc", "forget"), "snapshots: rdc store forget and gc; signatures: rdc catalog prune"
    ),
    **dict.fromkeys(
        ("group", "find", "duplicates", "fdupes"), "to find identical files, write: rdc dupes PATH"
    ),
    "remove": "to delete identical files, write: rdc dupes --delete PATH",
    "move": "to move identical files away, write: rdc dupes --move=DIR PATH; to sync, rdc sync SRC DST",
    **dict.fromkeys(
        ("link", "reflink"),
        "to share blocks of identical files, write: rdc dedupe PATH; for hard links: --hardlink",
    ),
    "init": "nothing needs to be created first; to keep snapshots, write: rdc store put SRC STORE",
    "mount": "stores are not mounted; to list a snapshot, write: rdc sync STORE/@latest/",
    "stats": "to see the snapshots of a store and their sizes, write: rdc store list STORE",
    "unison": _TWO_WAY,
    **dict.fromkeys(("rsync", "copy", "cp", "push", "pull", "mirror"), "to sync, write: rdc sync SRC DST"),
    "version": "write: rdc --version",
    "man": "write: rdc --man | man -l -",
    "daemon": "write: rdc serve --config=FILE",
}
"""Advice for verbs of other tools, by their names."""


def _dispatch(words: Sequence[str], environment: Environment) -> ExitCode:
    """Run the verb, or print the text, that the first word names. Raises RdcError."""
    if not words:
        raise UsageError(f"a verb is needed: {', '.join(VERBS)} (see rdc --help)")
    first = words[0]
    if first in VERBS:
        return _run_verb(first, words[1:], environment)
    if first in ("--help", "-h", "help"):
        environment.show_help(_help_text(words[1:]))
        return ExitCode.OK
    if first in ("--version", "-V"):
        environment.data(_version_text())
        return ExitCode.OK
    if first == "--man":
        from rdc.cli.manual import manual

        environment.data(manual(load_verbs()))
        return ExitCode.OK
    if first.startswith("-"):
        raise UsageError(f"{first} comes before the verb; write rdc sync {first} ... (see rdc --help)")
    raise _no_verb(first)


def _no_verb(verb: str) -> UsageError:
    """Return the error for a word that is no verb, with the verb that does what it says elsewhere."""
    from difflib import get_close_matches

    close = get_close_matches(verb.lower(), VERBS, n=1)
    advice = _OTHER_VERBS.get(verb.lower()) or (
        f"did you mean {close[0]}?" if close else "to sync, write: rdc sync SRC DST"
    )
    return UsageError(f"rdc has no verb '{verb}'; {advice} (see rdc --help)")


def _run_verb(name: str, words: Sequence[str], environment: Environment) -> ExitCode:
    """Run a verb, or print its man page."""
    if list(words) == ["--man"]:
        from rdc.cli.manual import verb_manual

        environment.data(verb_manual(name, load_verb(name)))
        return ExitCode.OK
    if words and words[-1] == "-h" and (len(words) == 1 or _are_subverb(name, words[:-1])):
        # -h without other words asks for help, as in rsync: alone, "sizes in units" asks for no run.
        words = [*words[:-1], "--help"]
    return run_with_settings(name, words, environment)


def _are_subverb(verb: str, words: Sequence[str]) -> bool:
    """Return whether `words` are a verb below `verb`, such as put of `rdc store put`."""
    return len(words) == 1 and words[0] in getattr(load_verb(verb), "SUBVERBS", ())


def _version_text() -> str:
    from rdc.kernel import kernel_name
    from rdc.version import __version__

    return f"rdc {__version__} (kernel: {kernel_name()})\n"


def _help_text(words: Sequence[str]) -> str:
    """Return the help of a verb, or of rdc without one. Raises UsageError for a word that is no verb."""
    if words and words[0] not in VERBS and not words[0].startswith("-"):
        raise _no_verb(words[0])
    if words and words[0] in VERBS:
        return load_verb(words[0]).help_text.brief()
    summaries = "".join(f"  {name:<13}{load_verb(name).SUMMARY}\n" for name in VERBS)
    return (
        "Usage: rdc VERB ...\n\n"
        "Examples:\n"
        "  rdc sync src/ backup/         update backup/ from src/; only the differences are sent\n"
        "  rdc sync src/ host:backup/    the same over ssh\n"
        "  rdc install host              install rdc on host first, if it is missing there\n\n"
        f"Verbs:\n{summaries}\n"
        "Help on a verb: rdc VERB --help. Man pages: rdc --man | man -l - and rdc VERB --man | man -l -.\n"
        "Version and kernel in use: rdc --version.\n"
    )


def _stop(_number: int, _frame: FrameType | None) -> None:
    # The first signal ends the run in order. A second Ctrl-C ends the process at once, without waiting for
    # disk or network; that comes first here, or a second one in between would count as the first again.
    # A closing terminal may repeat SIGHUP and SIGTERM, so these are ignored from here on.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, _stop_at_once)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def _unraisable(found: sys.UnraisableHookArgs) -> None:
    """End the process for a signal during a destructor, where Python drops exceptions."""
    if isinstance(found.exc_value, KeyboardInterrupt):
        _end_at_once()
    sys.__unraisablehook__(found)


def _stop_at_once(_number: int, _frame: FrameType | None) -> None:
    _end_at_once()


def _end_at_once() -> NoReturn:
    """End the process without clean-up. Each path is either old or new; the next run continues."""
    with contextlib.suppress(OSError):
        # A progress bar may have hidden the cursor.
        os.write(2, b"\x1b[?25h\n" if os.isatty(2) else b"")
    os._exit(ExitCode.INTERRUPTED)


def _flush_quietly(environment: Environment) -> None:
    # The caller reports an earlier failure, which matters more than this one.
    with contextlib.suppress(OutputClosedError, RdcError):
        environment.flush()


def _traceback(environment: Environment) -> None:
    if environment.environ.get("RDC_DEBUG"):
        import traceback

        environment.talk(traceback.format_exc())
