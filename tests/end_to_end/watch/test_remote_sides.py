"""`rdc watch` over loopback TLS and from far sources: real daemons and processes, real inotify."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.running.churn import Churn
from tests.support.running.watching import DaemonLine, ShellLine, Watching, eventually, small_tree

LINES = ["to a daemon", "from a daemon", "from a shell"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return small_tree(tmp_path / "far" / "src")


@pytest.fixture
def daemon(tmp_path: Path, source: Path) -> Iterator[DaemonLine]:
    line = DaemonLine(tmp_path, tmp_path / "far")
    yield line
    line.close()


def to_daemon(daemon: DaemonLine, source: Path, *options: str) -> Watching:
    return Watching(source, source.parent / "dst", *options, place=daemon.place, line=daemon)


@pytest.fixture(params=LINES)
def watching(request: pytest.FixtureRequest, tmp_path: Path, source: Path) -> Iterator[Watching]:
    line = ShellLine(tmp_path) if request.param == "from a shell" else DaemonLine(tmp_path, tmp_path / "far")
    destination = tmp_path / "far" / "dst"
    yield Watching(
        source, destination, "--delete", place=tmp_path, line=line, far_source=request.param != LINES[0]
    )
    line.close()


def test_churn_ends_in_equal_trees(watching: Watching) -> None:
    with watching.running():
        Churn(watching.source, 1).run(150)
        watching.wait_equal()
        # The trees are equal before the turn that made them so is told of.
        files = sum(path.is_file() and not path.is_symlink() for path in watching.source.rglob("*"))
        eventually(
            lambda: len(told := watching.named("in_step")) > 1 and told[-1]["files"] == files,
            lambda: f"{files} files: {watching.story}",
        )
        assert not watching.named("error"), str(watching.named("error"))
        assert watching.named("disconnected") == []
        assert watching.stop() == 0
    last = watching.events[-1]
    turns = watching.named("in_step")
    assert last["event"] == "stopped"
    assert last["turns"] == len(turns) > 1
    assert [event["whole"] for event in turns].count(True) == 1
    assert turns[-1]["files"] == files
    assert sum(turn["changed"] for turn in turns) == last["changed"] > 20
    assert last["bytes_sent"] + last["bytes_received"] >= sum(
        turn["bytes_sent"] + turn["bytes_received"] for turn in turns
    )


@pytest.mark.parametrize("watching", LINES[:2], indirect=True)
def test_either_side_may_be_killed_at_any_time(watching: Watching) -> None:
    churn = Churn(watching.source, 7)
    with watching.running():
        churn.run(40)
        watching.kill_far()
        churn.run(40)
        watching.wait_equal()
        assert watching.named("disconnected")
        churn.run(40)
        watching.kill()
    churn.run(40)
    with watching.running():
        churn.run(20)
        watching.wait_equal()


@pytest.mark.parametrize("watching", ["from a daemon"], indirect=True)
def test_a_rename_moves_no_content(watching: Watching) -> None:
    with watching.running():
        (watching.source / "d").rename(watching.source / "moved")
        watching.wait_equal()
        (watching.source / "moved" / "f1").rename(watching.source / "one")
        watching.wait_equal()
        watching.wait_renamed("d/", "moved/f1")
        watching.stop()


@pytest.mark.parametrize("watching", ["from a daemon"], indirect=True)
def test_a_file_that_is_being_written_is_no_error(watching: Watching) -> None:
    with watching.running():
        end = time.monotonic() + 1.0
        with (watching.source / "log").open("ab", buffering=0) as log:
            while time.monotonic() < end:
                log.write(os.urandom(20_000))
                time.sleep(0.005)
        watching.wait_equal()
        assert watching.named("error") == []


@pytest.mark.parametrize("watching", LINES[:2], indirect=True)
def test_a_source_that_is_gone_halts(watching: Watching, tmp_path: Path) -> None:
    with watching.running():
        held = sorted(path.name for path in watching.destination.rglob("*"))
        watching.source.rename(tmp_path / "away")
        watching.wait("halted")
        watching.source.mkdir()  # as an empty mount point
        time.sleep(0.6)
        watching.kill_far()  # the next session does not take the mount point for the source either
        watching.wait("disconnected")
        (watching.source / "stray").touch()
        time.sleep(1.2)
        assert sorted(path.name for path in watching.destination.rglob("*")) == held
        (watching.source / "stray").unlink()
        watching.source.rmdir()
        (tmp_path / "away").rename(watching.source)
        watching.wait("resumed")
        (watching.source / "after").write_bytes(b"after")
        watching.wait_equal()


def test_an_idle_watch_outlives_the_idle_limit(daemon: DaemonLine, source: Path) -> None:
    daemon.limits = "[limits]\nidle-seconds = 2"
    daemon.reload()
    watching = to_daemon(daemon, source, "--timeout=2")
    with watching.running():
        time.sleep(5)
        (source / "late").write_bytes(b"late")
        watching.wait_equal()
        assert watching.named("disconnected") == []


def test_a_daemon_that_stops_in_order_is_dialled_again(daemon: DaemonLine, source: Path) -> None:
    watching = to_daemon(daemon, source, "--delete")
    with watching.running():
        daemon.stop()
        watching.wait("disconnected")
        assert "the daemon ended the session" in watching.named("disconnected")[0]["message"]
        (source / "top").unlink()
        daemon.start()
        watching.wait_equal()


def test_a_session_that_is_too_long_for_the_daemon_goes_on_in_another(
    daemon: DaemonLine, source: Path
) -> None:
    daemon.limits = "[limits]\nsession-seconds = 3"
    daemon.reload()
    watching = to_daemon(daemon, source)
    with watching.running():
        watching.wait("disconnected")
        assert "took longer than the daemon allows" in watching.named("disconnected")[0]["message"]
        (source / "late").write_bytes(b"late")
        watching.wait_equal()


def test_a_key_that_is_trusted_no_more_ends_it(daemon: DaemonLine, source: Path) -> None:
    watching = to_daemon(daemon, source)
    with watching.running():
        daemon.forget_peer()
        daemon.reload()
        assert watching.ended() == ExitCode.REFUSED
    assert watching.named("error")[-1]["code"] == ExitCode.REFUSED


@pytest.mark.parametrize(
    ("rules", "options", "text"),
    [
        ("read-only = true", (), "read-only"),
        ("read-only = false\nno-delete = true", ("--delete",), "--delete"),
    ],
)
def test_what_a_module_forbids_ends_it(
    daemon: DaemonLine, source: Path, rules: str, options: tuple[str, ...], text: str
) -> None:
    daemon.rules = rules
    daemon.reload()
    watching = to_daemon(daemon, source, *options)
    watching.start()
    assert watching.ended() == ExitCode.REFUSED
    assert text in watching.named("error")[-1]["message"]
    assert not watching.destination.exists()
