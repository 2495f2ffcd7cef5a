"""`watch`: one session, dialled again whenever its far side is lost, until somebody stops it."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from typing import TYPE_CHECKING

from rdc.catalog.location import USER_CATALOG, UserCatalog, opened_catalog
from rdc.catalog.signer import FileSigner
from rdc.errors import CommandMissingError, ExitCode, ProtocolError, RdcError, StreamError, UsageError
from rdc.model.location import RemoteShell
from rdc.model.watch import Disconnected, Halted, InStep, Resumed, WatchReport
from rdc.progress import Problem
from rdc.protocol.connection import Connection
from rdc.session.driver import run
from rdc.session.overlap import check_overlap
from rdc.session.serve import greeting
from rdc.tree.filters import FilterList
from rdc.watch.follower import Follower, Meter

if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.catalog.store import SignatureStore
    from rdc.model.location import Location
    from rdc.model.watch import WatchEvent, WatchOptions
    from rdc.progress import Event

__all__ = ["watch"]

SECRET_BYTES = 16
FIRST_WAIT_SECONDS = 0.5
LAST_WAIT_SECONDS = 60.0
"""Before a lost far side is dialled again; doubled from one to the other, anew after each turn that came to
its end."""


def watch(
    source: Location,
    destination: Location,
    options: WatchOptions,
    *,
    shell: RemoteShell | None = None,
    report: Callable[[Event], None],
    tell: Callable[[WatchEvent], None],
    catalog: SignatureStore | UserCatalog | None = USER_CATALOG,
    sleep: Callable[[float], None] = time.sleep,
) -> WatchReport:
    """Keeps `destination` in step with the directory `source` until KeyboardInterrupt, which ends it.

    What is told of single entries goes to `report`, all else to `tell`. Raises RdcError when the first
    comparison of the trees fails; later failures are told and tried again.
    """
    if source.host is not None:
        raise UsageError(
            "SRC must be a directory of this machine; to follow one elsewhere, run rdc watch there"
        )
    if destination.port is not None:
        raise UsageError(
            "rdc watch does not speak to daemons yet; name DST as HOST:PATH, over a remote shell"
        )
    if options.sync.dry_run or options.sync.checksum:
        raise UsageError("rdc watch takes neither --dry-run nor --checksum; rdc sync does")
    if destination.host is None:
        rules = FilterList(options.sync.rules)
        check_overlap(source.path, destination.path, rules, delete=options.sync.delete)
    with opened_catalog(catalog, report) as store:
        watch_ = _Watch(source, destination, options, shell or RemoteShell(), report, tell, store)
        with contextlib.suppress(KeyboardInterrupt):
            watch_.run(sleep)
        return watch_.report()


class _Watch:
    def __init__(
        self,
        source: Location,
        destination: Location,
        options: WatchOptions,
        shell: RemoteShell,
        report: Callable[[Event], None],
        tell: Callable[[WatchEvent], None],
        store: SignatureStore,
    ) -> None:
        self._source = source
        self._options = options
        self._destination = destination
        self._argv = _far_argv(destination, shell)
        self._report = report
        self._tell_user = tell
        self._signer = FileSigner(catalog=store)
        self._filters = FilterList(options.sync.rules)
        self._entries = 0
        self._in_step = False
        self._halted = False
        self._turns = self._changed = self._deleted = self._errors = 0
        self._sent = self._received = 0

    def run(self, sleep: Callable[[float], None]) -> None:
        wait = FIRST_WAIT_SECONDS
        while True:
            before = self._turns
            try:
                self._session()
            except RdcError as error:
                if not self._in_step or error.code in (ExitCode.USAGE, ExitCode.INCOMPATIBLE):
                    raise
                if self._turns > before:
                    wait = FIRST_WAIT_SECONDS
                self._lost(error, wait)
                sleep(wait)
                wait = min(2 * wait, LAST_WAIT_SECONDS)

    def _lost(self, error: RdcError, wait: float) -> None:
        at_home = not os.path.isdir(self._source.path)
        if at_home:
            # Dialling did not fail: there is nothing to dial for.
            if not self._halted:
                self._halted = True
                self._tell_user(Halted(str(error)))
            return
        self._tell_user(Disconnected(str(error), wait))

    def _session(self) -> None:
        from rdc.transport.stdio import ChildTransport

        compress = self._options.sync.compress
        connection = Connection(
            True, greeting(self._signer.params), compress=compress or (compress is None and self._is_remote)
        )
        follower = Follower(
            self._source.path,
            self._destination.path,
            self._options,
            self._filters,
            os.urandom(SECRET_BYTES),
            self._signer,
            self._take,
            self._tell,
            lambda: Meter(connection.bytes_sent, connection.bytes_received),
            again=self._in_step and self._entries > 0,
        )
        try:
            transport = ChildTransport(self._argv)
            try:
                run(follower.run(), connection, transport)
            finally:
                transport.close()
        except StreamError as error:
            if isinstance(error, ProtocolError) or not error.before_hello or self._in_step:
                raise
            status = transport.returncode
            if status in (126, 127):
                raise CommandMissingError(
                    f"no rdc on {self._destination.host}: install it there or name its path with"
                    " --remote-path"
                ) from error
            raise
        finally:
            follower.close()
            self._entries = follower.entries or self._entries
            self._sent += connection.bytes_sent
            self._received += connection.bytes_received

    @property
    def _is_remote(self) -> bool:
        return self._destination.host is not None

    def _take(self, event: Event) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            self._errors += 1
        self._report(event)

    def _tell(self, event: WatchEvent) -> None:
        if isinstance(event, InStep):
            if self._halted:
                self._halted = False
                self._tell_user(Resumed())
            self._in_step = True
            self._turns += 1
            self._changed += event.changed
            self._deleted += event.deleted
        self._tell_user(event)

    def report(self) -> WatchReport:
        return WatchReport(
            self._turns, self._changed, self._deleted, self._sent, self._received, self._errors
        )


def _far_argv(destination: Location, shell: RemoteShell) -> list[str]:
    """The far side, on this machine too, is a process of its own: the session is the same, and what reads and
    writes there slows nothing down here."""
    if destination.host is not None:
        from rdc.transport.remote import remote_argv

        return remote_argv(destination.host, shell)
    # -P: no module of the directory that one happens to be in.
    return [sys.executable, "-P", "-m", "rdc", "serve", "--stdio"]
