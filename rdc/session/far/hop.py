"""One of the two connections of a relay."""

from __future__ import annotations

from rdc.errors import ProtocolError, RdcError, StreamError, one_line
from rdc.limits.wire import RAW_BLOCK_BYTES
from rdc.protocol.connection import Connection, Dialect, LocalProtocolError, Received
from rdc.protocol.messages import Refused
from rdc.session.runtime.byte_link import ByteLink
from rdc.session.runtime.compression_policy import CompressionPolicy
from rdc.session.runtime.runner import RefusedError, unknown_there

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.progress import StopSignal
    from rdc.protocol.messages import Hello, Message
    from rdc.session.far.far_host import FarHost, Traffic, Wire

__all__ = ["Hop"]

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
        """Whether more may be read for this hop."""
        return self.link.queued + self.connection.pending < PENDING_HIGH

    def move(self, *, reads: bool) -> bool:
        """One exchange, without a wait. True: bytes moved."""
        before = self.connection.bytes_sent - self.link.queued
        came = self.link.step(False, INBOUND_BYTES if reads else 0)
        return came or self.connection.bytes_sent - self.link.queued > before

    def descriptors(self, *, reads: bool) -> dict[int, int]:
        """What to poll after an exchange that moved nothing."""
        reads = reads and not self.link.ended and self.connection.buffered < INBOUND_BYTES
        return self._wire.descriptors(reads=reads, writes=bool(self.link.queued))

    def next(self) -> Received | None:
        """The host's next message. Raises RefusedError for its Refused."""
        received = self.connection.next()
        if received is not None and isinstance(received.message, Refused):
            raise RefusedError(received.message.message, code=received.message.code)
        if received is None and self.link.ended:
            raise StreamError("the far side ended the session early")
        return received

    def pass_on(self, message: Message, round_: int) -> None:
        """Sends a message of the other hop. Raises ProtocolError if it does not belong here now, which is the
        other host's fault: this side decided nothing."""
        try:
            self.connection.send(message, round_)
        except LocalProtocolError as error:
            raise ProtocolError(f"it sent what the other side cannot take: {error}") from error

    def refuse(self, error: RdcError) -> None:
        """Tells the host why the session ends, if it listens."""
        if unknown_there(error):
            self.link.refuse(error)

    def named(self, error: RdcError) -> RdcError:
        """`error`, which ended this hop, with the name of the host."""
        shown = self._host.explained(error, self._wire)
        if shown is not error:
            return shown
        reason = error.reason if isinstance(error, RefusedError) else str(error)
        shown.args = (one_line(f"{self.name}: {reason}"),)
        return shown
