"""Peers that send byte by byte, begin and do not go on, or do not read: each ends at its deadline."""

from __future__ import annotations

import os
import resource
import socket
import ssl
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from rdc.chunking import SYNC_PARAMS
from rdc.errors import RdcError
from rdc.model.preserved import Preserved
from rdc.model.sync import SyncOptions
from rdc.protocol.connection import Connection
from rdc.protocol.messages import Describe, FileRequest, ListingEnd, Open, Role, Start
from rdc.session.serve import greeting
from rdc.transport.keys import KeyRing
from rdc.transport.tls import dialling_context
from tests.support.daemon.daemons import WAIT_SECONDS, wait_until
from tests.support.trees.trees import tree, write_tree
from tests.support.wire.hostile_peer import (
    SESSION_KB,
    dial,
    framed,
    neighbour,
    opened,
    opening,
    private_kb,
    raw_block,
    send_all,
    serving,
    the_end,
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "data", tree({"file": os.urandom(50_000)}))


def trickle(send: Callable[[bytes], object], data: bytes, stopped: threading.Event) -> bool:
    """Return whether all of it was sent."""
    with suppress(OSError, RdcError):
        for value in data:
            if stopped.wait(0.1):
                return False
            send(bytes((value,)))
        return True
    return False


def test_a_handshake_byte_by_byte(data: Path, tmp_path: Path) -> None:
    """Ten of them at once: each byte that comes wins no time, so that none gets to its end."""
    with serving(data, top="[limits]\nhandshake-seconds = 1\n") as daemon:
        ring = KeyRing.read(daemon.keys_of("alice"))
        outgoing = ssl.MemoryBIO()
        tls = dialling_context(ring, ring.certificates).wrap_bio(ssl.MemoryBIO(), outgoing)
        with suppress(ssl.SSLWantReadError):
            tls.do_handshake()
        hello, stopped = outgoing.read(), threading.Event()
        with neighbour(daemon, tmp_path), ExitStack() as stack:
            pool = stack.enter_context(ThreadPoolExecutor(10))
            stack.callback(stopped.set)
            socks = [
                stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port))) for _ in range(10)
            ]
            sent = [pool.submit(trickle, sock.sendall, hello, stopped) for sock in socks]
            wait_until(lambda: len(daemon.logged("timeout", phase="handshake")) == 10)
            stopped.set()
            assert not any(all_of_it.result() for all_of_it in sent)


def test_an_opening_byte_by_byte(data: Path, tmp_path: Path) -> None:
    with serving(data, top="[limits]\nopen-seconds = 1\n") as daemon, neighbour(daemon, tmp_path):
        transport, stopped = dial(daemon), threading.Event()
        thread = threading.Thread(target=trickle, args=(lambda b: send_all(transport, b), opening(), stopped))
        thread.start()
        closed = daemon.await_log("refused", peer="alice")
        stopped.set()
        thread.join()
        assert "did not say in time what it wants" in closed["message"] and closed["code"] == "40"
        transport.close()


def test_a_frame_byte_by_byte(data: Path, tmp_path: Path) -> None:
    """Never silent for long, so only the length of the session ends it; meanwhile it holds its slot alone."""
    limits = "[limits]\nidle-seconds = 3\n"
    module = "limits.session-seconds = 4\n"
    with serving(data, top=limits, module=module) as daemon:
        transport, stopped = opened(daemon, role=Role.DESTINATION), threading.Event()
        frame = framed(Start.kind, bytes(2000))
        thread = threading.Thread(target=trickle, args=(lambda b: send_all(transport, b), frame, stopped))
        thread.start()
        assert daemon.sync("--timeout=3", daemon.url("calm/"), tmp_path / "x", who="bob").code == 0
        closed = daemon.await_log("close", peer="alice")
        stopped.set()
        thread.join()
        assert "took longer than the daemon allows" in closed["message"] and closed["code"] == "40"
        assert float(closed["seconds"]) >= 4
        transport.close()
        the_end(daemon)


def test_signs_of_life_without_end(data: Path, tmp_path: Path) -> None:
    """Work without a message: processor time bounds it."""
    with serving(data, module="limits.cpu-seconds = 1\n") as daemon, neighbour(daemon, tmp_path):
        transport = opened(daemon)
        beats = raw_block(b"") * 200_000
        with suppress(RdcError):
            while not daemon.logged("close", peer="alice"):
                send_all(transport, beats)
        transport.close()
        closed = the_end(daemon)
        assert "more processor time than the daemon allows" in closed["message"] and closed["code"] == "40"


def test_a_peer_that_asks_and_has_no_ear(data: Path, tmp_path: Path) -> None:
    """What it goes on to say is not taken while it does not hear the answer: 200 MB stay where they are."""
    os.truncate(data / "file", 1 << 30)
    with serving(data) as daemon, neighbour(daemon, tmp_path):
        transport = dial(daemon)
        connection = Connection(True, greeting(SYNC_PARAMS), compress=False)
        options = SyncOptions(compress=False)
        connection.send(Open(Role.SOURCE, b"data/", b"s" * 16, options), 0)
        connection.send(Describe(True, Preserved(False)), 0)
        connection.flush()
        send_all(transport, connection.data_to_send())
        while True:
            received = connection.next()
            if received is None:
                connection.receive_data(transport.exchange(memoryview(b""), True, WAIT_SECONDS).received)
            elif isinstance(received.message, ListingEnd):
                break
        connection.send(FileRequest((0,)), received.round + 1)
        connection.flush()
        send_all(transport, connection.data_to_send())
        (pid,) = [int(line["pid"]) for line in daemon.logged("connect", peer="alice")]
        sent, beats = 0, raw_block(b"") * (1 << 20)
        with suppress(RdcError):
            while sent < 200 << 20:
                sent += transport.exchange(memoryview(beats), False, 0.5).written
        assert sent < 32 << 20, sent
        assert private_kb(pid) < SESSION_KB
        transport.close()


def test_many_handshakes_that_are_begun(data: Path, tmp_path: Path) -> None:
    """Each costs a key exchange and what OpenSSL holds for it, and none is pushed out before it had its time:
    past 64 the others wait in the kernel, and so does who comes to work, a few seconds."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with serving(data) as daemon, ExitStack() as stack:
            before = private_kb(daemon.process.pid)
            ring = KeyRing.read(daemon.keys_of("alice"))
            context = dialling_context(ring, ring.certificates)
            with neighbour(daemon, tmp_path):
                for _ in range(400):
                    outgoing = ssl.MemoryBIO()
                    with suppress(ssl.SSLWantReadError):
                        context.wrap_bio(ssl.MemoryBIO(), outgoing).do_handshake()
                    sock = stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port)))
                    with suppress(OSError):
                        sock.sendall(outgoing.read())
                assert daemon.sync(daemon.url("data/"), tmp_path / "x").code == 0
            assert len(os.listdir(f"/proc/{daemon.process.pid}/fd")) < 64 + 30
            assert private_kb(daemon.process.pid) - before < 64 * 200
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
