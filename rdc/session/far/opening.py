"""Dials both hosts of a relay, and opens a session with each in words that both understand."""

from __future__ import annotations

import contextlib
import select
import time

from rdc.errors import IncompatiblePeerError, RdcError
from rdc.lean.records import dataclass
from rdc.progress import STOP_SECONDS, check_stop
from rdc.protocol.connection import Connection, Dialect
from rdc.protocol.messages import Hello, Role
from rdc.session.far.hop import Hop
from rdc.session.runtime.commands import Send
from rdc.transport.base import timed_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.progress import StopSignal
    from rdc.session.far.far_host import FarHost, Wire
    from rdc.session.runtime.commands import Conversation

__all__ = ["Terms", "opened_hops"]


@dataclass(frozen=True, slots=True)
class Terms:
    """What both sessions of a relay have in common."""

    dialect: Dialect
    """What this program speaks."""
    software: str
    params: bytes
    """As in Hello."""
    bandwidth: int
    """Bytes per second that each host may send; 0 for no limit."""
    timeout: int
    """Seconds; 0 for no limit."""
    patience: int
    """The same for a host whose remote shell may ask for a password meanwhile."""
    opening: Callable[[Role], Conversation[None]]
    """What is sent to the host that takes this role, right after Hello."""
    stop: StopSignal | None


@contextlib.contextmanager
def opened_hops(source: FarHost, destination: FarHost, terms: Terms) -> Iterator[tuple[Hop, Hop]]:
    """Dials both hosts, one after the other, and asks each for its role. Both connections close at the end.

    A host whose dial may ask for a password comes first: the other one would not wait for a person. What
    this machine says to a host is what the other host speaks as well: the first host therefore hears nothing
    before the Hello of the second is here. Both hosts say Hello unasked, so that costs no round trip.
    Raises RdcError.
    """
    roles = {Role.SOURCE: source, Role.DESTINATION: destination}
    first, second = Role.SOURCE, Role.DESTINATION
    if destination.asks and not source.asks:
        first, second = second, first
    hops: dict[Role, Hop] = {}
    with contextlib.ExitStack() as stack:
        wire = _dialled(roles[first], stack)
        arrived, hello = _first_hello(roles[first], wire, terms)
        named = _names(source, destination)
        wires = _dialled(roles[second], stack)
        hops[second] = _asked(roles[second], wires, second, named[second], terms, hello)
        answer = _hello_of(hops[second], terms)
        with _about(source, destination):
            terms.dialect.shared_with(hello).shared_with(answer)
        hops[first] = _asked(roles[first], wire, first, named[first], terms, answer)
        hops[first].connection.receive_data(arrived)
        yield hops[Role.SOURCE], hops[Role.DESTINATION]


def _dialled(host: FarHost, stack: contextlib.ExitStack) -> Wire:
    wire = host.dial()
    stack.callback(wire.close)
    return wire


def _names(source: FarHost, destination: FarHost) -> dict[Role, str]:
    """How both hosts are named in what the user reads: with their roles where that is one host."""
    names = {Role.SOURCE: source.name, Role.DESTINATION: destination.name}
    if source.name == destination.name:
        return {role: f"{name}, {role.name.lower()}" for role, name in names.items()}
    return names


def _asked(host: FarHost, wire: Wire, role: Role, name: str, terms: Terms, other: Hello) -> Hop:
    """The hop to a host, with its opening queued. `other`: the Hello of the other host."""
    dialect = terms.dialect.shared_with(other)
    hop = Hop(
        host,
        wire,
        dialect,
        dialect.hello(terms.software, terms.params),
        name=name,
        bandwidth=terms.bandwidth,
        timeout=terms.timeout,
        stop=terms.stop,
    )
    for command in terms.opening(role):
        if isinstance(command, Send):
            hop.connection.send(command.message, command.round)
    hop.connection.flush()
    return hop


@contextlib.contextmanager
def _about(source: FarHost, destination: FarHost) -> Iterator[None]:
    try:
        yield
    except IncompatiblePeerError as error:
        raise IncompatiblePeerError(f"{source.name} and {destination.name}: {error}") from error


def _hello_of(hop: Hop, terms: Terms) -> Hello:
    """The Hello of a host that was asked. What it says after that waits."""
    try:
        while hop.connection.peer is None:
            if hop.next() is None:
                hop.link.step(True)
            check_stop(terms.stop)
    except RdcError as error:
        raise hop.named(error) from error
    return hop.connection.peer


def _first_hello(host: FarHost, wire: Wire, terms: Terms) -> tuple[bytes, Hello]:
    """What a host sends before it hears anything: the bytes so far, and the Hello in them."""
    timeout = terms.patience if host.asks else terms.timeout
    hello = terms.dialect.hello(terms.software, terms.params)
    try:
        return _read_hello(wire, hello, timeout, terms.stop)
    except RdcError as error:
        shown = host.explained(error, wire)
        if shown is error:
            shown.args = (f"{host.name}: {error}",)
        raise shown from error


def _read_hello(wire: Wire, own: Hello, timeout: int, stop: StopSignal | None) -> tuple[bytes, Hello]:
    """Raises RdcError, as a Connection does, if no Hello comes."""
    reader = Connection(True, own)  # it only reads
    arrived = bytearray()
    end = time.monotonic() + timeout if timeout else None
    while True:
        check_stop(stop)
        moved = wire.exchange(memoryview(b""), True, 0)
        arrived += moved.received
        reader.receive_data(moved.received)
        if moved.eof:
            reader.receive_eof()
        received = reader.next()
        if received is not None and isinstance(received.message, Hello):
            return bytes(arrived), received.message
        if moved.received:
            continue
        waits = [] if end is None else [end - time.monotonic()]
        if waits and waits[0] <= 0:
            raise timed_out(timeout)
        if stop is not None:
            waits.append(STOP_SECONDS)
        poll = select.poll()
        for fd, events in wire.descriptors(reads=True, writes=False).items():
            poll.register(fd, events)
        poll.poll(min(waits) * 1000 if waits else None)
