"""The daemon's log: lines that programs read, and a stream that never holds the daemon up."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.daemon.log import BOUNDED_LINES, LINE_BYTES, Log, LogStream
from tests.support.daemon.daemons import WAIT_SECONDS, key_directory, root_option
from tests.support.running.syncing import RDC, command
from tests.support.trees.trees import read_tree, tree, write_tree

VALUES = st.text(max_size=1200) | st.binary(max_size=1200) | st.integers(-(1 << 63), 1 << 63) | st.floats()


@given(st.dictionaries(st.sampled_from(("path", "message", "peer", "address")), VALUES), st.booleans())
def test_every_line_is_one_and_whole(fields: dict[str, str | bytes | int | float], as_json: bool) -> None:
    """Whatever the values are, and however long."""
    lines: list[bytes] = []
    log = Log(as_json=as_json, write=lines.append, clock=lambda: 0.5)
    log("info", "e", **fields)
    log("info", "e", **dict.fromkeys(fields, "\U0010ffff" * 1200))
    for line in lines:
        assert line.isascii() and line.count(b"\n") == 1 and line.endswith(b"\n")
        assert len(line) <= LINE_BYTES + 1
        assert not as_json or json.loads(line).keys() == {"ts", "level", "event", *fields}
    assert len(lines) == 2


class UnprintableError(Exception):
    def __str__(self) -> str:
        raise MemoryError


def test_lines_about_faults_are_bounded() -> None:
    """A stranger may be their cause; one that has no text has its name."""
    lines: list[bytes] = []
    now = [0.0]
    log = Log(as_json=False, write=lines.append, clock=lambda: now[0])
    log.internal(UnprintableError())
    for number in range(1000):
        log.internal(KeyError(number), address="a:1")
        log.stranger("unknown_peer")
    assert len(lines) == BOUNDED_LINES and b"level=error event=internal message=UnprintableError" in lines[0]
    now[0] = 1.0
    log.internal(KeyError("k"))
    assert b"event=suppressed lines=1981" in lines[-2] and b"KeyError: 'k'" in lines[-1]


def test_what_could_not_be_written_is_counted() -> None:
    lines: list[bytes] = []
    faults: list[Exception] = []

    def write(line: bytes) -> None:
        if faults:
            raise faults.pop()
        lines.append(line)

    log = Log(as_json=False, write=write, clock=lambda: 0.0)
    faults += [OSError(errno.ENOSPC, "full"), MemoryError(), BlockingIOError(), BrokenPipeError()]
    for number in range(5):
        log("info", "e", number=number)
    # The third line itself found the stream right again, after its own count had not.
    told = [line.partition(b"event=")[2] for line in lines]
    assert told == [b"e number=2\n", b"lost lines=2\n", b"e number=3\n", b"e number=4\n"]


def filled(pipe: int) -> None:
    """Until it takes no more, by a description of its own."""
    fd = os.open(f"/proc/self/fd/{pipe}", os.O_WRONLY | os.O_NONBLOCK)
    for size in (4096, 1):
        try:
            while True:
                os.write(fd, bytes(size))
        except BlockingIOError:
            pass
    os.close(fd)


def test_a_pipe_that_is_full_is_not_waited_for() -> None:
    """The flags of the pipe stay what they were: others write to it, too."""
    reader, writer = os.pipe()
    before = fcntl.fcntl(writer, fcntl.F_GETFL)
    stream = LogStream(writer)
    stream.write(b"first\n")
    filled(writer)
    with pytest.raises(BlockingIOError):
        stream.write(b"second\n")
    assert fcntl.fcntl(writer, fcntl.F_GETFL) == before
    while not os.read(reader, 1 << 20).endswith(b"\0"):
        pass
    stream.write(b"third\n")
    assert os.read(reader, 100) == b"third\n"
    os.close(reader)
    with pytest.raises(BrokenPipeError):
        stream.write(b"fourth\n")
    stream.close()
    os.close(writer)


def test_a_socket_that_is_full_is_not_waited_for() -> None:
    """A pipe to journald is like this when journald hangs."""
    near, far = socket.socketpair()
    stream = LogStream(near.fileno())
    with pytest.raises(BlockingIOError):
        for _ in range(1_000_000):
            stream.write(b"x" * 100 + b"\n")
    taken = far.recv(1 << 24)
    assert taken and taken.count(b"\n") * 101 == len(taken)
    assert near.getblocking()
    far.close()
    with pytest.raises(BrokenPipeError):
        stream.write(b"line\n")
    stream.close()
    near.close()


@pytest.fixture
def config(tmp_path: Path) -> Path:
    write_tree(tmp_path / "data", tree({"f": b"f"}))
    key_directory(tmp_path / "keys", "server", {"alice": "alice"})
    path = tmp_path / "daemon.toml"
    path.write_text(
        'listen = "127.0.0.1:0"\nkeys = "keys"\ncatalog = "off"\n'
        f'[modules.data]\npath = "{tmp_path}/data"\nallow = "alice"\n'
    )
    return path


@pytest.mark.parametrize("hung", [False, True], ids=["closed from the start", "a pipe that nobody reads"])
def test_a_daemon_serves_whatever_its_log_is(hung: bool, config: Path, tmp_path: Path) -> None:
    """Closed: no socket gets the descriptor, and with it the log. Full: nobody waits."""
    reader, writer = os.pipe()
    if hung:
        filled(writer)
    words = [*RDC, "serve", "--config", str(config), *root_option()]
    closing = [] if hung else ["sh", "-c", 'exec "$@" 2>&-', "sh"]
    process = subprocess.Popen([*closing, *words], stdout=subprocess.PIPE, stderr=writer)
    os.close(writer)
    assert process.stdout is not None
    try:
        port = int(process.stdout.readline().decode().rstrip("/\n").rpartition(":")[2])
        assert hung or os.readlink(f"/proc/{process.pid}/fd/2") == os.devnull
        near = key_directory(tmp_path / "near", "alice", {f"127.0.0.1:{port}": "server"})
        with socket.create_connection(("127.0.0.1", port)) as stranger:
            stranger.sendall(b"no TLS at all")
            heard = stranger.recv(1 << 16)
            assert b"event=" not in heard
            for name in ("one", "two"):
                ended = command("sync", "--keys", near, f"rdc://127.0.0.1:{port}/data/", tmp_path / name)
                assert (ended.code, ended.complaints) == (0, [])
                assert read_tree(tmp_path / name).keys() == read_tree(tmp_path / "data").keys()
        process.terminate()
        assert process.wait(WAIT_SECONDS) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        os.close(reader)
