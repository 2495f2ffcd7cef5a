"""Passes messages between the source's host and the destination's, with this machine as the dialler of both.

RELAY.md beside this file has the rules, and why they are safe.
"""

from __future__ import annotations

import contextlib
import select
import time

from rdc.errors import RdcError, StoppedError
from rdc.lean.typed import Protocol
from rdc.progress import STOP_SECONDS, check_stop
from rdc.protocol.messages import Code, Data, FileBatch, Literals, Table
from rdc.session.runtime.byte_link import BEATS
from rdc.session.runtime.compression_policy import Content
from rdc.session.source.range_answers import HARD_BYTES
from rdc.transport.base import timed_out

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.progress import StopSignal
    from rdc.protocol.connection import Received
    from rdc.protocol.messages import Message
    from rdc.protocol.pending import AskedRanges
    from rdc.session.far.hop import Hop

__all__ = ["Junction", "Relay"]


class Junction(Protocol):
    """Decides about each message: whether the other host gets it, and what the user here sees of it.

    Both methods return what to send to the other host now, and raise RdcError for what the host must not
    send.
    """

    @property
    def over(self) -> bool:
        """Whether the session has come to its end: what was passed on is written, and no more is read."""

    @property
    def idle_since(self) -> float | None:
        """Since when both hosts wait for a change at the source, by time.monotonic(); None: they do not.
        Each of them then sends signs of life unasked."""

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
        """Passes messages on until the junction says that it is over.

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
        """Moves what can move. False: nothing could."""
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
        """Compresses content as its source did: what it asked of its own connection shows in the message and
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
        """Waits until bytes can move, or something is due."""
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
        """Seconds until a sign of life, the end by the time limit, or a look at the stop signal is due."""
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
        """When each host was last heard that has to send signs of life now."""
        since = self._junction.idle_since
        if since is None:
            return {}
        return {hop: max(since, hop.link.heard) for hop, _ in self._ways()}

    def _give_signs_of_life(self) -> None:
        """Passes signs of life on: a host hears one if the other was heard since it was last spoken to.

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
        """What is raised is the host's doing."""
        try:
            yield
        except RdcError:
            if self._culprit is None:
                self._culprit = hop
            raise


def _lives(other: Hop, hop: Hop) -> bool:
    """Whether `other` was heard since this machine last wrote to `hop`."""
    return other.link.heard > hop.link.spoke
