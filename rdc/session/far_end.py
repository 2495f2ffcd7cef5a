"""Runs a session with its other end: in this process, behind a remote shell, or in a daemon."""

from __future__ import annotations

import contextlib
import os
from functools import partial

from rdc.catalog.signer import FileSigner
from rdc.errors import StreamError, TrustError
from rdc.lean.records import replace
from rdc.limits.sessions import DAEMON_TIMEOUT_SECONDS
from rdc.model.location import Location, RemoteShell
from rdc.model.runs import SyncReport
from rdc.protocol.connection import Connection
from rdc.session.runtime.entries_memory import entries_memory
from rdc.session.serve import answer, as_asked, greeting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.session.far.far_host import FarHost
    from rdc.session.sync_run import SyncRun

__all__ = ["run_session"]


def run_session(
    run: SyncRun, far: Location, shell: RemoteShell, keys: str | os.PathLike[str] | None
) -> SyncReport:
    """Runs the session of `run` with an rdc at the host of `far`.

    `keys`: the key directory for rdc://; None for RDC_KEYS or the user's own directory. Raises RdcError if
    the run as a whole cannot go on.
    """
    if far.host is None:
        return _here(run)
    from rdc.session.far.far_host import far_host

    if far.port is not None:
        run.options = replace(run.options, timeout=run.options.timeout or DAEMON_TIMEOUT_SECONDS)
    return _there(run, far_host(far, shell, keys, run.events.report))


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


def _there(run: SyncRun, host: FarHost) -> SyncReport:
    """Runs this side against a far side at `host`."""
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
        wire = host.dial()
        stack.callback(wire.close)
        compress = run.options.compress is not False
        connection = Connection(True, greeting(run.signer.params), compress=compress)
        connection.entries.limit = entries_memory(run.options.max_memory)
        try:
            done = driver.run(conversation, connection, wire, stop=run.stop)
        except (StreamError, TrustError) as error:
            from rdc.session.far.far_errors import resumable

            shown = host.explained(error, wire)
            raise resumable(shown, dry_run=run.options.dry_run) from error
        report = run.totals(done, connection)
    # The end of a connection takes bytes, too.
    traffic = host.traffic(connection, wire)
    return replace(report, bytes_sent=traffic.sent, bytes_received=traffic.received)
