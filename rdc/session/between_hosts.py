"""A sync from one other host to another: all of it passes through this machine, and nothing of it stays."""

from __future__ import annotations

import posixpath

from rdc.errors import RdcError, StreamError, UsageError
from rdc.lean.records import replace
from rdc.limits import DAEMON_TIMEOUT_SECONDS
from rdc.model.options import HERE
from rdc.model.runs import MessageCost, SyncReport
from rdc.model.sync import OPTIONS, SyncOptions
from rdc.protocol.connection import DIALECT, cost_of, dearest_first
from rdc.session.far.far_host import far_host, resumable
from rdc.session.far.relay import Relay, SyncJunction, Terms, opened_hops
from rdc.session.serve import greeting
from rdc.session.trees.sites import entry_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from rdc.model.location import Location, RemoteShell
    from rdc.session.sync_run import SyncRun


def check_between(sources: Iterable[Location], destination: Location, options: SyncOptions) -> None:
    """Raise UsageError for what cannot be between two other hosts."""
    for name, declared in OPTIONS.items():
        value = getattr(options, name)
        if declared.wire is HERE and value:
            raise UsageError(
                f"{declared.spelling(value)} is about this machine's end, and SRC and DST are both on other"
                " hosts; run rdc on one of them"
            )
    if options.files_from is not None:
        raise UsageError(
            "--files-from=HOST:FILE: SRC and DST are both on other hosts, so the list has to be here:"
            " ssh HOST cat FILE into --files-from=-"
        )
    if options.compress is False:
        raise UsageError(
            "--no-compress is about what this machine sends, and SRC and DST are both on other hosts, which"
            " decide for themselves"
        )
    for source in sources:
        if (source.host, source.port) == (destination.host, destination.port):
            _check_apart(source, destination, options)


def _check_apart(source: Location, destination: Location, options: SyncOptions) -> None:
    """Refuse one tree in the other on one host, by their names: what links lead to is not known here."""
    tree, top = posixpath.normpath(source.path), posixpath.normpath(destination.path)
    name = entry_of(source.inner)
    if tree in {top, posixpath.normpath(posixpath.join(top, name))}:
        raise UsageError(f"{source} and its copy in {destination} are the same")
    if _is_below(top, tree):
        raise UsageError(f"{destination} is in {source}, which would be copied into itself")
    if options.delete and not name and _is_below(tree, top):
        raise UsageError(f"{source} is in {destination}, and --delete would remove it")


def _is_below(path: bytes, top: bytes) -> bool:
    if top == b".":
        return path != b"." and not path.startswith((b"/", b"../")) and path != b".."
    return path.startswith(top.rstrip(b"/") + b"/")


def run_between(run: SyncRun, shell: RemoteShell, keys: str | os.PathLike[str] | None) -> SyncReport:
    """Run the session of `run` with an rdc at each of its two hosts.

    `keys`: as for rdc.sync. Raises RdcError, with the name of the host that it is about, if the run as a
    whole cannot go on.
    """
    patience = run.options.timeout
    if run.source.port is not None or run.destination.port is not None:
        run.options = replace(run.options, timeout=patience or DAEMON_TIMEOUT_SECONDS)
    own = greeting(run.signer.params)
    terms = Terms(
        DIALECT,
        own.software,
        own.params,
        run.options.bandwidth,
        run.options.timeout,
        patience,
        run.opening,
        run.stop,
    )
    source = far_host(run.source, shell, keys, run.events.report)
    destination = far_host(run.destination, shell, keys, run.events.report)
    asked = b"" if run.selects else entry_of(run.source.inner)
    try:
        with opened_hops(source, destination, terms) as hops:
            junction = SyncJunction(*hops, run.events, asked)
            Relay(*hops, junction, timeout=terms.timeout, stop=run.stop).run()
            costs = dearest_first(_together(cost for hop in hops for cost in hop.connection.costs))
            rounds = max(hop.connection.max_round for hop in hops)
    except StreamError as error:
        raise resumable(error, dry_run=run.options.dry_run) from error
    if junction.done is None:
        raise RdcError("a relay ended before its session")
    run.files, run.total_bytes, run.entries = junction.files, junction.total_bytes, junction.entries
    traffic = [hop.traffic for hop in hops]
    return replace(
        run.outcome(junction.done, rounds, costs),
        bytes_sent=sum(each.sent for each in traffic),
        bytes_received=sum(each.received for each in traffic),
    )


def _together(costs: Iterable[MessageCost]) -> Iterable[MessageCost]:
    """Return the costs of both hops, a row for each kind of message."""
    sums: dict[str, list[int]] = {}
    for cost in costs:
        row = sums.setdefault(cost.name, [0, 0, 0])
        for column, number in enumerate((cost.count, cost.bytes, cost.plain)):
            row[column] += number
    return [cost_of(name, *row) for name, row in sums.items()]
