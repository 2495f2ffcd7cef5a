"""Runs on real trees: the first one, a dry one, users at work meanwhile, disks that are full."""

from __future__ import annotations

import os
import shutil
from typing import Any

import pytest

import rdc
from rdc import (
    ExitCode,
    RdcError,
)
from rdc.files.names import entry_names
from rdc.files.replace import cloning
from rdc.files.replace.commit_group import CommitGroup
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.uniting import steps
from tests.uniting.pairs import QUICK, Pair, during
from tests.uniting.real_world import every_stat, snapshot
from tests.uniting.remote_runs import unite_in_turns


def test_the_first_run_says_so_and_deletes_nothing(pair: Pair) -> None:
    (pair.left / "a").write_text("a")
    (pair.right / "b").write_text("b")
    report = pair.unite()
    assert (report.first, report.left, report.right, report.exit) == (True, 1, 1, ExitCode.OK)
    assert pair.notices() == ["first time: nothing is deleted; what differs is a conflict"]
    assert snapshot(pair.left) == snapshot(pair.right)
    assert not pair.unite().first
    assert pair.notices() == []


def test_a_dry_run_writes_nothing_and_says_what_the_run_does(pair: Pair) -> None:
    pair.both("same", "same")
    (pair.left / "a").write_text("a")
    before = [every_stat(side) for side in (pair.left, pair.right)]
    dry = pair.unite(dry_run=True)
    items = pair.items()
    assert [every_stat(side) for side in (pair.left, pair.right)] == before
    assert items == [("right", "new", b"a")]
    real = pair.unite()
    assert (pair.items(), replace(real, entries=0)) == (items, replace(dry, entries=0))


def test_an_edit_below_a_renamed_directory_arrives_there(pair: Pair) -> None:
    for number in range(4):
        pair.both(f"old/{number}", f"text {number}")
    pair.unite()
    (pair.left / "old").rename(pair.left / "new")
    (pair.right / "old/2").write_text("edited")
    report = pair.unite()
    assert pair.items() == [("right", "renamed", b"old"), ("left", "edited", b"new/2")]
    assert pair.texts("new/2") == ["edited", "edited"]
    assert report.right_bytes == 0
    assert snapshot(pair.left) == snapshot(pair.right)


@pytest.mark.parametrize("size", [3, 3_000, 900_000])
def test_an_edit_of_what_has_just_arrived_is_an_edit(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Whoever writes into a file as soon as it has its name is not taken for the run itself."""
    pair.both("f", "o" * size)
    pair.unite()
    (pair.left / "f").write_text("l" * size)
    settle = CommitGroup._settle

    def edited(group: CommitGroup, renamed: Any) -> Any:
        if renamed:
            (pair.right / "f").write_text("u" * size)
        return settle(group, renamed)

    with monkeypatch.context() as patch:
        patch.setattr(CommitGroup, "_settle", edited)
        assert pair.unite().right == 1
    assert pair.unite().left == 1
    assert pair.texts("f") == ["u" * size] * 2
    assert snapshot(pair.left) == snapshot(pair.right)


def test_an_edit_of_what_was_just_renamed_is_an_edit(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.both("old", "text")
    pair.unite()
    (pair.left / "old").rename(pair.left / "new")
    move = entry_names.move_file

    def edited(*arguments: Any, **options: Any) -> Any:
        done = move(*arguments, **options)
        (pair.right / "new").write_text("user")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(steps, "move_file", edited)
        assert pair.unite().right == 1
    assert pair.unite().left == 1
    assert pair.texts("new") == ["user"] * 2
    assert snapshot(pair.left) == snapshot(pair.right)


@pytest.mark.parametrize("size", [3, 3_000, 900_000])
@pytest.mark.parametrize("change", ["edit", "delete"])
def test_what_a_user_changed_since_the_listing_is_held(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, change: str, size: int
) -> None:
    pair.both("f", "o" * size)
    pair.both("g", "g")
    pair.unite()
    if change == "edit":
        (pair.left / "f").write_text("l" * size)
    else:
        (pair.left / "f").unlink()
    (pair.left / "g").write_text("goes on")
    with monkeypatch.context() as patch:
        during(patch, lambda: (pair.right / "f").write_text("user" * size))
        report = pair.unite()
    assert (report.exit, report.held) == (ExitCode.PARTIAL, 1)
    assert pair.texts("f")[1] == "user" * size
    assert pair.texts("g") == ["goes on", "goes on"]
    pair.unite()
    assert "user" * size in pair.texts("f")
    assert pair.conflicts() == ([b"f"] if change == "edit" else [])


def test_a_source_that_changed_since_the_listing_is_held(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    (pair.left / "f").write_text("one")
    with monkeypatch.context() as patch:
        during(patch, lambda: (pair.left / "f").write_text("other text"))
        assert pair.unite().exit is ExitCode.PARTIAL
    assert pair.texts("f") == ["other text", None]
    pair.unite()
    assert pair.texts("f") == ["other text", "other text"]


def test_a_file_that_appears_in_the_place_of_a_new_one_stays(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pair.left / "d").mkdir()
    (pair.left / "d/f").write_text("one")
    with monkeypatch.context() as patch:
        during(patch, lambda: (pair.right / "d").write_text("mine"))
        assert pair.unite().exit is ExitCode.PARTIAL
    assert (pair.right / "d").read_text() == "mine"
    assert pair.unite().exit is ExitCode.CONFLICTS


def test_a_file_that_appears_in_a_deleted_directory_keeps_it(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    pair.both("d/f", "text")
    pair.both("stays", "text")
    pair.unite()
    shutil.rmtree(pair.left / "d")
    with monkeypatch.context() as patch:
        during(patch, lambda: (pair.right / "d/new").write_text("mine"))
        assert pair.unite().exit is ExitCode.PARTIAL
    assert pair.texts("d/new") == [None, "mine"]
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("d/new") == ["mine", "mine"]


def test_a_renamed_entry_that_changed_since_is_held(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    pair.both("f", "text")
    pair.unite()
    (pair.left / "f").rename(pair.left / "g")
    with monkeypatch.context() as patch:
        during(patch, lambda: (pair.right / "f").write_text("mine"))
        assert pair.unite().exit is ExitCode.PARTIAL
    assert (pair.right / "f").read_text() == "mine"
    pair.unite()
    assert "mine" in pair.texts("g") + pair.texts("f")
    assert snapshot(pair.left) == snapshot(pair.right)


@pytest.mark.parametrize("way", [None, 0, 1], ids=["local", "left dials", "right dials"])
@pytest.mark.parametrize("change", ["renamed", "permissions", "edited inside"])
def test_permissions_of_a_directory_that_a_user_set_meanwhile_are_a_change(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, change: str, way: int | None
) -> None:
    def unite() -> rdc.UniteReport:
        if way is None:
            return pair.unite()
        return unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=way).report

    pair.both("d/f", "text")
    unite()
    name = "d"
    match change:
        case "renamed":
            name = "e"
            (pair.left / "d").rename(pair.left / "e")
        case "permissions":
            (pair.left / "d").chmod(0o711)
        case "edited inside":
            (pair.left / "d/f").write_text("edited")
    whole = steps.Steps.do

    def meanwhile(self: steps.Steps, given: Any) -> None:
        if (pair.right / "d").exists():
            (pair.right / "d").chmod(0o750)
        whole(self, given)

    with monkeypatch.context() as patch:
        patch.setattr(steps.Steps, "do", meanwhile)
        unite()
    for _ in range(2):
        assert unite().exit is ExitCode.OK
    assert [(side / name).stat().st_mode & 0o777 for side in (pair.left, pair.right)] == [0o750] * 2


@pytest.mark.parametrize("call", ["make_directory", "remove", "replace_symlink", "set_metadata"])
def test_what_one_side_cannot_hold_is_held(pair: Pair, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """A name too long, an immutable file, a directory that nobody may write: the rest goes on."""
    for name in ("gone", "mode", "kept"):
        pair.both(name, "text")
    pair.unite()
    (pair.left / "gone").unlink()
    (pair.left / "mode").chmod(0o700)
    (pair.left / "link").symlink_to("kept")
    (pair.left / "d").mkdir()
    (pair.left / "d/f").write_text("deep")
    (pair.left / "kept").write_text("edited")

    def refuse(self: Root, path: bytes, *_: object, **__: object) -> object:
        raise self.failure(PermissionError(1, "Operation not permitted"), path, "change it")

    with monkeypatch.context() as patch:
        patch.setattr(Root, call, refuse)
        report = pair.unite()
    assert report.exit is ExitCode.PARTIAL
    assert report.held >= 1
    assert pair.texts("kept") == ["edited", "edited"]
    assert pair.unite().exit is ExitCode.OK
    assert snapshot(pair.left) == snapshot(pair.right)
    assert "gone" not in os.listdir(pair.left)


def test_a_full_disk_ends_the_run_and_leaves_no_temporary(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pair.left / "a").write_text("a")
    (pair.left / "b").write_text("b")
    (pair.right / "c").write_text("c")
    whole = Replacement.copy_from

    def full(self: Replacement, *arguments: Any, **options: Any) -> int:
        if self.path == b"b":
            raise self.root.failure(OSError(28, "No space left on device"), self.path, "write it")
        return whole(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Replacement, "copy_from", full)
        patch.setattr(cloning, "clone_into", lambda *_: False)
        with pytest.raises(RdcError) as caught:
            pair.unite()
    assert caught.value.code is ExitCode.FILE_IO
    assert not [*pair.left.glob(".rdc-*.tmp"), *pair.right.glob(".rdc-*.tmp")]
    assert pair.unite().exit is ExitCode.OK
    assert snapshot(pair.left) == snapshot(pair.right)


def test_what_appears_while_a_run_works_is_seen_by_the_next(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    (pair.left / "f").write_text("one")

    def act() -> None:
        for number in range(50):
            (pair.left / f"new{number}").write_text("new")

    with monkeypatch.context() as patch:
        during(patch, act)
        assert pair.unite().exit is ExitCode.OK
    assert sorted(os.listdir(pair.right)) == [".rdc-undo", ".rdc-unite", "f"]
    assert pair.unite().right == 50


def test_holes_stay_holes(pair: Pair) -> None:
    """Most file systems copy a hole as allocated zeros, so a sparse image could fill the disk."""
    with (pair.left / "image").open("wb") as file:
        file.truncate(512 << 20)
        file.seek(300 << 20)
        file.write(b"in the middle")
    assert pair.unite().exit is ExitCode.OK
    assert snapshot(pair.left) == snapshot(pair.right)
    assert (pair.right / "image").stat().st_blocks * 512 < 1 << 20


@pytest.mark.parametrize("checksum", [False, True])
def test_a_stop_ends_a_run_within_a_long_file(
    checksum: bool, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was copied before is in place, and the next run finishes."""
    monkeypatch.setattr(cloning, "COPIED_BYTES", 1 << 20)
    content = os.urandom(9 << 20)
    if checksum:
        pair.both("z", "")
        (pair.right / "z").write_bytes(bytes(len(content)))
    (pair.left / "z").write_bytes(content)
    (pair.left / "a").write_bytes(b"a")
    looks = 0

    class Stop:
        def is_set(self) -> bool:
            nonlocal looks
            looks += 1
            return looks > 5

    with pytest.raises(rdc.StoppedError):
        rdc.unite(pair.left, pair.right, replace(QUICK, checksum=checksum), stop=Stop())
    assert looks < 9
    assert not [*pair.left.glob(".rdc-*.tmp"), *pair.right.glob(".rdc-*.tmp")]
    assert ("z" in os.listdir(pair.right), "a" in os.listdir(pair.right)) == (checksum, not checksum)
    assert pair.unite(prefer=rdc.Prefer.LEFT).exit is ExitCode.OK
    assert (pair.right / "z").read_bytes() == content
    assert snapshot(pair.left) == snapshot(pair.right)
