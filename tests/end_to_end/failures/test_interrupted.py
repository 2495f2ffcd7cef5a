"""A transfer stopped in the middle, by a signal to either side, goes on where it was, and says one line."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.files.base.paths import is_temporary_of
from rdc.limits import FRAME_BYTES
from rdc.transport.pipes import PIPE_BYTES
from tests.support.daemon.daemons import WAIT_SECONDS
from tests.support.project_paths import PSEUDO_SSH, RELAY_SSH
from tests.support.running.syncing import FAR, RDC, Way

MIB = 1 << 20
SIZE = 64 * MIB
SLACK = 2 * PIPE_BYTES + 2 * FRAME_BYTES
"""What may be sent again: a full pipe, what one read took from it, a frame that is not whole yet, and one
that is being written."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("source")
    (place / "file").write_bytes(random.Random(1).randbytes(SIZE))
    return place


def argv(source: Path, destination: Path, way: Way, *words: str, ssh: str | None = None) -> list[str]:
    ends = [f"{source}/", f"{destination}/"]
    if way is not Way.HERE:
        ends[way is Way.PUSH] = "far:" + ends[way is Way.PUSH]
    remote = ["-e", ssh or str(PSEUDO_SSH), "--remote-path", FAR]
    return [*RDC, "sync", "--json", "--no-fsync", *remote, *words, *ends]


def start(command: list[str]) -> subprocess.Popen[str]:
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def kept(destination: Path) -> int:
    """Bytes of the one temporary file, 0 where there is none."""
    found = [name for name in os.listdir(destination) if is_temporary_of(os.fsencode(name), b"file")]
    assert len(found) <= 1, found
    assert set(os.listdir(destination)) <= {*found, "file"}
    return sum((destination / name).stat().st_size for name in found)


def finish(source: Path, destination: Path, way: Way) -> int:
    """Runs to the end; the content bytes that still had to come."""
    done = subprocess.run(argv(source, destination, way), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert os.listdir(destination) == ["file"]
    assert (destination / "file").read_bytes() == (source / "file").read_bytes()
    summary = json.loads(done.stdout.splitlines()[-1])
    literal: int = summary["literal_bytes"]
    return literal


def interrupt(
    source: Path, destination: Path, way: Way, name: str, victim: str, after: int
) -> tuple[int, str]:
    """One run, stopped after so many bytes on the wire; exit code and stderr."""
    relay = f"{sys.executable} {RELAY_SSH} --signal {name}:{victim}:{after}"
    with start(argv(source, destination, way, ssh=relay)) as child:
        try:
            _, err = child.communicate(timeout=WAIT_SECONDS)
        finally:
            child.kill()
    return child.returncode, err


@pytest.mark.parametrize("name", ["KILL", "INT"])
@pytest.mark.parametrize("victim", ["near", "far"])
@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
def test_either_side_stopped_in_the_middle(
    way: Way, victim: str, name: str, source: Path, tmp_path: Path
) -> None:
    destination = tmp_path / "destination"
    code, err = interrupt(source, destination, way, name, victim, SIZE // 2)
    if victim == "far":
        assert code == ExitCode.STREAM
    else:
        assert code == (-signal.SIGKILL if name == "KILL" else ExitCode.INTERRUPTED)
    # Of a side that was killed nobody says anything; the other one is gone with it, or says why it stops.
    assert len(err.splitlines()) == (0 if (name, victim) == ("KILL", "near") else 1), err
    came = kept(destination)
    assert came >= SIZE // 2 - SLACK
    assert finish(source, destination, way) <= SIZE - came + MIB


@pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])
def test_a_ctrl_c_that_reaches_both_sides_is_answered_once(way: Way, source: Path, tmp_path: Path) -> None:
    destination = tmp_path / "destination"
    code, err = interrupt(source, destination, way, "INT", "both", SIZE // 2)
    assert code in {ExitCode.INTERRUPTED, ExitCode.STREAM}  # whichever of the two it sees first
    assert len(err.splitlines()) == 1, err
    came = kept(destination)
    assert came >= SIZE // 2 - SLACK
    assert finish(source, destination, way) <= SIZE - came + MIB


@pytest.mark.parametrize("name", ["KILL", "INT"])
def test_a_local_copy_stopped_in_the_middle(name: str, source: Path, tmp_path: Path) -> None:
    destination = tmp_path / "destination"
    child = start(argv(source, destination, Way.HERE, "--bwlimit=64m"))
    assert child.stdout is not None and child.stderr is not None
    with child:
        for line in child.stdout:
            event = json.loads(line)
            if event["event"] == "progress" and event["done"] >= SIZE // 3:
                child.send_signal(getattr(signal, f"SIG{name}"))
                break
        child.stdout.read()
        err = child.stderr.read()
    assert child.returncode == (-signal.SIGKILL if name == "KILL" else ExitCode.INTERRUPTED)
    said = "rdc: interrupted: .* arrived; complete files are in place, and the next run resumes from there\n"
    assert re.fullmatch("" if name == "KILL" else said, err), err
    came = kept(destination)
    assert SIZE // 3 <= came < SIZE
    assert finish(source, destination, Way.HERE) <= SIZE - came + MIB


@pytest.mark.parametrize(("name", "way"), [("KILL", Way.PUSH), ("INT", Way.PULL), ("INT", Way.PUSH)])
def test_stopped_again_and_again(name: str, way: Way, source: Path, tmp_path: Path) -> None:
    """Each run goes on from the one before, and there is never more than one temporary file."""
    destination = tmp_path / "destination"
    destination.mkdir()
    came = 0
    for turn in range(3):
        victim = "near" if way is Way.PULL or name == "INT" else "far"
        interrupt(source, destination, way, name, victim, SIZE // 5)
        before, came = came, kept(destination)
        assert came >= before + SIZE // 5 - SLACK, turn
    assert finish(source, destination, way) <= SIZE - came + MIB


def test_an_old_version_stays_whole_until_the_new_one_is(source: Path, tmp_path: Path) -> None:
    destination = tmp_path / "destination"
    destination.mkdir()
    old = (source / "file").read_bytes()[: SIZE // 4] + b"something else"
    (destination / "file").write_bytes(old)
    interrupt(source, destination, Way.PUSH, "KILL", "far", SIZE // 4)
    assert (destination / "file").read_bytes() == old
    came = kept(destination)
    assert came >= SIZE // 2 - SLACK
    interrupt(source, destination, Way.PUSH, "INT", "near", SIZE // 5)
    assert (destination / "file").read_bytes() == old
    came = max(came, kept(destination))
    assert finish(source, destination, Way.PUSH) <= SIZE - came + MIB


def ignores(pid: int, number: signal.Signals) -> bool:
    status = Path(f"/proc/{pid}/status").read_text()
    mask = next(line.split()[1] for line in status.splitlines() if line.startswith("SigIgn"))
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_a_second_ctrl_c_does_not_wait(source: Path, tmp_path: Path) -> None:
    """The remote side does not listen: the first Ctrl-C gives it time to end, the second one does not."""
    stuck, where = tmp_path / "stuck", tmp_path / "pid"
    stuck.write_text(
        f"#!/bin/sh\ntrap '' INT TERM\necho $$ > {where}.part\nmv {where}.part {where}\nexec sleep 1000\n"
    )
    stuck.chmod(0o755)
    child = start(argv(source, tmp_path / "destination", Way.PUSH, ssh=str(stuck)))
    far = 0
    try:
        while not where.exists():
            assert child.poll() is None
            signal.sigtimedwait([], 0.02)
        far = int(where.read_text())
        child.send_signal(signal.SIGINT)
        while not ignores(child.pid, signal.SIGTERM):  # the first one has been seen
            assert child.poll() is None
            signal.sigtimedwait([], 0.02)
        child.send_signal(signal.SIGINT)
        assert child.wait(WAIT_SECONDS) == ExitCode.INTERRUPTED
        assert Path(f"/proc/{far}/status").exists(), "nobody waited for it, or killed it"
    finally:
        child.kill()
        if far:
            with contextlib.suppress(ProcessLookupError):
                os.kill(far, signal.SIGKILL)
        child.communicate()


@pytest.mark.parametrize(("way", "command"), [(Way.PUSH, "exec sleep 1000"), (Way.PULL, "cat >/dev/null")])
def test_a_silent_far_side_is_given_up(way: Way, command: str, source: Path, tmp_path: Path) -> None:
    """It is given up even if it notices that nobody speaks to it any more."""
    stuck = tmp_path / "stuck"
    stuck.write_text(f"#!/bin/sh\n{command}\n")
    stuck.chmod(0o755)
    words = argv(source, tmp_path / "destination", way, "--timeout=1", ssh=str(stuck))
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == ExitCode.TIMEOUT
    assert done.stderr == "rdc: the remote side was silent for 1 seconds\n"


def test_the_far_side_gives_up_too(source: Path, tmp_path: Path) -> None:
    """The near side is stopped, as a suspended laptop is; the far one ends, and keeps what came."""
    destination, status = tmp_path / "destination", tmp_path / "status"
    far = tmp_path / "far"
    far.write_text(f'#!/bin/sh\n{FAR} "$@"\necho $? > {status}.part\nmv {status}.part {status}\n')
    far.chmod(0o755)
    relay = f"{sys.executable} {RELAY_SSH} --signal STOP:near:{SIZE // 2}"
    child = start([*argv(source, destination, Way.PUSH, "--timeout=3", ssh=relay), "--remote-path", str(far)])
    try:
        while not status.exists():
            assert child.poll() is None
            signal.sigtimedwait([], 0.05)
        assert int(status.read_text()) == ExitCode.TIMEOUT
        assert kept(destination) >= SIZE // 2 - SLACK
    finally:
        child.kill()
        child.communicate()
