"""The loop of a watch: a session, and another one whenever it is lost, until the user stops it."""

from __future__ import annotations

from rdc.errors import ExitCode, RdcError, StoppedError
from rdc.model.watch import Disconnected, Halted, InStep, Resumed, WatchReport
from rdc.progress import Problem
from rdc.session.far.far_host import far_host
from rdc.tree.filter_list import filter_list
from rdc.watching.listeners import NearUser

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from rdc.catalog.signer import FileSigner
    from rdc.model.location import Location, RemoteShell
    from rdc.model.watch import WatchEvent, WatchOptions
    from rdc.progress import Event, StopSignal
    from rdc.session.far.far_host import FarHost
    from rdc.watching.hook import Hook
    from rdc.watching.reporter import WatchReporter

FIRST_WAIT_SECONDS = 0.5
LAST_WAIT_SECONDS = 60.0
"""Longest wait in seconds before a lost far side is dialled again. Each wait doubles; a complete turn resets
it."""

FINAL = {ExitCode.USAGE, ExitCode.INCOMPATIBLE, ExitCode.REFUSED}
"""Errors that no wait repairs: a person must change a command, a program, a key or a daemon's rules. Retries
would fill the daemon's log and let the user believe that the copy is kept."""


def _one_at_a_time(reporter: WatchReporter) -> WatchReporter:
    """Returns a reporter for several threads."""
    from threading import Lock

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
            from rdc.watching.hook import Hook

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
        """The host of a tree, made for each session: its keys may have changed meanwhile."""
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
