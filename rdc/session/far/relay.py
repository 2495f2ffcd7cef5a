"""The relay between two other hosts: its connections, their opening, the loop, and each message of a sync."""

from __future__ import annotations

import contextlib
import select
import time

from rdc.errors import (
    ExitCode,
    IncompatiblePeerError,
    ProtocolError,
    RdcError,
    StoppedError,
    StreamError,
    one_line,
)
from rdc.lean.records import Record
from rdc.lean.typed import Protocol
from rdc.limits import RAW_BLOCK_BYTES
from rdc.progress import STOP_SECONDS, Problem, StopSignal, check_stop
from rdc.protocol import messages
from rdc.protocol.connection import Connection, Dialect, LocalProtocolError, Received
from rdc.protocol.messages import Code, Data, FileBatch, Hello, Literals, Refused, Role, Table
from rdc.session.runtime.commands import CompressionPolicy, Content, Conversation, EventRelay, Send
from rdc.session.runtime.driver import BEATS, ByteLink, RefusedError, unknown_there
from rdc.session.source.range_answers import HARD_BYTES
from rdc.session.trees.sites import announced
from rdc.transport.base import timed_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rdc.protocol.messages import Message
    from rdc.protocol.pending import AskedRanges
    from rdc.session.far.far_host import FarHost, Traffic, Wire


PENDING_HIGH = 256 << 10
"""Bytes that wait for a hop from which on nothing is read for it. With the two limits below, a relay holds
some 4 MiB in each direction, whatever passes."""

INBOUND_BYTES = RAW_BLOCK_BYTES + 16
"""Bytes that one hop reads ahead: the longest block has to fit."""


class Hop:
    """A connection of this machine, as its dialler, and the bytes on it."""

    def __init__(
        self,
        host: FarHost,
        wire: Wire,
        dialect: Dialect,
        hello: Hello,
        *,
        name: str,
        bandwidth: int,
        timeout: int,
        stop: StopSignal | None,
    ) -> None:
        """`hello`: what this machine says to the host, of what it speaks in `dialect`. `bandwidth`: bytes per
        second that the hosts may send; 0 for no limit."""
        self.name = name
        self.connection = Connection(True, hello, dialect=dialect)
        self.link = ByteLink(self.connection, wire, timeout or None, stop)
        self.policy = CompressionPolicy()
        self.policy.limit(bandwidth)
        self._host = host
        self._wire = wire

    @property
    def traffic(self) -> Traffic:
        return self._host.traffic(self.connection, self._wire)

    @property
    def has_room(self) -> bool:
        """Return whether more may be read for this hop."""
        return self.link.queued + self.connection.pending < PENDING_HIGH

    def move(self, *, reads: bool) -> bool:
        """One exchange, without a wait. True: bytes moved."""
        before = self.connection.bytes_sent - self.link.queued
        came = self.link.step(False, INBOUND_BYTES if reads else 0)
        return came or self.connection.bytes_sent - self.link.queued > before

    def descriptors(self, *, reads: bool) -> dict[int, int]:
        """Return the descriptors to poll after an exchange that moved nothing."""
        reads = reads and not self.link.ended and self.connection.buffered < INBOUND_BYTES
        return self._wire.descriptors(reads=reads, writes=bool(self.link.queued))

    def next(self) -> Received | None:
        """Return the host's next message. Raises RefusedError for its Refused."""
        received = self.connection.next()
        if received is not None and isinstance(received.message, Refused):
            raise RefusedError(received.message.message, code=received.message.code)
        if received is None and self.link.ended:
            raise StreamError("the remote side ended the session early")
        return received

    def pass_on(self, message: Message, round_: int) -> None:
        """Send a message of the other hop. Raises ProtocolError if it does not belong here now, which is the
        other host's fault: this side decided nothing."""
        try:
            self.connection.send(message, round_)
        except LocalProtocolError as error:
            raise ProtocolError(f"it sent what the other side cannot take: {error}") from error

    def refuse(self, error: RdcError) -> None:
        """Tell the host why the session ends, if it listens."""
        if unknown_there(error):
            self.link.refuse(error)

    def named(self, error: RdcError) -> RdcError:
        """Return `error`, which ended this hop, with the name of the host."""
        shown = self._host.explained(error, self._wire)
        if shown is not error:
            return shown
        reason = error.reason if isinstance(error, RefusedError) else str(error)
        shown.args = (one_line(f"{self.name}: {reason}"),)
        return shown


class Terms(Record):
    """The values that both sessions of a relay share."""

    dialect: Dialect
    """The protocol versions of this program."""
    software: str
    params: bytes
    """The parameters, as in Hello."""
    bandwidth: int
    """Bytes per second that each host may send; 0 for no limit."""
    timeout: int
    """Seconds; 0 for no limit."""
    patience: int
    """The patience with a host whose remote shell may ask for a password meanwhile."""
    opening: Callable[[Role], Conversation[None]]
    """The messages to the host that takes this role, right after Hello."""
    stop: StopSignal | None


@contextlib.contextmanager
def opened_hops(source: FarHost, destination: FarHost, terms: Terms) -> Iterator[tuple[Hop, Hop]]:
    """Dial both hosts, one after the other, and ask each for its role. Both connections close at the end.

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
    """Return how both hosts are named in what the user reads: with their roles where that is one host."""
    names = {Role.SOURCE: source.name, Role.DESTINATION: destination.name}
    if source.name == destination.name:
        return {role: f"{name}, {role.name.lower()}" for role, name in names.items()}
    return names


def _asked(host: FarHost, wire: Wire, role: Role, name: str, terms: Terms, other: Hello) -> Hop:
    """Return the hop to a host, with its opening queued. `other`: the Hello of the other host."""
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
    """Return the Hello of a host that was asked. What it says after that waits."""
    try:
        while hop.connection.peer is None:
            if hop.next() is None:
                hop.link.step(True)
            check_stop(terms.stop)
    except RdcError as error:
        raise hop.named(error) from error
    return hop.connection.peer


def _first_hello(host: FarHost, wire: Wire, terms: Terms) -> tuple[bytes, Hello]:
    """Return what a host sends before it hears anything: the bytes so far, and the Hello in them."""
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
    """Read a Hello, and return its bytes, too. Raises RdcError, as a Connection does, if none comes."""
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


def problem_at(hop: Hop, notice: messages.Notice) -> Problem:
    """Return the problem that a host tells of, with its name: a path alone could be on either."""
    message = one_line(notice.message)
    return Problem(ExitCode(notice.code), notice.path, f"{message} (on {hop.name})")


class SyncJunction:
    """A Junction: the user here sees the reports of both hosts, and the rest passes."""

    def __init__(self, source: Hop, destination: Hop, events: EventRelay, asked: bytes) -> None:
        """`asked`: what the source was asked for, in the form of announced()."""
        self._source = source
        self._destination = destination
        self._events = events
        self._asked = asked
        self.done: messages.Done | None = None
        self.files = 0
        """Regular files of the source after filters, as it announced them last."""
        self.total_bytes = self.entries = 0

    @property
    def over(self) -> bool:
        return self.done is not None

    @property
    def idle_since(self) -> None:
        """A sync always has something to do."""

    def from_source(self, received: Received) -> Iterator[Received]:
        message = received.message
        if isinstance(message, (messages.Hello, messages.Opened)):
            return
        if isinstance(message, messages.Notice):
            self._events.report(problem_at(self._source, message))
            return
        if isinstance(message, (messages.Watch, messages.Condition)):
            raise ProtocolError(f"the remote side sent {message.name}, and nothing is watched")
        if isinstance(message, messages.Start):
            # The destination takes any Start of a dialler. This machine's user asked for one entry.
            announced(received, self._asked)
        elif isinstance(message, (messages.Manifest, messages.ListingEnd)):
            self.files, self.total_bytes, self.entries = message.files, message.bytes, message.entries
        yield received

    def from_destination(self, received: Received) -> Iterator[Received]:
        message = received.message
        if isinstance(message, (messages.Hello, messages.Opened)):
            return
        if isinstance(message, messages.Follow):
            raise ProtocolError("the remote side asks to follow the source, and nothing is watched")
        if isinstance(message, messages.Notice):
            self._events.report(problem_at(self._destination, message))
            return
        if self._events.take(message):
            return
        yield received
        if isinstance(message, messages.Done):
            self.done = message


# Passes messages between the source's host and the destination's, with this machine as the dialler of both.
#
# RELAY.md beside this file has the rules, and why they are safe.


class Junction(Protocol):
    """Decides about each message: whether the other host gets it, and what the user here sees of it.

    Both methods return what to send to the other host now, and raise RdcError for what the host must not
    send.
    """

    @property
    def over(self) -> bool:
        """Return whether the session has come to its end: what was passed on is written, and no more is
        read."""

    @property
    def idle_since(self) -> float | None:
        """The time.monotonic() since which both hosts wait for a change at the source; None: they do not
        wait. While they wait, each of them sends signs of life unasked."""

    def from_source(self, received: Received) -> Iterator[Received]: ...

    def from_destination(self, received: Received) -> Iterator[Received]: ...


class Relay:
    """One session between two hosts."""

    def __init__(
        self, source: Hop, destination: Hop, junction: Junction, *, timeout: int, stop: StopSignal | None
    ) -> None:
        """`timeout`: seconds in which no byte moves on either hop and after which the session ends; 0 for no
        limit. Both hosts then send signs of life while they work, which are passed on."""
        self._source = source
        self._destination = destination
        self._junction = junction
        self._timeout = timeout
        self._stop = stop
        self._culprit: Hop | None = None
        self._ranges: AskedRanges | None = None
        """The ranges whose answer is on its way to the destination."""

    def run(self) -> None:
        """Pass messages on until the junction says that it is over.

        Raises the first error of either hop, with the name of its host. Each other host is sent the reason.
        """
        hops = (self._source, self._destination)
        try:
            while not self._junction.over:
                check_stop(self._stop)
                if not self._pass():
                    self._wait()
            for hop in hops:
                with self._blaming(hop):
                    hop.connection.flush()
                    hop.link.drain(1)
        except RdcError as error:
            culprit = self._culprit
            if culprit is not None:
                culprit.refuse(error)
            shown = error if culprit is None or isinstance(error, StoppedError) else culprit.named(error)
            for hop in hops:
                if hop is not culprit:
                    hop.link.refuse(shown)
            raise shown from error

    def _pass(self) -> bool:
        """Move what can move. False: nothing could."""
        moved = False
        for hop, other in self._ways():
            with self._blaming(hop):
                came = hop.move(reads=other.has_room)
            moved |= came
            passed = self._pass_messages(hop, other)
            moved |= passed
            if not (came or passed) and other.connection.pending:
                # Nothing more is here that could share its block.
                other.connection.flush()
                moved = True
        return moved

    def _ways(self) -> tuple[tuple[Hop, Hop], tuple[Hop, Hop]]:
        return ((self._source, self._destination), (self._destination, self._source))

    def _pass_messages(self, hop: Hop, other: Hop) -> bool:
        from_source = hop is self._source
        decide = self._junction.from_source if from_source else self._junction.from_destination
        passed = False
        with self._blaming(hop):
            while other.has_room and not self._junction.over and (received := hop.next()) is not None:
                passed = True
                for each in decide(received):
                    if from_source:
                        self._choose_compression(each.message)
                    other.pass_on(each.message, each.round)
        return passed

    def _choose_compression(self, message: Message) -> None:
        """Compress content as its source did: what it asked of its own connection shows in the message and
        in the request that it answers."""
        if not isinstance(message, (Data, Code, Table, FileBatch, Literals)):
            return
        ranges = self._source.connection.ranges
        hop = self._destination
        if ranges is None:
            hop.connection.set_compression(hop.policy.compression(Content.NEW))
        elif ranges is not self._ranges:
            if ranges.blank:
                hop.connection.set_compression(hop.policy.compression(Content.CODE, ranges.bytes))
            elif ranges.bytes >= HARD_BYTES:
                hop.connection.set_compression(hop.policy.compression(Content.TEXT))
        self._ranges = ranges

    def _wait(self) -> None:
        """Wait until bytes can move, or something is due."""
        self._give_signs_of_life()
        poll = select.poll()
        for hop, other in self._ways():
            for fd, events in hop.descriptors(reads=other.has_room).items():
                poll.register(fd, events)
        seconds = self._seconds()
        began, queued = time.monotonic(), self._destination.link.queued
        poll.poll(None if seconds is None else seconds * 1000)
        if queued:
            with self._blaming(self._destination):
                self._destination.move(reads=False)
            self._destination.policy.note_delay(
                queued - self._destination.link.queued, time.monotonic() - began
            )

    def _seconds(self) -> float | None:
        """Return the seconds until a sign of life, the end by the time limit, or a look at the stop signal is
        due."""
        now = time.monotonic()
        due = [] if self._stop is None else [STOP_SECONDS]
        if self._timeout:
            due += [
                hop.link.spoke + self._timeout / BEATS - now
                for hop, other in self._ways()
                if _lives(other, hop)
            ]
            due += [
                moment + self._timeout - now for moment in (self._last_moved, *self._last_signs().values())
            ]
        return max(0.0, min(due)) if due else None

    @property
    def _last_moved(self) -> float:
        return max(moment for hop, _ in self._ways() for moment in (hop.link.spoke, hop.link.heard))

    def _last_signs(self) -> dict[Hop, float]:
        """Return when each host was last heard that has to send signs of life now."""
        since = self._junction.idle_since
        if since is None:
            return {}
        return {hop: max(since, hop.link.heard) for hop, _ in self._ways()}

    def _give_signs_of_life(self) -> None:
        """Pass signs of life on: a host hears one if the other was heard since it was last spoken to.

        Raises RdcError if neither has moved a byte for the time limit, or one is silent that has to send
        signs of life. It names the host that has something to do: to take what waits for it, or to answer.
        """
        if not self._timeout:
            return
        now = time.monotonic()
        for hop, other in self._ways():
            if now >= hop.link.spoke + self._timeout / BEATS and _lives(other, hop):
                with self._blaming(hop):
                    hop.link.beat()
        for hop, heard in self._last_signs().items():
            if now >= heard + self._timeout:
                with self._blaming(hop):
                    raise timed_out(self._timeout)
        if now < self._last_moved + self._timeout:
            return
        stuck = self._destination
        if not stuck.link.queued and (self._source.link.queued or self._source.connection.outstanding):
            stuck = self._source
        with self._blaming(stuck):
            raise timed_out(self._timeout)

    @contextlib.contextmanager
    def _blaming(self, hop: Hop) -> Iterator[None]:
        """Open a context whose RdcErrors are put down to the host of `hop`, unless another one is to blame
        already."""
        try:
            yield
        except RdcError:
            if self._culprit is None:
                self._culprit = hop
            raise


def _lives(other: Hop, hop: Hop) -> bool:
    """Return whether `other` was heard since this machine last wrote to `hop`."""
    return other.link.heard > hop.link.spoke
