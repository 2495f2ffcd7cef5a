"""A host that falls silent while the other one sends signs of life."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest

from rdc.chunking import SYNC_PARAMS
from rdc.errors import ExitCode, RdcError
from rdc.protocol.connection import DIALECT, Received
from rdc.protocol.messages import Role
from rdc.session.far.relay import Relay, Terms, opened_hops
from rdc.session.runtime.commands import Conversation
from tests.support.relay.relayed import Peer, Serve, ThreadHost


class Stub:
    """A Junction that passes nothing on."""

    over = False

    def __init__(self, *, idle: bool) -> None:
        self.idle_since = time.monotonic() if idle else None

    def from_source(self, received: Received) -> Iterator[Received]:
        yield from ()

    def from_destination(self, received: Received) -> Iterator[Received]:
        yield from ()


def nothing(role: Role) -> Conversation[None]:
    yield from ()


@pytest.mark.parametrize("silent", ["a", "b"])
@pytest.mark.parametrize("idle", [True, False], ids=["between turns", "at work"])
def test_who_is_named(silent: str, idle: bool) -> None:
    """Between turns both hosts send signs of life. At work one may wait for the other, which then sends them:
    the session ends once nothing comes at all, and who has something to do is named."""
    over, fell_silent = threading.Event(), threading.Event()

    def lively(sock: socket.socket) -> None:
        peer = Peer(sock)
        end = time.monotonic() + 1.3
        while not over.is_set() and (idle or time.monotonic() < end):
            peer.connection.beat()
            peer.push()
            over.wait(0.1)
        fell_silent.set()
        over.wait()

    def mute(sock: socket.socket) -> None:
        Peer(sock).push()
        over.wait()

    def serve(name: str) -> Serve:
        return mute if name == silent else lively

    source, destination = ThreadHost("a", serve("a")), ThreadHost("b", serve("b"))
    terms = Terms(DIALECT, "rdc", SYNC_PARAMS.id, 0, 1, 1, nothing, None)
    try:
        with (
            pytest.raises(RdcError, match="the remote side was silent for 1 seconds") as caught,
            opened_hops(source, destination, terms) as hops,
        ):
            Relay(*hops, Stub(idle=idle), timeout=1, stop=None).run()
        assert fell_silent.is_set() is not idle
    finally:
        over.set()
        source.join()
        destination.join()
    assert caught.value.code is ExitCode.TIMEOUT
    assert str(caught.value).startswith(f"{silent}: " if idle else "b: ")
