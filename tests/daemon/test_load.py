"""Many peers, hostile peers, and a daemon that is told to stop: bounded, and nobody else is disturbed."""

from __future__ import annotations

import multiprocessing
import os
import random
import resource
import shutil
import signal
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.daemon.config import Limits
from rdc.daemon.session import Ending, bound, guarded
from rdc.errors import ExitCode, RdcError
from rdc.library.trees import sync
from rdc.model.location import Location
from rdc.model.sync import SyncOptions
from rdc.progress import Event
from rdc.session.runtime.commands import Conversation, Receive
from tests.support.daemon.daemons import WAIT_SECONDS, wait_until
from tests.support.running.started_processes import started
from tests.support.running.syncing import RDC, contents_of
from tests.support.trees.descriptors import open_files
from tests.support.trees.trees import describe, read_tree, tree, write_tree
from tests.support.wire.hostile_peer import answer_of, dial, opened, private_kb, serving

CLIENTS = 50

CHILD_KB = 40_000
"""Private memory of a session with a small tree, in KiB, at most."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_tree(
        tmp_path / "data", tree({f"d{n}/file": random.Random(n).randbytes(50_000) for n in range(10)})
    )


def test_fifty_clients_at_once(tmp_path: Path, data: Path) -> None:
    """Half of them fetch, half of them bring, each a tree of its own; every byte arrives, and the memory of
    the daemon and of all its sessions together stays what fifty small processes need."""
    limits = "[limits]\nconnections-per-peer = 50\n"
    with serving(data, top=limits) as daemon:
        daemon.keys_of("alice"), daemon.keys_of("bob")
        sources = [
            write_tree(tmp_path / f"source{n}", tree({"a/own": os.urandom(40_000), "b": b"%d" % n}))
            for n in range(CLIENTS // 2)
        ]

        def client(number: int) -> None:
            """In a process of its own, forked: fifty interpreters would take longer to start than to sync."""
            half = number // 2
            here = sources[half] if number % 2 else tmp_path / f"fetched{half}"
            far = f"data/from{half}" if number % 2 else "data/d3/"
            there = Location("127.0.0.1", far.encode(), daemon.port)
            ends = (Location(None, contents_of(here)), there)
            # A slow line, so that their work can be looked at.
            options = SyncOptions(bandwidth=25_000, compress=False)
            keys = daemon.keys_of("alice" if number % 2 else "bob")
            came = False

            def wait_for_all(_: Event) -> None:
                nonlocal came
                if not came:
                    came = True
                    arrived.release()
                    all_there.wait()

            words = (*(ends if number % 2 else ends[::-1]), options)
            os._exit(sync(*words, reporter=wait_for_all, catalog=None, keys=keys).exit)

        fork = multiprocessing.get_context("fork")
        arrived, all_there = fork.Semaphore(0), fork.Event()
        clients = [fork.Process(target=client, args=(number,), daemon=True) for number in range(CLIENTS)]
        most_sessions, most_kb, largest = 0, 0, 0

        def look() -> None:
            nonlocal most_sessions, most_kb, largest
            pids = daemon.children()
            sizes = [private_kb(pid) for pid in pids]
            most_sessions = max(most_sessions, len(pids))
            most_kb = max(most_kb, sum(sizes) + private_kb(daemon.process.pid))
            largest = max(largest, *sizes, 0)

        try:
            for process in clients:
                process.start()
            for _ in clients:
                assert arrived.acquire(timeout=WAIT_SECONDS)
            look()
            all_there.set()
            while any(process.is_alive() for process in clients):
                look()
                time.sleep(0.1)
        finally:
            for process in clients:
                process.kill()
        for process in clients:
            process.join()
            assert process.exitcode == 0
        for number, source in enumerate(sources):
            assert describe(read_tree(source), read_tree(data / f"from{number}")) == []
            assert (tmp_path / f"fetched{number}/file").read_bytes() == random.Random(3).randbytes(50_000)
        print(f"{most_sessions} sessions at once, {most_kb} KiB together, {largest} KiB the largest")
        assert most_sessions == CLIENTS
        assert largest < CHILD_KB, largest
        assert most_kb < CLIENTS * CHILD_KB / 2, most_kb
        daemon.await_idle()
        wait_until(lambda: len(daemon.logged("close", code="0")) == CLIENTS)
        # What the sessions took is given back with their processes.
        assert private_kb(daemon.process.pid) < CHILD_KB


def test_a_thousand_connections_that_say_nothing(data: Path, tmp_path: Path) -> None:
    """They push out each other; a peer who comes to work is served as ever, from the same address."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    try:
        with serving(data) as daemon, ExitStack() as stack:
            before = private_kb(daemon.process.pid)

            def flood(count: int) -> None:
                for _ in range(count):
                    stack.enter_context(socket.create_connection(("127.0.0.1", daemon.port)))

            flood(500)
            with ThreadPoolExecutor(1) as pool:
                flooding = pool.submit(flood, 500)
                for number in range(2):
                    ended = daemon.sync(daemon.url("data/"), tmp_path / f"fetched{number}")
                    assert (ended.code, ended.complaints) == (0, [])
                flooding.result()
            held = len(os.listdir(f"/proc/{daemon.process.pid}/fd"))
            assert held < 64 + 30, held
            assert private_kb(daemon.process.pid) - before < 64 * 200
            daemon.await_idle()
            # Told of, but not a line for each.
            assert 1 <= len(daemon.logged("crowded_out")) < 500
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_handshake_that_stalls_ends(data: Path) -> None:
    with serving(data, top="[limits]\nhandshake-seconds = 1\n") as daemon:
        with socket.create_connection(("127.0.0.1", daemon.port)) as sock:
            sock.sendall(b"\x16\x03\x01\x02\x00\x01")  # the head of a ClientHello, and no more
            sock.settimeout(10)
            assert sock.recv(100) == b""
        daemon.await_log("timeout", phase="handshake")


def test_a_session_that_stalls_ends(data: Path) -> None:
    """One that never asks, and one that never reads what it asked for; a third goes on meanwhile."""
    with serving(data, top="[limits]\nidle-seconds = 2\n") as daemon:
        silent = opened(daemon)
        mute = dial(daemon)
        assert daemon.sync("--timeout=2", daemon.url("data/"), data.parent / "fetched").code == 0
        assert b"silent for 2 seconds" in answer_of(silent)
        daemon.await_log("close", code="30")
        daemon.await_idle()
        assert b"silent for 2 seconds" not in answer_of(mute)  # it never said that it speaks rdc
        wait_until(lambda: len(daemon.logged("close", code="30")) == 2)
        silent.close()
        mute.close()


def test_a_session_that_sends_rubbish_ends(data: Path) -> None:
    with serving(data) as daemon:
        transport = dial(daemon)
        transport.exchange(memoryview(os.urandom(50_000)), False, WAIT_SECONDS)
        answer_of(transport)
        transport.close()
        daemon.await_log("close", code="2")
        transport = opened(daemon)
        transport.exchange(memoryview(b"\xff" * 50_000), False, WAIT_SECONDS)
        assert answer_of(transport)
        transport.close()
        daemon.await_log("close", code="12")
        assert daemon.sync(daemon.url("data/"), data.parent / "fetched").code == 0


def test_limits_on_sessions_are_told(data: Path, tmp_path: Path) -> None:
    """Of a key, of a module and of the daemon; a slot is free again when a session ends, however it ends."""
    limits = "[limits]\nconnections = 4\nconnections-per-peer = 2\n"
    with serving(data, top=limits, module="limits.connections = 3\n") as daemon:
        held = [opened(daemon), opened(daemon)]
        wait_until(lambda: len(daemon.logged("open")) == 2)
        ended = daemon.sync(daemon.url("data/"), tmp_path / "x")
        assert ended.code == ExitCode.BUSY
        assert ended.complaints == [
            "rdc: the remote side: this key has 2 sessions already; let one end, then try again"
        ]
        assert daemon.sync(daemon.url("data/"), tmp_path / "y", who="bob").code == 0
        daemon.await_log("close", peer="bob")
        wait_until(lambda: len(daemon.children()) == 2)
        (first, second), bobs = daemon.children(), [dial(daemon, "bob"), dial(daemon, "bob")]
        wait_until(lambda: len(daemon.children()) == 4)
        ended = daemon.sync(daemon.url("data/"), tmp_path / "z", who="bob")
        assert "the daemon is busy: it serves 4 sessions already" in ended.complaints[0]
        for transport in bobs:
            transport.close()
        os.kill(first, signal.SIGKILL)
        assert daemon.await_log("end", signal="SIGKILL")["level"] == "error"
        wait_until(lambda: daemon.children() == [second])
        assert daemon.sync(daemon.url("data/"), tmp_path / "z", who="bob").code == 0
        for transport in held:
            transport.close()


def test_a_module_that_is_full(data: Path, tmp_path: Path) -> None:
    with serving(data, module="limits.connections = 1\n") as daemon:
        held = opened(daemon)
        daemon.await_log("open")
        ended = daemon.sync(daemon.url("data/"), tmp_path / "x")
        assert ended.complaints == [
            "rdc: the remote side: module 'data' is busy with 1 sessions; try again later"
        ]
        held.close()
        daemon.await_idle()
        assert daemon.sync(daemon.url("data/"), tmp_path / "x").code == 0


def test_a_session_s_length_is_bounded(tmp_path: Path) -> None:
    """One past the limit is told so and ends; the next one has a limit of its own. There is more to send than
    may be queued: what is goes before the reason does."""
    content = {f"d{n}/file": random.Random(n).randbytes(100_000) for n in range(30)}
    data = write_tree(tmp_path / "data", tree(content))
    with serving(data, top="[limits]\nsession-seconds = 1\n") as daemon:
        ended = daemon.sync("--bwlimit=20", "--no-compress", daemon.url("data/"), tmp_path / "target")
        assert ended.code == ExitCode.BUSY, ended
        assert "took longer than the daemon allows" in ended.complaints[-1]
        # As often as it takes that a second is enough.
        wait_until(lambda: daemon.sync("--exclude=d*", daemon.url("data/"), tmp_path / "other").code == 0)


def end_of(limits: Limits, work: Callable[[], None]) -> bytes:
    """How a session with these limits ends that does `work`: exit code and message, as its peer is told."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:

        def conversation() -> Conversation[None]:
            yield Receive()
            work()

        try:
            Ending(lambda: "late").heed()
            bound(limits)
            for _ in guarded(conversation(), lambda _: None):
                pass
        except RdcError as error:
            os.write(writer, f"{error.code:d} {error}".encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return told


def test_work_is_bounded() -> None:
    """Also work that never turns to the peer."""

    def calculate() -> None:
        while True:
            pass

    told = end_of(replace(Limits(), cpu_seconds=1), calculate)
    assert told == b"40 the session used more processor time than the daemon allows"


def test_memory_is_bounded() -> None:
    def gather() -> None:
        held = [bytearray(16 << 20) for _ in range(100)]
        del held

    told = end_of(replace(Limits(), memory=150 << 20), gather)
    assert told == b"11 the session needs more memory than the daemon allows it"


def test_a_fault_is_one_line_too() -> None:
    def fail() -> None:
        raise KeyError("secret")

    assert end_of(Limits(), fail) == b"1 internal error; the daemon's log says more"


def test_sigterm_ends_in_order(data: Path, tmp_path: Path) -> None:
    """What was complete has landed, the peer is told, and the next run finishes."""
    source = write_tree(tmp_path / "source", tree({f"f{n:03}": os.urandom(20_000) for n in range(100)}))
    with serving(data) as daemon:
        words = [
            "--bwlimit=200",
            "--keys",
            str(daemon.keys_of("alice")),
            f"{source}/",
            daemon.url("data/new"),
        ]
        with started([*RDC, "sync", *words]) as client:
            wait_until(lambda: (data / "new").exists() and len(os.listdir(data / "new")) > 5)
            assert daemon.end() == ExitCode.OK
            _, complaint = client.communicate(timeout=WAIT_SECONDS)
        assert client.returncode == ExitCode.INTERRUPTED, complaint
        assert b"the daemon ended the session" in complaint
        events = [line["event"] for line in daemon.log]
        assert events[-1] == "stopped" and events.index("stopping") < events.index("close") < len(events) - 1
        for name in os.listdir(data / "new"):
            if not name.startswith(".rdc-"):
                assert (data / "new" / name).read_bytes() == (source / name).read_bytes()
    shutil.rmtree(data.parent / "daemon")
    with serving(data) as daemon:
        assert daemon.sync(f"{source}/", daemon.url("data/new")).code == 0
        assert describe(read_tree(source), read_tree(data / "new")) == []


def test_a_daemon_that_is_killed_mid_sync(data: Path, tmp_path: Path) -> None:
    with serving(data) as daemon:
        words = ["--bwlimit=20", "--keys", str(daemon.keys_of("alice"))]
        with started([*RDC, "sync", *words, daemon.url("data/"), tmp_path / "x"]) as client:
            daemon.await_log("open")
            for pid in daemon.children():
                os.kill(pid, signal.SIGKILL)
            _, complaint = client.communicate(timeout=WAIT_SECONDS)
        assert (client.returncode, len(complaint.splitlines())) == (ExitCode.STREAM, 1)


def test_a_module_that_vanishes_or_becomes_a_link(data: Path, tmp_path: Path) -> None:
    with serving(data) as daemon:
        data.rename(tmp_path / "away")
        line = (
            "rdc: the remote side: module 'data' is not available: its directory is missing, or a link took"
            " its"
        )
        for link in (False, True):
            if link:
                data.symlink_to(tmp_path / "away")
            ended = daemon.sync(daemon.url("data/"), tmp_path / "x")
            assert (ended.code, ended.complaints) == (ExitCode.FILE_IO, [f"{line} place"])
        data.unlink()
        (tmp_path / "away").rename(data)
        assert daemon.sync(daemon.url("data/"), tmp_path / "x").code == 0


def test_the_descriptors_of_strangers_do_not_reach_a_session(data: Path) -> None:
    """A session has its own connection and the log, no other peer's and no listening socket."""
    with serving(data) as daemon:
        strangers = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(5)]
        time.sleep(0.1)
        transport = opened(daemon)
        daemon.await_log("open")
        (pid,) = daemon.children()
        links = open_files(pid)
        # The connection, and the pair that wakes the daemon's loop.
        assert len([link for link in links if link.startswith("socket:")]) <= 3
        transport.close()
        for sock in strangers:
            sock.close()
