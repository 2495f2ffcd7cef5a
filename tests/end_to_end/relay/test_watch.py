"""`rdc watch` between two other hosts: the source's host follows, and the events are this machine's."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.end_to_end.relay.hosts_line import HostsLine, MixedLine
from tests.support.running.churn import Churn
from tests.support.running.syncing import command
from tests.support.running.watching import DaemonLine, Watching, eventually, small_tree


@pytest.fixture
def line(tmp_path: Path) -> HostsLine:
    return HostsLine(tmp_path)


@pytest.fixture
def watching(tmp_path: Path, line: HostsLine) -> Watching:
    source = small_tree(tmp_path / "src")
    return Watching(source, tmp_path / "dst", "--delete", place=tmp_path, line=line, far_both=True)


def test_churn_ends_in_equal_trees(watching: Watching) -> None:
    with watching.running():
        Churn(watching.source, 3).run(150)
        watching.wait_equal()
        watching.wait("in_step", 1)
        assert watching.named("error") == watching.named("disconnected") == []
        assert watching.stop() == 0
    last = watching.events[-1]
    assert last["event"] == "stopped"
    assert last["turns"] == len(watching.named("in_step")) > 1
    assert [event["whole"] for event in watching.named("in_step")].count(True) == 1
    # All that came from one host went to the other.
    assert abs(last["bytes_sent"] - last["bytes_received"]) < 0.2 * last["bytes_sent"] + 2000


def test_a_rename_moves_no_content(watching: Watching) -> None:
    with watching.running():
        (watching.source / "d").rename(watching.source / "moved")
        watching.wait_equal()
        watching.wait_renamed("d/")
        watching.stop()
    turns = [event for event in watching.named("in_step") if not event["whole"]]
    assert sum(turn["bytes_sent"] + turn["bytes_received"] for turn in turns) < 1_000
    assert sum(turn["deleted"] for turn in turns) == 0


@pytest.mark.parametrize("host", ["src", "dst"])
def test_a_host_may_be_killed_at_any_time(host: str, watching: Watching, line: HostsLine) -> None:
    churn = Churn(watching.source, 5)
    with watching.running():
        churn.run(30)
        line.kill_host(host)
        churn.run(30)
        watching.wait("disconnected")
        watching.wait_equal()
        assert watching.named("disconnected")[0]["message"].startswith(f"{host}: ")
        (watching.source / "last").write_bytes(b"last")
        watching.wait_equal()


def test_this_machine_s_process_may_be_killed(watching: Watching) -> None:
    churn = Churn(watching.source, 6)
    with watching.running():
        churn.run(30)
        watching.kill()
    churn.run(20)
    with watching.running():
        watching.wait_equal()


def test_a_source_that_is_gone_halts(watching: Watching, tmp_path: Path) -> None:
    with watching.running():
        copied = sorted(path.name for path in watching.destination.rglob("*"))
        watching.source.rename(tmp_path / "away")
        watching.wait("halted")
        assert watching.named("halted")[0]["message"].startswith("src: ")
        assert sorted(path.name for path in watching.destination.rglob("*")) == copied
        (tmp_path / "away").rename(watching.source)
        watching.wait("resumed")
        (watching.source / "after").write_bytes(b"after")
        watching.wait_equal()


def test_an_empty_source_at_the_next_dial_is_not_taken_for_an_emptied_one(
    watching: Watching, line: HostsLine, tmp_path: Path
) -> None:
    """The mark of the followed directory outlives a session here: as an unmount while a host is lost."""
    with watching.running():
        copied = sorted(path.name for path in watching.destination.rglob("*"))
        watching.source.rename(tmp_path / "away")
        watching.source.mkdir()
        line.kill()
        watching.wait("disconnected")
        watching.wait("halted")
        assert sorted(path.name for path in watching.destination.rglob("*")) == copied
        watching.source.rmdir()
        (tmp_path / "away").rename(watching.source)
        watching.wait_equal()


def test_a_destination_that_is_gone_is_not_made_anew(watching: Watching, tmp_path: Path) -> None:
    with watching.running():
        watching.destination.rename(tmp_path / "unmounted")
        watching.destination.mkdir()
        (watching.source / "new").write_bytes(b"new")
        watching.wait("disconnected", 1)
        assert list(watching.destination.iterdir()) == []
        assert watching.named("disconnected")[0]["message"].startswith("dst: ")
        watching.destination.rmdir()
        (tmp_path / "unmounted").rename(watching.destination)
        watching.wait_equal()


def test_what_others_change_is_repaired_in_time(tmp_path: Path, line: HostsLine) -> None:
    """The whole trees are compared every so often, in the same session."""
    options = ("--delete", "--rescan=1", "--timeout=4")
    source = small_tree(tmp_path / "src")
    watching = Watching(source, tmp_path / "dst", *options, place=tmp_path, line=line, far_both=True)
    with watching.running():
        (watching.destination / "top").write_bytes(b"another's")
        (watching.destination / "extra").write_bytes(b"extra")
        watching.wait_equal()
        assert watching.named("disconnected") == []


def test_signs_of_life_pass_between_turns(tmp_path: Path, line: HostsLine) -> None:
    """Both hosts would give up after a second in which nothing comes."""
    source = small_tree(tmp_path / "src")
    options = ("--timeout=1", "--rescan=0")
    watching = Watching(source, tmp_path / "dst", *options, place=tmp_path, line=line, far_both=True)
    with watching.running():
        time.sleep(2.2)
        (source / "late").write_bytes(b"late")
        watching.wait_equal()
        assert watching.named("disconnected") == []


@pytest.mark.parametrize("end", ["src", "dst"])
def test_a_daemon_at_one_end(end: str, tmp_path: Path) -> None:
    module = tmp_path / "module"
    module.mkdir()
    line = MixedLine(tmp_path, DaemonLine(tmp_path, module), module)
    source = small_tree((module if end == "src" else tmp_path) / "src")
    target = (module if end == "dst" else tmp_path) / "dst"
    watching = Watching(source, target, "--delete", place=tmp_path, line=line, far_both=True)
    try:
        with watching.running():
            Churn(source, 8).run(30)
            watching.wait_equal()
            assert watching.named("error") == watching.named("disconnected") == []
    finally:
        line.close()


def test_a_hook_runs_on_this_machine(tmp_path: Path, line: HostsLine) -> None:
    source, note = small_tree(tmp_path / "src"), tmp_path / "note"
    script = tmp_path / "hook"
    script.write_text(f'#!/bin/sh\necho "$RDC_WATCH_CHANGED $RDC_WATCH_FILES" >>{note}\n')
    script.chmod(0o755)
    watching = Watching(
        source, tmp_path / "dst", f"--on-sync={script}", place=tmp_path, line=line, far_both=True
    )
    with watching.running():
        eventually(note.exists, lambda: watching.story)
        os.unlink(source / "top")
        (source / "d" / "one more").write_bytes(b"1")
        (source / "d" / "another").write_bytes(b"2")
        eventually(lambda: note.read_text().count("\n") >= 2, lambda: watching.story)
    first, second = note.read_text().splitlines()[:2]
    assert first.split()[1] == "22" and second.split()[1] == "23"


def test_one_file_is_no_tree(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"f")
    shell = f"sh -c 'shift; exec \"$@\"' {tmp_path}"
    ended = command(
        "watch",
        "-e",
        shell,
        "--remote-path",
        HostsLine(tmp_path).options()[-1],
        f"a:{tmp_path}/file",
        f"b:{tmp_path}/x",
    )
    assert ended.code in (ExitCode.USAGE, ExitCode.PARTIAL)
    assert ended.complaints[0].startswith("rdc: a: "), ended
