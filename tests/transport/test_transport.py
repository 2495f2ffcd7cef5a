"""Transports: one suite for all of them, then what is particular to pipes, children and remote shells."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.errors import CommandMissingError, ExitCode, RdcError, UsageError
from rdc.model.location import RemoteShell
from rdc.transport.base import Transport
from rdc.transport.pipes import ChildTransport, PipeTransport, remote_argv, shell_words
from tests.support.daemon.tls_pair import tls_pair
from tests.support.wire.memory_transport import pair

NOTHING = memoryview(b"")
# A transport that hangs fails its test instead of the run.
LIMIT = 120.0


def echo(far: Transport) -> None:
    """Sends back what comes, to the end; holds as much as it must."""
    held = b""
    ended = False
    while held or not ended:
        step = far.exchange(memoryview(held), not ended and len(held) < 1 << 20, LIMIT)
        held = held[step.written :] + step.received
        ended = ended or step.eof
    far.close_write()
    far.close()


def pipes() -> tuple[Transport, Transport]:
    there, back = os.pipe(), os.pipe()
    return PipeTransport(back[0], there[1]), PipeTransport(there[0], back[1])


def in_thread(ends: tuple[Transport, Transport]) -> tuple[Transport, Callable[[], None]]:
    near, far = ends
    thread = threading.Thread(target=echo, args=(far,))
    thread.start()
    return near, lambda: thread.join(LIMIT)


def child() -> tuple[Transport, Callable[[], None]]:
    return ChildTransport(["cat"]), lambda: None


@pytest.fixture(params=["memory", "narrow memory", "pipes", "child", "tls"])
def near(request: pytest.FixtureRequest) -> Iterator[Transport]:
    """A transport whose remote side echoes."""
    start: dict[str, Callable[[], tuple[Transport, Callable[[], None]]]] = {
        "memory": lambda: in_thread(pair()),
        "narrow memory": lambda: in_thread(pair(1000)),
        "pipes": lambda: in_thread(pipes()),
        "child": child,
        "tls": lambda: in_thread(tls_pair()),
    }
    transport, finish = start[request.param]()
    yield transport
    transport.close()
    finish()


def receive(transport: Transport, count: int) -> bytes:
    data = b""
    while len(data) < count:
        step = transport.exchange(NOTHING, True, LIMIT)
        assert not step.eof
        data += step.received
    return data


def send(transport: Transport, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[transport.exchange(rest, False, LIMIT).written :]


def test_bytes_come_back(near: Transport) -> None:
    for word in (b"one", b"two", bytes(range(256))):
        send(near, word)
        assert receive(near, len(word)) == word


def test_a_glance_returns_at_once(near: Transport) -> None:
    step = near.exchange(NOTHING, True, 0)
    assert (step.written, step.received, step.eof) == (0, b"", False)


def test_silence_is_an_error_after_the_timeout(near: Transport) -> None:
    with pytest.raises(RdcError, match=r"silent for 0\.05 seconds") as caught:
        near.exchange(NOTHING, True, 0.05)
    assert caught.value.code == ExitCode.TIMEOUT


def test_much_traffic_both_ways_at_once(near: Transport) -> None:
    """Far more than any pipe holds goes out before the first byte is waited for."""
    data = random.Random(3).randbytes(6 << 20)
    rest = memoryview(data)
    digest = hashlib.blake2b()
    count = 0
    while count < len(data):
        step = near.exchange(rest[: 256 << 10], True, LIMIT)
        assert not step.eof
        assert step.written or step.received
        rest = rest[step.written :]
        digest.update(step.received)
        count += len(step.received)
    assert digest.digest() == hashlib.blake2b(data).digest()
    near.close_write()
    assert near.exchange(NOTHING, True, LIMIT).eof


def test_the_end_comes_after_the_last_byte(near: Transport) -> None:
    data = b""
    rest = memoryview(b"x" * 100_000)
    while rest:
        step = near.exchange(rest, True, LIMIT)
        rest = rest[step.written :]
        data += step.received
    near.close_write()
    while not (step := near.exchange(NOTHING, True, LIMIT)).eof:
        data += step.received
    assert step.received == b""
    assert data == b"x" * 100_000
    assert near.exchange(NOTHING, True, LIMIT).eof


def test_input_stays_there_until_it_is_wanted(near: Transport) -> None:
    send(near, b"early")
    step = near.exchange(memoryview(b" late"), False, LIMIT)
    assert step.received == b""
    assert receive(near, 5 + step.written) == b"early late"[: 5 + step.written]


def test_close_may_come_twice(near: Transport) -> None:
    near.close()
    near.close()


@pytest.mark.parametrize("ends", [pair, pipes])
def test_what_nobody_reads_is_dropped_and_what_was_said_is_read(
    ends: Callable[[], tuple[Transport, Transport]],
) -> None:
    near, far = ends()
    send(far, b"the reason")
    far.close()
    written = 0
    data = bytes(100_000)
    for _ in range(200):  # 20 MB: more than any buffer could hide
        step = near.exchange(memoryview(data), False, LIMIT)
        written += step.written
    assert written > 10 << 20
    assert receive(near, 10) == b"the reason"
    assert near.exchange(memoryview(data), True, LIMIT).eof
    near.close()


def test_memory_holds_no_more_than_its_capacity() -> None:
    near, far = pair(1000)
    assert near.exchange(memoryview(bytes(1500)), True, 0).written == 1000
    assert near.exchange(memoryview(bytes(1500)), True, 0).written == 0
    with pytest.raises(RdcError):
        near.exchange(memoryview(b"x"), False, 0.02)
    assert far.exchange(NOTHING, True, 0).received == bytes(1000)
    assert near.exchange(memoryview(bytes(1500)), False, 0).written == 1000


def test_pipes_are_enlarged_and_left_blocking() -> None:
    there, back = os.pipe(), os.pipe()
    keep = os.dup(there[1])
    transport = PipeTransport(back[0], there[1])
    assert fcntl.fcntl(keep, fcntl.F_GETPIPE_SZ) >= 1 << 20 or os.geteuid() != 0
    assert not os.get_blocking(keep)
    transport.close()
    assert os.get_blocking(keep)
    for fd in (keep, there[0], back[1]):
        os.close(fd)


# Children

SERVER = """
import os, subprocess, sys
from rdc.transport.pipes import StdioTransport
transport = StdioTransport()
print("a stray print")
os.write(1, b"a stray write")
subprocess.run(["sh", "-c", "echo a stray child; cat"])
rest = memoryview(b"hello from the server")
while rest:
    rest = rest[transport.exchange(rest, False, 10).written:]
received = b""
while not (step := transport.exchange(memoryview(b""), True, 10)).eof:
    received += step.received
rest = memoryview(b"/" + received)
while rest:
    rest = rest[transport.exchange(rest, False, 10).written:]
transport.close()
print("after")
sys.exit(7)
"""


def test_stray_output_does_not_reach_the_stream(capfd: pytest.CaptureFixture[str]) -> None:
    transport = ChildTransport([sys.executable, "-c", SERVER])
    send(transport, b"to the server")
    transport.close_write()
    data = b""
    while not (step := transport.exchange(NOTHING, True, LIMIT)).eof:
        data += step.received
    assert data == b"hello from the server/to the server"
    assert transport.wait() == 7
    transport.close()
    assert transport.returncode == 7
    err = capfd.readouterr().err
    for stray in ("a stray print", "a stray write", "a stray child", "after"):
        assert stray in err


def test_a_command_that_is_not_there_is_named() -> None:
    for argv in (["/no/such/rdc-shell", "host"], [""], ["a\0b"]):
        with pytest.raises(CommandMissingError, match="cannot start") as caught:
            ChildTransport(argv)
        assert caught.value.code == 127


def test_the_exit_status_tells_why_nothing_came() -> None:
    transport = ChildTransport(["sh", "-c", "exit 127"])
    assert transport.exchange(NOTHING, True, LIMIT).eof
    assert transport.wait() == 127
    transport.close()


def test_arguments_reach_the_child_as_they_are() -> None:
    transport = ChildTransport(["printf", "%s|", "a b", "$(id)", "'", "*"])
    data = b""
    while not (step := transport.exchange(NOTHING, True, LIMIT)).eof:
        data += step.received
    transport.close()
    assert data == b"a b|$(id)|'|*|"


def test_a_child_that_stays_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdc.transport.pipes.EXIT_SECONDS", 0.1)
    monkeypatch.setattr("rdc.transport.pipes.TERMINATE_SECONDS", 0.1)
    transport = ChildTransport(["sh", "-c", "exec sleep 600"])
    transport.close()
    assert transport.returncode == -15
    stubborn = (
        "import os, signal, time; signal.signal(15, signal.SIG_IGN); os.write(1, b'x'); time.sleep(600)"
    )
    transport = ChildTransport([sys.executable, "-c", stubborn])
    receive(transport, 1)
    transport.close()
    assert transport.returncode == -9


def test_the_child_is_in_our_process_group_and_keeps_no_stray_descriptor(tmp_path: Path) -> None:
    other = ChildTransport(["cat"])
    stray = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(stray, True)
    transport = ChildTransport(["sh", "-c", "ls /proc/self/fd; ps -o pgid= $$ || true"])
    data = b""
    while not (step := transport.exchange(NOTHING, True, LIMIT)).eof:
        data += step.received
    transport.close()
    other.close()
    os.close(stray)
    words = data.split()
    assert words[:4] == [b"0", b"1", b"2", b"3"]  # 3: ls reading the directory
    assert words[4:] in ([str(os.getpgrp()).encode()], [])


def test_a_child_keeps_no_stray_descriptor_where_the_system_lists_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(path: str) -> list[str]:
        raise FileNotFoundError(path)

    stray = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(stray, True)
    try:
        with monkeypatch.context() as patch:
            patch.setattr(os, "listdir", refuse)
            patch.setattr("rdc.transport.pipes.LISTED_FDS", stray + 1)
            transport = ChildTransport(["sh", "-c", f"[ -e /proc/self/fd/{stray} ]"])
        assert transport.wait() == 1
        transport.close()
    finally:
        os.close(stray)


def test_a_child_has_the_signals_back_that_python_ignores() -> None:
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
        assert signal.getsignal(ignored) == signal.SIG_IGN
        transport = ChildTransport(["sh", "-c", f"kill -{ignored:d} $$"])
        assert transport.wait() == -ignored
        transport.close()


@pytest.mark.parametrize("has_pidfd", [True, False])
def test_a_wait_for_a_child_ends_with_it_or_with_its_time(
    has_pidfd: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not has_pidfd:
        monkeypatch.delattr(os, "pidfd_open")
    transport = ChildTransport(["cat"])
    assert transport.returncode is transport.wait(0) is transport.wait(0.01) is None
    transport.close_write()
    assert transport.wait(LIMIT) == transport.wait() == transport.returncode == 0
    transport.close()


def test_a_wait_for_a_child_is_woken_and_does_not_look_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """subprocess.Popen sleeps for up to 50 ms between two looks."""
    naps: list[float] = []
    monkeypatch.setattr(time, "sleep", naps.append)
    transport = ChildTransport(["sh", "-c", "read line; exec sleep 0.2"])
    transport.close_write()
    assert transport.wait(LIMIT) == 0
    assert naps == []
    transport.close()


def test_a_child_of_whom_the_system_tells_nothing_has_ended() -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        transport = ChildTransport(["false"])
        assert transport.wait() == 0
        transport.close()
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_a_child_that_cannot_be_started_leaves_no_descriptors() -> None:
    before = os.listdir("/proc/self/fd")
    with pytest.raises(CommandMissingError):
        ChildTransport(["/no/such/program"])
    assert os.listdir("/proc/self/fd") == before


# Remote shells


@given(st.text(alphabet="ab \t\n\r\v\f\x1c'\"\\\\#$é\u2003", max_size=12))
def test_words_are_the_shells(command: str) -> None:
    try:
        words = shlex.split(command)
    except ValueError:
        with pytest.raises(ValueError, match=r"No closing quotation|No escaped character"):
            shell_words(command)
    else:
        assert shell_words(command) == words


@pytest.mark.parametrize(
    ("host", "shell", "program", "argv"),
    [
        ("h", ("rsh",), "rdc", ["rsh", "h", "rdc", "serve", "--stdio"]),
        (
            "u@h",
            ("ssh", "-p", "22", "-i", "my key"),
            "sudo rdc",
            ["ssh", "-p", "22", "-i", "my key", "u@h", "sudo", "rdc", "serve", "--stdio"],
        ),
        ("h", ("ssh",), "~/bin/rdc", ["ssh", "h", "~/bin/rdc", "serve", "--stdio"]),
        ("h;id", ("ssh",), "$(id)", ["ssh", "h;id", "$(id)", "serve", "--stdio"]),
        ("h", ("ssh",), "'my rdc'", ["ssh", "h", "my rdc", "serve", "--stdio"]),
    ],
)
def test_the_remote_command(host: str, shell: tuple[str, ...], program: str, argv: list[str]) -> None:
    assert remote_argv(host, RemoteShell(shell, program)) == argv


@pytest.mark.parametrize(
    ("host", "shell", "program"),
    [
        ("-oProxyCommand=id", ("ssh",), "rdc"),
        ("", ("ssh",), "rdc"),
        ("h", (), "rdc"),
        ("h", ("ssh",), " "),
        ("h", ("ssh",), "rdc 'x"),
        ("h\0", ("ssh",), "rdc"),
        ("h", ("ssh", "a\0"), "rdc"),
        ("h", ("ssh",), "rdc\0"),
    ],
)
def test_a_remote_command_that_makes_no_sense_is_a_usage_error(
    host: str, shell: tuple[str, ...], program: str
) -> None:
    with pytest.raises(UsageError):
        remote_argv(host, RemoteShell(shell, program))


def test_a_stand_in_for_ssh_runs_the_program(tmp_path: Path) -> None:
    shell = tmp_path / "pseudo-ssh"
    shell.write_text('#!/bin/sh\nshift\nexec sh -c "$*"\n')
    shell.chmod(0o755)
    program = tmp_path / "rdc"
    program.write_text('#!/bin/sh\necho "$@"\n')
    program.chmod(0o755)
    transport = ChildTransport(remote_argv("anywhere", RemoteShell((str(shell),), str(program))))
    data = b""
    while not (step := transport.exchange(NOTHING, True, LIMIT)).eof:
        data += step.received
    transport.close()
    assert data == b"serve --stdio\n"
    transport = ChildTransport(remote_argv("anywhere", RemoteShell((str(shell),), "/no/such/rdc")))
    assert transport.exchange(NOTHING, True, LIMIT).eof
    assert transport.wait() == 127
    transport.close()
