"""A relay between two ends in threads of this process: honest ones, and ones that follow a script."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

from rdc.catalog.signer import FileSigner
from rdc.catalog.store import NoCatalog
from rdc.chunking import SYNC_PARAMS
from rdc.errors import RdcError
from rdc.model.location import Location, RemoteShell
from rdc.model.runs import SyncReport
from rdc.model.sync import SyncOptions
from rdc.progress import Event, silent
from rdc.protocol.connection import Connection, Received
from rdc.protocol.messages import Message, encode
from rdc.protocol.wire.fields import encode_varint
from rdc.protocol.wire.stream import frame_head
from rdc.session import between_hosts
from rdc.session.far.far_host import Traffic
from rdc.session.runtime.driver import run
from rdc.session.serve import answer, greeting
from rdc.session.sync_run import SyncRun
from rdc.transport.pipes import PipeTransport

__all__ = ["Peer", "Serve", "ThreadHost", "honest", "relayed_sync"]

SECONDS = 60.0
"""After which a scripted end gives up."""


class Peer:
    """An answerer that says what its script wants."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.settimeout(SECONDS)
        self.connection = Connection(False, greeting(SYNC_PARAMS), compress=False)

    def say(self, message: Message, round_: int) -> None:
        self.connection.send(message, round_)
        self.push()

    def push(self) -> None:
        self.connection.flush()
        with suppress(BrokenPipeError):  # what was sent before can still be read
            self.sock.sendall(self.connection.data_to_send())

    def force(self, message: Message, round_: int) -> None:
        """Send a message that the rules forbid."""
        self.push()
        payload = encode(message)
        frame = frame_head(message.kind, round_, len(payload)) + payload
        self.sock.sendall(encode_varint(len(frame) << 1 | 1) + frame)

    def next(self) -> Received | None:
        """The next message; None at the end of the stream."""
        self.push()
        while (received := self.connection.next()) is None:
            try:
                data = self.sock.recv(1 << 16)
            except ConnectionResetError:
                # The other side closed with something unread. What it sent was read before.
                return None
            if not data:
                return None
            self.connection.receive_data(data)
        return received

    def await_(self, kind: type[Message]) -> int:
        """The round after that of the next message of this kind."""
        while (received := self.next()) is not None:
            if isinstance(received.message, kind):
                return received.round + 1
        raise AssertionError(f"no {kind.__name__} came")


Serve = Callable[[socket.socket], None]


def honest(sock: socket.socket) -> None:
    """The end as rdc serves it."""
    transport = PipeTransport(os.dup(sock.fileno()), os.dup(sock.fileno()))
    signer = FileSigner(catalog=NoCatalog())
    try:
        with suppress(RdcError):  # the other side has heard of it
            run(answer(signer), Connection(False, greeting(SYNC_PARAMS)), transport)
    finally:
        transport.close()
        signer.close()


class ThreadHost:
    """A FarHost that is a thread."""

    asks = False

    def __init__(self, name: str, serve: Serve) -> None:
        self.name = name
        self._serve = serve
        self.failures: list[BaseException] = []
        self._thread: threading.Thread | None = None

    def dial(self) -> PipeTransport:
        near, far = socket.socketpair()

        def work() -> None:
            with far:
                try:
                    self._serve(far)
                except BaseException as error:  # noqa: BLE001 - raised again in the test's thread
                    self.failures.append(error)

        self._thread = threading.Thread(target=work, name=f"host {self.name}")
        self._thread.start()
        with near:
            return PipeTransport(os.dup(near.fileno()), os.dup(near.fileno()))

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join(SECONDS)
        for failure in self.failures:
            raise failure

    def explained(self, error: RdcError, wire: object) -> RdcError:
        return error

    def traffic(self, connection: Connection, wire: object) -> Traffic:
        return Traffic(connection.bytes_sent, connection.bytes_received)


def relayed_sync(
    source: bytes | Path,
    destination: bytes | Path,
    options: SyncOptions | None = None,
    *,
    at_source: Serve = honest,
    at_destination: Serve = honest,
    events: list[Event] | None = None,
) -> SyncReport:
    """A sync from the host a to the host b. Raises what the relay raises, or an error of a script."""
    hosts = {"a": ThreadHost("a", at_source), "b": ThreadHost("b", at_destination)}
    one, other = (
        Location(name, path if isinstance(path, bytes) else os.fsencode(path) + b"/")
        for name, path in (("a", source), ("b", destination))
    )
    reporter = silent if events is None else events.append
    sync = SyncRun(one, other, options or SyncOptions(fsync=False), reporter, NoCatalog())

    def host_of(location: Location, *_: object) -> ThreadHost:
        return hosts[str(location.host)]

    try:
        with patch.object(between_hosts, "far_host", host_of):
            return between_hosts.run_between(sync, RemoteShell(), None)
    finally:
        for host in hosts.values():
            host.join()
        sync.close()
