"""Runs a session with its other end: in this process, behind a remote shell, or in a daemon."""

from __future__ import annotations

import contextlib
import os
import time
from functools import partial

from rdc.catalog.signer import FileSigner
from rdc.errors import (
    ExitCode,
    RdcError,
    StreamError,
    TrustError,
)
from rdc.limits.daemon import DAEMON_TIMEOUT_SECONDS, EXPIRY_NOTICE_DAYS
from rdc.model.location import DEFAULT_PORT, Location, RemoteShell
from rdc.model.sync_report import SyncReport
from rdc.progress import Problem
from rdc.protocol.rules.connection import Connection
from rdc.records import replace
from rdc.session.runtime.entries_memory import entries_memory
from rdc.session.serve import answer, as_asked, greeting
from rdc.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.session.sync_run import SyncRun
    from rdc.transport.base import Transport
    from rdc.transport.stdio import ChildTransport
    from rdc.transport.tls import TlsTransport

__all__ = ["run_session"]


W = TypeVar("W", bound="Transport")


def run_session(
    run: SyncRun, far: Location, shell: RemoteShell, keys: str | os.PathLike[str] | None
) -> SyncReport:
    """Runs the session of `run` with an rdc at the host of `far`.

    `keys`: the key directory for rdc://; None for RDC_KEYS or the user's own directory. Raises RdcError if
    the run as a whole cannot go on.
    """
    if far.host is None:
        return _here(run)
    if far.port is None:
        return _by_shell(run, far.host, shell)
    return _by_daemon(run, far.host, far.port, keys)


def _here(run: SyncRun) -> SyncReport:
    """Runs both ends in this process. The source has its own thread: both sides read and hash at the same
    time."""
    from rdc.session.runtime.in_process import InProcessLink

    # Report a mistake in SRC as an error of this side, not of the far side.
    run.source_tree().release()
    run.check_nesting()
    run.pack = run.options.compress is True
    clones = run.staged_clones()
    with (
        contextlib.closing(FileSigner(catalog=run.signer.catalog)) as signer,
        contextlib.nullcontext() if clones is None else contextlib.closing(clones),
    ):
        admit = partial(
            as_asked,
            destination=run.destination.path,
            munge_links=run.options.munge_links,
            fake_super=run.options.fake_super,
        )
        link = InProcessLink(run.fetch(clones), answer(signer, admit, clones=clones), run.stop)
        return run.totals(link.run(), link)


def _by_shell(run: SyncRun, host: str, shell: RemoteShell) -> SyncReport:
    """Runs the other end through a remote shell, which starts rdc there."""
    from rdc.transport.remote import remote_argv
    from rdc.transport.stdio import ChildTransport

    argv = remote_argv(host, shell)

    def explained(error: RdcError, transport: ChildTransport) -> RdcError:
        if not isinstance(error, StreamError):
            return error
        # Only if the far side never answered does the exit status explain why; else do not wait for it.
        from rdc.session.far_errors import explained_end

        transport.close_write()
        return explained_end(error, host, shell, transport.wait() if error.before_hello else None)

    return _remote(run, lambda: ChildTransport(argv), explained)


def _by_daemon(run: SyncRun, host: str, port: int, keys: str | os.PathLike[str] | None) -> SyncReport:
    """Runs the other end in a daemon. The report counts all bytes of the TCP stream, TLS included."""
    from pathlib import Path

    from rdc.transport.keys import KeyRing, key_directory
    from rdc.transport.tls_dial import connect
    from rdc.transport.tls_trust import days_until

    ring = KeyRing.read(key_directory(os.environ) if keys is None else Path(keys))
    peers = ring.peers(host, port, default_port=DEFAULT_PORT)
    run.options = replace(run.options, timeout=run.options.timeout or DAEMON_TIMEOUT_SECONDS)
    transports: list[TlsTransport] = []

    def dial() -> TlsTransport:
        transports.append(connect(host, port, ring, peers))
        days = days_until(transports[0].peer_expires, time.time())
        if days is not None and days < EXPIRY_NOTICE_DAYS:
            line = f"{host}: its certificate expires in {days} days; it needs a new one, trusted here"
            run.events.report(Problem(ExitCode.OK, b"", line))
        return transports[0]

    def explained(error: RdcError, _: TlsTransport) -> RdcError:
        return TrustError(f"{host}: {error}") if isinstance(error, TrustError) else error

    report = _remote(run, dial, explained)
    (used,) = transports
    return replace(report, bytes_sent=used.bytes_sent, bytes_received=used.bytes_received)


def _remote(run: SyncRun, dial: Callable[[], W], explained: Callable[[RdcError, W], RdcError]) -> SyncReport:
    """Runs this side against a far side that `dial` connects. `explained` improves connection errors."""
    from rdc.session.runtime import driver

    with contextlib.ExitStack() as stack:
        if run.source.host is None:
            # Check SRC before dialling: a mistyped path should not ask for a password first.
            tree = run.checked_source()
            if tree is not None:
                stack.callback(tree.release)
            conversation = run.send(tree)
        else:
            conversation = run.fetch()
        transport = dial()
        stack.callback(transport.close)
        compress = run.options.compress is not False
        connection = Connection(True, greeting(run.signer.params), compress=compress)
        connection.entries.limit = entries_memory(run.options.max_memory)
        try:
            done = driver.run(conversation, connection, transport, stop=run.stop)
        except (StreamError, TrustError) as error:
            from rdc.session.far_errors import resumable

            shown = explained(error, transport)
            raise resumable(shown, dry_run=run.options.dry_run) from error
        return run.totals(done, connection)
