"""The loop of a watch: a session, and another one whenever it is lost, until the user stops it."""

from __future__ import annotations

import os
import subprocess
import threading
from threading import Lock

from rdc.errors import ExitCode, RdcError, StoppedError, one_line
from rdc.lean.records import Record
from rdc.limits import QUIET_SECONDS
from rdc.progress import Event, Problem, StopSignal
from rdc.session.far.far_host import FarHost, far_host
from rdc.tree import filter_list
from rdc.watching.listeners import NearUser
from rdc.watching.records import (
    Disconnected,
    Halted,
    InStep,
    Resumed,
    WatchEvent,
    WatchOptions,
    WatchReport,
    WatchReporter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rdc.catalog.signer import FileSigner
    from rdc.model.location import Location, RemoteShell


# Hook: a command of the user's that runs after changes, once the watch is quiet.
#
# It runs beside the watch, in a thread that waits for it, so that the session goes on meanwhile. There is
# never more than one at a time: what changes while it runs leads to another run after it. What changed is
# counted, not listed, so a burst of any length takes no memory.


class Changes(Record):
    """The changes of one or more turns."""

    turns: int = 0
    changed: int = 0
    deleted: int = 0
    files: int = 0
    """Files of the source after the last of these turns."""

    @property
    def environment(self) -> dict[str, str]:
        """The variables that say it."""
        return {
            "RDC_WATCH_TURNS": str(self.turns),
            "RDC_WATCH_CHANGED": str(self.changed),
            "RDC_WATCH_DELETED": str(self.deleted),
            "RDC_WATCH_FILES": str(self.files),
        }


def run_command(words: Sequence[str], changes: Changes) -> str | None:
    """Run the command, without a shell, and wait for its end. Its stdout is this process's stderr, since
    stdout may be events for a program. Returns what is wrong with it; None if it ended with 0."""
    try:
        ended = subprocess.run(
            words, stdin=subprocess.DEVNULL, stdout=2, env=os.environ | changes.environment, check=False
        )
    except OSError as error:
        return f"cannot be run: {error.strerror or error}"
    except ValueError as error:  # such as a NUL
        return f"cannot be run: {error}"
    if ended.returncode < 0:
        return f"ended by signal {-ended.returncode}"
    return f"ended with exit code {ended.returncode}" if ended.returncode else None


class Hook:
    """Runs a command after turns that changed something. `note` each turn, `close` at the end."""

    def __init__(
        self,
        words: Sequence[str],
        report: Callable[[Problem], None],
        *,
        run: Callable[[Sequence[str], Changes], str | None] = run_command,
        quiet: float = QUIET_SECONDS,
    ) -> None:
        """`report`: told of each run that fails, by the thread that waits for it. `quiet`: seconds without a
        turn before a run begins."""
        self._words = tuple(words)
        self._report = report
        self._run = run
        self._quiet = quiet
        self._state = threading.Condition()
        self._noted = Changes()
        self._closing = False
        self._thread: threading.Thread | None = None

    def note(self, turn: InStep) -> None:
        """Count what a turn changed, if it did. Never waits."""
        if not (turn.changed or turn.deleted):
            return
        with self._state:
            before = self._noted
            self._noted = Changes(
                before.turns + 1,
                before.changed + turn.changed,
                before.deleted + turn.deleted,
                turn.files,
            )
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="rdc hook", daemon=True)
                self._thread.start()
            self._state.notify()

    def close(self) -> None:
        """Run what is due at once, and wait for its end."""
        with self._state:
            self._closing = True
            self._state.notify()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _work(self) -> None:
        while (changes := self._next()) is not None:
            problem = self._run(self._words, changes)
            if problem is not None:
                said = f"--on-sync: {one_line(' '.join(self._words))}: {problem}; the watch goes on"
                self._report(Problem(ExitCode.PARTIAL, b"", said))

    def _next(self) -> Changes | None:
        """Wait for changes, and then until it is quiet. None: there will be no more."""
        with self._state:
            while not self._noted.turns:
                if self._closing:
                    return None
                self._state.wait()
            turns = 0
            while turns != self._noted.turns and not self._closing:
                turns = self._noted.turns
                self._state.wait(self._quiet)
            changes, self._noted = self._noted, Changes()
            return changes


FIRST_WAIT_SECONDS = 0.5
LAST_WAIT_SECONDS = 60.0
"""Longest wait in seconds before a lost remote side is dialled again. Each wait doubles; a complete turn
resets it."""

FINAL = {ExitCode.USAGE, ExitCode.INCOMPATIBLE, ExitCode.REFUSED}
"""Errors that no wait repairs: a person must change a command, a program, a key or a daemon's rules. Retries
would fill the daemon's log and let the user believe that the copy is kept."""


def _one_at_a_time(reporter: WatchReporter) -> WatchReporter:
    """Return a reporter for several threads."""
    lock = Lock()

    def report(event: Event | WatchEvent, /) -> None:
        with lock:
            reporter(event)

    return report


class WatchLoop:
    """The part of a watch that does not depend on where the trees are."""

    def __init__(
        self,
        source: Location,
        destination: Location,
        options: WatchOptions,
        reporter: WatchReporter,
        signer: FileSigner,
        stop: StopSignal | None,
        shell: RemoteShell,
        keys: str | os.PathLike[str] | None,
    ) -> None:
        self._shell = shell
        self._keys = keys
        self._source = source
        self._destination = destination
        self._options = options
        self._report = reporter
        self._emit_to_user = reporter
        self._hook: Hook | None = None
        if options.on_sync:
            # The thread of the hook reports too, and a reporter need not expect two threads at once.
            self._report = self._emit_to_user = _one_at_a_time(reporter)
            self._hook = Hook(options.on_sync, self._take)
        self._signer = signer
        self._stop = stop
        self._filters = filter_list(options.sync.rules)
        self._user = NearUser(self._take, self._emit)
        self._in_step = False
        self._halted = False
        self._turns = self._changed = self._deleted = self._errors = 0
        self._sent = self._received = 0

    def run(self, sleep: Callable[[float], None]) -> None:
        wait = FIRST_WAIT_SECONDS
        while True:
            before = self._turns
            try:
                self._prepare(sleep)
                self._session()
            except StoppedError:
                raise
            except RdcError as error:
                if not self._in_step or error.code in FINAL:
                    raise
                if self._turns > before:
                    wait = FIRST_WAIT_SECONDS
                self._emit_to_user(Disconnected(str(error), wait))
                sleep(wait)
                wait = min(2 * wait, LAST_WAIT_SECONDS)

    def _prepare(self, sleep: Callable[[float], None]) -> None:
        """Prepare before the first dial."""

    def _session(self) -> None:
        """One session, up to the error that ends it."""
        raise NotImplementedError

    def _host(self, location: Location) -> FarHost:
        """Return the host of a tree, made for each session: its keys may have changed meanwhile."""
        return far_host(location, self._shell, self._keys, self._take)

    def _take(self, event: Event) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._errors += 1
        self._report(event)

    def _emit(self, event: WatchEvent) -> None:
        if isinstance(event, Halted):
            self._halted = True
        elif isinstance(event, Resumed):
            self._halted = False
        elif isinstance(event, InStep):
            if self._halted:
                self._halted = False
                self._emit_to_user(Resumed())
            self._in_step = True
            self._turns += 1
            self._changed += event.changed
            self._deleted += event.deleted
        self._emit_to_user(event)
        if self._hook is not None and isinstance(event, InStep):
            self._hook.note(event)

    def close(self) -> None:
        """Wait for the hook."""
        if self._hook is not None:
            self._hook.close()

    def report(self) -> WatchReport:
        return WatchReport(
            self._turns, self._changed, self._deleted, self._sent, self._received, self._errors
        )
