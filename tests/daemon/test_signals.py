"""A daemon that is told to stop, once and twice; a log that is cut, read by programs, or read by nobody."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest

from rdc.daemon.arrivals import Arrivals, EventLoop
from rdc.daemon.config import Address, Limits
from rdc.daemon.log import Log
from rdc.transport.tls import TlsTransport, answering_context, dialling_context
from tests.support.daemon.daemons import (
    WAIT_SECONDS,
    certificate,
    key_directory,
    root_option,
    running_daemon,
    wait_until,
)
from tests.support.daemon.tls_pair import ring
from tests.support.running.syncing import RDC, command
from tests.support.trees.trees import read_tree, tree, write_tree
from tests.support.wire.hostile_peer import Client, answer_of, opened, serving

MANY = 140
"""Files of 30 KB: two bundles, of which the first lands before the second is there."""
HALF = 3_000_000
"""Bytes of them with which the second one is on its way."""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_tree(tmp_path / "data", tree({"f": b"f"}))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_sessions_end(number: signal.Signals, data: Path, tmp_path: Path) -> None:
    """Nobody new comes in, who is there is told, what was complete is kept; the daemon goes last."""
    source = write_tree(tmp_path / "source", tree({f"f{n:03}": os.urandom(30_000) for n in range(MANY)}))
    with serving(data) as daemon:
        words = ("--bwlimit=5000", "--no-compress", f"{source}/", daemon.url("data/new"))
        with Client(daemon, *words, halt_after=HALF) as client:
            client.await_halt()
            wait_until(lambda: (data / "new").exists() and len(os.listdir(data / "new")) > 2)
            daemon.signal(number)
            daemon.await_log("stopping")
            client.signal(signal.SIGCONT)
            ended = client.wait()
        assert ended.code == 20 and "the daemon ended the session" in ended.complaints[0]
        assert daemon.process.wait(WAIT_SECONDS) == 0
        landed = [path for path in (data / "new").iterdir() if not path.name.startswith(".rdc-")]
        assert landed and all(path.read_bytes() == (source / path.name).read_bytes() for path in landed)
        assert [line["event"] for line in daemon.log[-3:]] == ["close", "end", "stopped"]


@pytest.mark.parametrize("second", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_at_once(second: signal.Signals, data: Path) -> None:
    """Also a session that hears nothing any more, here one that is stopped, which the first waits for."""
    with serving(data) as daemon:
        transport = opened(daemon)
        daemon.await_log("open")
        (pid,) = daemon.children()
        os.kill(pid, signal.SIGSTOP)
        daemon.signal(signal.SIGTERM)
        daemon.await_log("stopping", sessions="1")
        # Nobody new gets in meanwhile.
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", daemon.port), 1)
        time.sleep(0.3)
        assert daemon.process.poll() is None
        daemon.signal(second)
        assert daemon.process.wait(WAIT_SECONDS) == 0
        assert daemon.logged("end", signal="SIGKILL") and daemon.log[-1]["event"] == "stopped"
        transport.close()


def test_a_session_in_its_last_words_is_not_broken_into(data: Path) -> None:
    """The daemon tells it twice (once by trust that is taken back): it ends in order all the same."""
    with serving(data) as daemon:
        transport = opened(daemon)
        daemon.await_log("open")
        (pid,) = daemon.children()
        for _ in range(5):
            os.kill(pid, signal.SIGTERM)
        assert answer_of(transport)
        transport.close()
        closed = daemon.await_log("close")
        assert closed["code"] == "20" and "the daemon ended the session" in closed["message"]
        assert "signal" not in daemon.await_log("end")


# The log


def test_a_log_that_is_cut_goes_on_at_its_start(data: Path) -> None:
    """The copytruncate of logrotate does so with what was started by `2>> FILE`."""
    with serving(data) as daemon:
        log = daemon.place / "log"
        assert log.stat().st_size > 100
        os.truncate(log, 0)
        daemon.signal(signal.SIGHUP)
        daemon.await_log("reloaded")
        assert log.read_bytes().startswith(b"ts=")


def test_programs_read_every_line(data: Path, tmp_path: Path) -> None:
    """log = "json": from the start to the end, whatever peers call their files."""
    with serving(data, top='log = "json"') as daemon:
        forged = 'data/x\n{"event": "forged"}\x1b[2J\xff"\\'
        assert daemon.sync(daemon.url(forged), tmp_path / "x").code != 0
        with socket.create_connection(("127.0.0.1", daemon.port)) as sock:
            sock.sendall(b"\n{}\n" * 10)
            sock.recv(100)
        wait_until(lambda: b"unknown_peer" in (daemon.place / "log").read_bytes())
        daemon.end()
        raw = (daemon.place / "log").read_bytes()
        lines = [json.loads(line) for line in raw.splitlines()]
        assert all({"ts", "level", "event"} <= line.keys() for line in lines)
        events = [line["event"] for line in lines]
        assert {"listening", "connect", "open", "close", "end", "unknown_peer", "stopped"} <= set(events)
        assert "forged" not in events and raw.isascii() and b"\x1b" not in raw
        (path,) = [line["path"] for line in lines if line["event"] == "open"]
        assert "\\x0a" in path and "\\x1b" in path


def test_a_daemon_does_not_need_whoever_reads_its_log(data: Path, tmp_path: Path) -> None:
    place = tmp_path / "daemon"
    place.mkdir()
    key_directory(place / "keys", "server", {"alice": "alice"})
    (place / "daemon.toml").write_text(
        'listen = "127.0.0.1:0"\nkeys = "keys"\ncatalog = "off"\n'
        f'[modules.data]\npath = "{data}"\nallow = "alice"\n'
    )
    process = subprocess.Popen(
        [*RDC, "serve", "--config", place / "daemon.toml", *root_option()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    try:
        port = int(process.stdout.readline().decode().rstrip("/\n").rpartition(":")[2])
        process.stdout.close()
        process.stderr.close()
        near = key_directory(tmp_path / "near", "alice", {f"127.0.0.1:{port}": "server"})
        for name in ("one", "two"):
            url = f"rdc://127.0.0.1:{port}/data/"
            assert command("sync", "--keys", near, url, tmp_path / name).code == 0
            assert read_tree(tmp_path / name).keys() == read_tree(data).keys()
        process.terminate()
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()


def test_a_key_that_expires_soon_is_told_of(data: Path, tmp_path: Path) -> None:
    """On each side of the other's, while there is time to replace it."""
    modules = f'[modules.data]\npath = "{data}"\nallow = ["alice", "soon"]\n'
    trusted = {"alice": "alice", "soon": "expires-soon"}
    with running_daemon(tmp_path / "daemon", modules, trusted=trusted, own="server-expires-soon") as daemon:
        for who in ("alice", "expires-soon"):
            near = key_directory(tmp_path / who, who, {f"127.0.0.1:{daemon.port}": "server-expires-soon"})
            ended = command("sync", "--keys", near, daemon.url("data/"), tmp_path / f"to-{who}")
            assert ended.code == 0
            assert [line for line in ended.complaints if "its certificate expires in" in line]
        (alice,) = daemon.logged("connect", peer="alice")
        (soon,) = daemon.logged("connect", peer="soon")
        assert (alice["level"], "key_days_left" in alice) == ("info", False)
        assert (soon["level"], 0 <= int(soon["key_days_left"]) < 14) == ("warning", True)


# One connection


def test_a_fault_with_one_connection_costs_no_other() -> None:
    """Something that should not be is told of with its place, and that connection is closed."""
    selector, lines = selectors.DefaultSelector(), list[bytes]()
    log = Log(as_json=True, write=lines.append)

    def fail(transport: TlsTransport, address: Address) -> str | None:
        raise KeyError("secret")

    loop = EventLoop(selector, log)
    arrivals = Arrivals(
        loop, log, answering_context(ring("server", "alice")), Limits(handshake_seconds=9), fail
    )
    near, far = socket.socketpair()
    other, waiting = socket.socketpair()
    arrivals.take(waiting, Address("h", 2))
    arrivals.take(far, Address("h", 1))
    client = TlsTransport(near, dialling_context(ring("alice"), [certificate("server")]), server_side=False)
    while not lines:
        client.shake()
        loop.turn(0.1)
    (line,) = map(json.loads, lines)
    assert line["event"] == "internal" and "KeyError: 'secret' at test_signals.py" in line["message"]
    assert [key.fd for key in selector.get_map().values()] == [waiting.fileno()]
    arrivals.close()
    loop.close()
    client.close()
    other.close()
