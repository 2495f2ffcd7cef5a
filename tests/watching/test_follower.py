"""The source's side of a session that stays open, turn by turn, by a clock that the tests move."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from rdc.errors import ExitCode
from rdc.files.root.source_file import SourceFile
from rdc.model.sync import SyncOptions
from rdc.watching import events as events_module
from rdc.watching.follower import EARLY_SECONDS, HALT_SECONDS, LIMITED_SECONDS
from rdc.watching.read_changes import FIRST_RETRY_SECONDS
from rdc.watching.records import Halted, InStep, Limited, Resumed, WatchEvent
from tests.support.running.followed import Followed
from tests.support.running.watching import small_tree
from tests.support.trees.descriptors import open_files
from tests.support.trees.trees import describe, read_tree

MIRROR = SyncOptions(fsync=False, delete=True)
KEEP = SyncOptions(fsync=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return small_tree(tmp_path / "s")


def kinds(told: list[WatchEvent]) -> list[type[WatchEvent]]:
    return [type(event) for event in told]


def same(source: Path, destination: Path) -> bool:
    return describe(read_tree(source), read_tree(destination)) == []


def ages(path: Path) -> None:
    """Not changed in this tick of the clock, which would have it looked at once more."""
    for place, _, names in os.walk(path):
        for name in names:
            os.utime(os.path.join(place, name), ns=(10**18, 10**18))


# Turns


def test_the_trees_are_compared_and_then_only_what_changed_is_told(source: Path, tmp_path: Path) -> None:
    ages(source)
    with Followed(source, tmp_path / "d") as followed:
        assert (followed.follower.in_step, followed.follower.stamps) == (False, None)
        followed.rest()
        (first,) = followed.told
        assert isinstance(first, InStep)
        assert (first.whole, first.files, first.deleted) == (True, 22, 0)
        assert same(source, tmp_path / "d")
        assert followed.follower.in_step
        # Without --rescan nothing but an event has it do anything.
        assert followed.waits is None
        (source / "d/f1").write_bytes(b"another")
        (source / "d/f2").unlink()
        (source / "new").mkdir()
        told = followed.change(b"d", b"")[0]
        assert isinstance(told, InStep)
        assert (told.whole, told.files, told.deleted) == (False, 21, 1)
        assert same(source, tmp_path / "d")
        assert told.bytes_sent < first.bytes_sent / 20
        assert followed.problems == []


def test_an_event_without_a_change_tells_nothing(source: Path, tmp_path: Path) -> None:
    ages(source)
    with Followed(source, tmp_path / "d") as followed:
        followed.rest()
        assert followed.change(b"d", b"", b"d/e", b"none") == []
        assert followed.waits is None


def test_a_burst_is_taken_when_it_is_over(source: Path, tmp_path: Path) -> None:
    """And no later than it may take, however long it goes on."""
    ages(source)
    with Followed(source, tmp_path / "d") as followed:
        followed.rest()
        assert followed.tree_events is not None
        (source / "top").write_bytes(b"changed")
        passed = 0.0
        while len(followed.told) == 1:
            followed.tree_events.touch(b"")
            followed.pass_by(events_module.QUIET_SECONDS / 2)
            passed += events_module.QUIET_SECONDS / 2
            assert passed < 2 * events_module.BURST_SECONDS
        assert passed > events_module.QUIET_SECONDS
        assert same(source, tmp_path / "d")


def test_whole_trees_are_compared_from_time_to_time(source: Path, tmp_path: Path) -> None:
    """What no event told of is found then."""
    ages(source)
    with Followed(source, tmp_path / "d", rescan=60) as followed:
        followed.rest()
        (tmp_path / "d/top").write_bytes(b"somebody else's")
        (source / "d/e/deep").write_bytes(b"unseen")
        followed.pass_by(59)
        assert len(followed.told) == 1
        followed.pass_by(2)
        (told,) = followed.told[1:]
        assert isinstance(told, InStep)
        assert told.whole
        assert same(source, tmp_path / "d")


# Files that are being written


def test_a_file_that_changes_while_it_is_read_is_tried_again(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The user hears nothing of it, and the rest is in sync meanwhile."""
    ages(source)
    check, busy = SourceFile.check_unchanged, [True]
    path = source / "d/busy"

    def write(self: SourceFile) -> None:
        if busy[0] and self.path == b"d/busy":
            with path.open("ab") as file:
                file.write(b"more")
        check(self)

    with Followed(source, tmp_path / "d") as followed:
        followed.rest()
        monkeypatch.setattr(SourceFile, "check_unchanged", write)
        path.write_bytes(os.urandom(300_000))
        (source / "top").write_bytes(b"at rest")
        told = followed.change(b"d", b"")
        assert InStep in kinds(told)
        assert (tmp_path / "d/top").read_bytes() == b"at rest"
        assert not (tmp_path / "d/d/busy").exists()
        assert followed.waits is not None
        busy[0] = False
        followed.pass_by(100 * FIRST_RETRY_SECONDS)
        assert same(source, tmp_path / "d")
        assert followed.problems == []
        assert followed.waits is None


def test_trouble_at_the_destination_is_told_once_and_the_trees_are_compared_soon(
    source: Path, tmp_path: Path
) -> None:
    ages(source)
    with Followed(source, tmp_path / "d", KEEP) as followed:
        followed.rest()
        (tmp_path / "d/new/mine").mkdir(parents=True)
        (source / "new").write_bytes(b"a file in a directory's place")
        followed.change(b"")
        assert [(problem.code, problem.path_bytes) for problem in followed.problems] == [
            (ExitCode.PARTIAL, b"new")
        ]
        before = len(followed.told)
        followed.pass_by(EARLY_SECONDS)
        assert [event.whole for event in followed.told[before:] if isinstance(event, InStep)] == [True]
        (tmp_path / "d/new/mine").rmdir()
        followed.pass_by(10 * EARLY_SECONDS)
        assert (tmp_path / "d/new").read_bytes() == b"a file in a directory's place"
        # After that it rests.
        assert followed.waits is None


# A source that goes and comes


@pytest.mark.parametrize("options", [MIRROR, KEEP], ids=["--delete", ""])
def test_a_source_that_is_gone_and_comes_back(options: SyncOptions, source: Path, tmp_path: Path) -> None:
    ages(source)
    with Followed(source, tmp_path / "d", options) as followed:
        followed.rest()
        source.rename(tmp_path / "away")
        (halted,) = followed.change(b"")
        assert isinstance(halted, Halted)
        assert "is gone" in halted.reason
        followed.pass_by(20 * HALT_SECONDS)
        assert kinds(followed.told) == [InStep, Halted]
        assert same(tmp_path / "away", tmp_path / "d")
        (tmp_path / "away/top").write_bytes(b"changed meanwhile")
        (tmp_path / "away").rename(source)
        followed.pass_by(20 * HALT_SECONDS)
        assert kinds(followed.told)[:4] == [InStep, Halted, Resumed, InStep]
        assert same(source, tmp_path / "d")


@pytest.mark.parametrize("force", [False, True], ids=["", "--force-empty"])
def test_a_source_that_is_empty_all_at_once(force: bool, source: Path, tmp_path: Path) -> None:
    ages(source)
    with Followed(source, tmp_path / "d", replace(MIRROR, force_empty=force)) as followed:
        followed.rest()
        (source / "d").rename(tmp_path / "aside")
        (source / "top").rename(tmp_path / "top")
        told = followed.change(b"")
        if force:
            assert kinds(told) == [InStep]
            assert same(source, tmp_path / "d")
            return
        assert kinds(told) == [Halted]
        assert len(read_tree(tmp_path / "d")) == len(read_tree(tmp_path / "aside")) + 2
        (tmp_path / "top").rename(source / "top")
        followed.pass_by(20 * HALT_SECONDS)
        # Something is there: that the rest is not counts.
        assert same(source, tmp_path / "d")


def test_with_delete_only_the_directory_itself_is_followed_on(source: Path, tmp_path: Path) -> None:
    """Another one at its path has other files: a disk that is not mounted."""
    ages(source)
    with Followed(source, tmp_path / "d") as followed:
        followed.rest()
        source.rename(tmp_path / "away")
        source.mkdir()
        (source / "other").write_bytes(b"x")
        (halted,) = followed.change(b"")
        assert isinstance(halted, Halted)
        assert "another directory" in halted.reason
        followed.pass_by(100 * HALT_SECONDS)
        assert same(tmp_path / "away", tmp_path / "d")


def test_without_delete_another_directory_is_compared_as_a_whole(source: Path, tmp_path: Path) -> None:
    ages(source)
    with Followed(source, tmp_path / "d", KEEP) as followed:
        followed.rest()
        source.rename(tmp_path / "away")
        small_tree(source)
        (source / "top").write_bytes(b"the other one's")
        followed.change(b"")
        followed.pass_by(20 * HALT_SECONDS)
        assert [event.whole for event in followed.told if isinstance(event, InStep)] == [True, True]
        assert same(source, tmp_path / "d")


def test_nothing_of_the_source_is_open_between_two_turns(source: Path, tmp_path: Path) -> None:
    """So that it can be unmounted."""
    ages(source)
    with Followed(source, tmp_path / "d") as followed:
        followed.rest()
        (source / "d/f1").write_bytes(b"another")
        followed.change(b"d")
        followed.change(b"")
        held = [path for path in open_files(os.getpid()) if path.startswith(str(tmp_path))]
        assert held == []


# The session


def test_a_limit_of_inotify_is_told_once_and_the_source_looked_at(source: Path, tmp_path: Path) -> None:
    ages(source)
    with Followed(source, tmp_path / "d") as followed:
        followed.limit = "no more watches"
        followed.rest()
        assert followed.told[0] == Limited("no more watches", LIMITED_SECONDS)
        (source / "d/e/deep").write_bytes(b"nobody tells")
        followed.pass_by(LIMITED_SECONDS + 2)
        assert same(source, tmp_path / "d")
        followed.pass_by(10 * LIMITED_SECONDS)
        assert kinds(followed.told) == [Limited, InStep, InStep]


def test_what_another_session_knew_is_looked_at_in_the_next(source: Path, tmp_path: Path) -> None:
    """By stamps, a change shows that left size and mtime alone: the first comparison does not see it."""
    ages(source)
    with Followed(source, tmp_path / "d") as followed:
        followed.rest()
        stamps = followed.follower.stamps
    (source / "d/f1").write_bytes((source / "d/f1").read_bytes().replace(b"1", b"2"))
    os.utime(source / "d/f1", ns=(10**18, 10**18))
    with Followed(source, tmp_path / "d", stamps=stamps) as followed:
        followed.rest()
        assert kinds(followed.told) == [InStep]
        followed.pass_by(5)
        assert kinds(followed.told) == [InStep, InStep]
        assert same(source, tmp_path / "d")
