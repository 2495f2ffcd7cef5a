"""`rdc watch` end to end: real processes, real inotify, and trees that are equal after all that happens."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from tests.support.running.churn import Churn
from tests.support.running.syncing import command
from tests.support.running.watching import HereLine, Watching, eventually, small_tree


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return small_tree(tmp_path / "src")


@pytest.fixture
def watching(tmp_path: Path, source: Path) -> Watching:
    return Watching(source, tmp_path / "dst", "--delete", place=tmp_path)


@pytest.mark.parametrize("seed", [1, 2])
def test_churn_ends_in_equal_trees(watching: Watching, seed: int) -> None:
    with watching.running():
        Churn(watching.source, seed).run(250)
        watching.wait_equal()
        # The trees are equal before the turn that made them so is told of.
        watching.wait("in_step", 1)
        assert watching.named("error") == []
        assert watching.named("disconnected") == []
        assert watching.stop() == 0
    last = watching.events[-1]
    assert last["event"] == "stopped"
    assert last["turns"] == len(watching.named("in_step")) > 1
    # From the first comparison on nothing was compared as a whole: every change was told.
    assert [event["whole"] for event in watching.named("in_step")].count(True) == 1


def test_either_side_may_be_killed_at_any_time(watching: Watching) -> None:
    churn = Churn(watching.source, 7)
    with watching.running():
        for _ in range(2):
            churn.run(40)
            watching.kill_far()
            churn.run(40)
        watching.wait_equal()
        assert watching.named("disconnected")
        churn.run(40)
        watching.kill()
    churn.run(40)
    with watching.running():
        watching.wait_equal()
        churn.run(20)
        watching.wait_equal()


def test_a_rename_moves_no_content(watching: Watching) -> None:
    with watching.running():
        (watching.source / "d").rename(watching.source / "moved")
        watching.wait_equal()
        (watching.source / "moved" / "f1").rename(watching.source / "one")
        watching.wait_equal()
        watching.wait_renamed("d/", "moved/f1")
        watching.stop()
    turns = [event for event in watching.named("in_step") if not event["whole"]]
    assert sum(turn["bytes_sent"] + turn["bytes_received"] for turn in turns) < 1_000
    assert sum(turn["deleted"] for turn in turns) == 0


def test_an_atomic_save_is_one_update(watching: Watching) -> None:
    with watching.running():
        before = [event["path"] for event in watching.named("item")].count("top")
        for count in range(3):
            beside = watching.source / ".top.swp"
            beside.write_bytes(b"saved %d" % count)
            beside.replace(watching.source / "top")
            watching.wait_equal()
            watching.wait_told("top", before + count + 1)
        watching.stop()
    files = [event for event in watching.named("item")[-12:] if event["path"] not in ("./", "d/")]
    assert [event["path"] for event in files][-3:] == ["top"] * 3
    assert not [event for event in watching.named("item") if ".swp" in event["path"]]


def test_a_file_that_is_being_written_is_no_error(watching: Watching) -> None:
    with watching.running():
        end = time.monotonic() + 1.5
        with (watching.source / "log").open("ab", buffering=0) as log:
            while time.monotonic() < end:
                log.write(os.urandom(20_000))
                time.sleep(0.005)
        watching.wait_equal()
        assert watching.named("error") == []


def test_without_delete_nothing_goes(tmp_path: Path, source: Path) -> None:
    watching = Watching(source, tmp_path / "dst", place=tmp_path)
    with watching.running():
        (source / "top").rename(source / "renamed")
        (source / "d" / "f1").unlink()
        eventually((watching.destination / "renamed").exists, lambda: watching.story)
        (source / "last").write_bytes(b"last")
        eventually((watching.destination / "last").exists, lambda: watching.story)
    assert (watching.destination / "top").exists()
    assert (watching.destination / "d" / "f1").exists()


def test_filters_hold(tmp_path: Path, source: Path) -> None:
    watching = Watching(
        source, tmp_path / "dst", "--delete", "--exclude=*.o", "--exclude=/out/", place=tmp_path
    )
    with watching.running():
        (source / "out" / "deep").mkdir(parents=True)
        (source / "out" / "deep" / "x").write_bytes(b"x")
        (source / "a.o").write_bytes(b"o")
        (watching.destination / "kept.o").write_bytes(b"kept")
        (source / "a.c").write_bytes(b"c")
        eventually((watching.destination / "a.c").exists, lambda: watching.story)
    assert not (watching.destination / "out").exists()
    assert not (watching.destination / "a.o").exists()
    assert (watching.destination / "kept.o").exists()


@pytest.mark.parametrize("how", ["emptied", "moved"])
def test_a_source_that_is_gone_halts(watching: Watching, how: str, tmp_path: Path) -> None:
    with watching.running():
        held = sorted(path.name for path in watching.destination.rglob("*"))
        if how == "moved":
            watching.source.rename(tmp_path / "away")
            watching.wait("halted")
            watching.source.mkdir()  # as an empty mount point
            time.sleep(0.6)
            watching.source.rmdir()
            (tmp_path / "away").rename(watching.source)
        else:
            # In one step for whoever watches: a burst is over only when it is quiet.
            for path in list(watching.source.iterdir()):
                path.rename(tmp_path / path.name)
            watching.wait("halted")
            assert sorted(path.name for path in watching.destination.rglob("*")) == held
            (watching.source / "back").write_bytes(b"back")
        watching.wait("resumed")
        (watching.source / "after").write_bytes(b"after")
        watching.wait_equal()


def test_what_others_change_is_repaired_in_time(tmp_path: Path, source: Path) -> None:
    watching = Watching(source, tmp_path / "dst", "--delete", "--rescan=1", place=tmp_path)
    with watching.running():
        (watching.destination / "top").write_bytes(b"somebody else's")
        (watching.destination / "d" / "f1").unlink()
        (watching.destination / "extra").write_bytes(b"extra")
        watching.wait_equal()


def test_a_rename_that_cannot_be_followed_costs_a_comparison(watching: Watching) -> None:
    with watching.running():
        (watching.destination / "d").rename(watching.destination / "taken-away")
        (watching.source / "d").rename(watching.source / "moved")
        watching.wait_equal()
        # The trees are equal a moment before the turn's end is told.
        eventually(
            lambda: [event["whole"] for event in watching.named("in_step")].count(True) == 2,
            lambda: watching.story,
        )


def test_a_destination_that_is_gone_is_not_made_anew(watching: Watching, tmp_path: Path) -> None:
    with watching.running():
        watching.destination.rename(tmp_path / "unmounted")
        watching.destination.mkdir()
        (watching.source / "new").write_bytes(b"new")
        watching.wait("disconnected", 1)
        assert list(watching.destination.iterdir()) == []
        watching.destination.rmdir()
        (tmp_path / "unmounted").rename(watching.destination)
        watching.wait_equal()


def test_there_is_no_far_side_where_all_is_here(tmp_path: Path, source: Path) -> None:
    line = HereLine()
    line.watching = Watching(source, tmp_path / "dst", "--delete", place=tmp_path, line=line)
    with line.watching.running():
        line.watching.kill_far()
        line.watching.wait("disconnected")
        line.watching.wait("in_step", 1)
        line.watching.destination.rename(tmp_path / "unmounted")
        (source / "new").write_bytes(b"new")
        line.watching.wait("disconnected", 1)
    reasons = [event["message"] for event in line.watching.named("disconnected")]
    assert reasons[0] == "the process that writes to DST ended"
    assert reasons[1].startswith(f"{tmp_path}/dst/: there was a copy here")
    ended = command("watch", source, tmp_path / "none" / "dst")
    assert ended.err.startswith(f"rdc: {tmp_path}/none/dst: cannot open it: ")


def test_what_cannot_be_watched_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    for words, text in (
        ((tmp_path / "file", tmp_path / "x"), "a directory is expected"),
        ((tmp_path / "none", tmp_path / "x"), "no such file"),
        (("far:a/", "far:a/b/"), "copied into itself"),
        (("--rescan=x", "a", "b"), "a number of seconds"),
        (("--rescan=999999999", "a", "b"), "at most"),
        (("-n", "a", "b"), "-n"),
        (("a",), "one was given (see rdc watch --help)"),
    ):
        ended = command("watch", *words)
        assert ended.code in (ExitCode.USAGE, ExitCode.PARTIAL), ended
        assert text in ended.err, ended
