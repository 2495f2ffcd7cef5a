"""Runs on real trees: guards, steps that are held, conflicts that are solved, undo, filters, locks, state."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import rdc
from rdc import (
    ExitCode,
    KeepUndo,
    Prefer,
    RdcError,
    Resolution,
    Resolve,
    UniteConflict,
    UniteItem,
    UniteOptions,
)
from rdc.errors import UsageError
from rdc.files.replace import cloning
from rdc.files.replace.replacement import Replacement
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.model.selection import FilterRule, RuleAction
from rdc.progress import Problem
from rdc.uniting.plan import Plan
from rdc.uniting.renames import Rename
from rdc.uniting.steps import Steps
from tests.uniting.real_world import every_stat, snapshot

QUICK = UniteOptions(fsync=False)


class Pair:
    """Two directories, and what the last run reported."""

    def __init__(self, top: Path) -> None:
        self.left, self.right = top / "left", top / "right"
        self.left.mkdir()
        self.right.mkdir()
        self.events: list[object] = []

    def unite(self, **options: Any) -> rdc.UniteReport:
        self.events = []
        return rdc.unite(self.left, self.right, replace(QUICK, **options), reporter=self.events.append)

    def both(self, name: str, text: str) -> None:
        for side in (self.left, self.right):
            (side / name).parent.mkdir(parents=True, exist_ok=True)
            (side / name).write_text(text)
            os.utime(side / name, ns=(5_000_000_123, 5_000_000_123))

    def texts(self, name: str) -> list[str | None]:
        paths = (self.left / name, self.right / name)
        return [path.read_text() if path.exists() else None for path in paths]

    def conflicts(self) -> list[bytes]:
        return [event.path for event in self.events if isinstance(event, UniteConflict)]

    def problems(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Problem) and event.code]

    def notices(self) -> list[str]:
        return [event.message for event in self.events if isinstance(event, Problem) and not event.code]

    def items(self) -> list[tuple[str, str, bytes]]:
        return [
            (event.side, event.action, event.path) for event in self.events if isinstance(event, UniteItem)
        ]


@pytest.fixture
def pair(tmp_path: Path) -> Pair:
    return Pair(tmp_path)


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


# Conflicts


@pytest.fixture
def torn(pair: Pair) -> Pair:
    """Both sides edited `f`, the right one later and longer."""
    pair.both("f", "old")
    pair.both("stays", "old")
    pair.unite()
    (pair.left / "f").write_text("left")
    os.utime(pair.left / "f", (10, 10))
    (pair.right / "f").write_text("right!")
    os.utime(pair.right / "f", (20, 20))
    return pair


def test_a_conflict_touches_nothing_and_is_named_until_it_is_solved(torn: Pair) -> None:
    (torn.left / "other").write_text("goes on")
    for _ in range(2):
        report = torn.unite()
        assert (report.exit, report.conflicts, torn.conflicts()) == (ExitCode.CONFLICTS, 1, [b"f"])
        assert torn.texts("f") == ["left", "right!"]
    assert torn.texts("other") == ["goes on", "goes on"]
    status = rdc.unite_status(torn.left, torn.right)
    assert status is not None
    assert [conflict.path for conflict in status.conflicts] == [b"f"]


@pytest.mark.parametrize(
    ("prefer", "text"),
    [
        ("left", "left"), ("right", "right!"), ("newer", "right!"), ("older", "left"), ("larger", "right!"),
        ("smaller", "left"),
    ],
)  # fmt: skip
def test_prefer_chooses_the_version(torn: Pair, prefer: str, text: str) -> None:
    assert torn.unite(prefer=Prefer(prefer)).exit is ExitCode.OK
    assert torn.texts("f") == [text, text]
    assert torn.unite().conflicts == 0


@pytest.mark.parametrize(
    ("prefer", "text"),
    [
        ("left", "left version"), ("right", "right"), ("newer", "left version"), ("older", "right"),
        ("larger", "left version"), ("smaller", "right"),
    ],
)  # fmt: skip
def test_prefer_chooses_in_a_first_run(pair: Pair, prefer: str, text: str) -> None:
    for side, content, when in ((pair.left, "left version", 9), (pair.right, "right", 1)):
        (side / "f").write_text(content)
        os.utime(side / "f", (when, when))
    assert pair.unite(prefer=Prefer(prefer)).exit is ExitCode.OK
    assert pair.texts("f") == [text, text]
    other = pair.left if text == "right" else pair.right
    assert rdc.undo(other).restored == 1


def test_the_preferred_version_keeps_the_name_beside_a_copy(torn: Pair) -> None:
    torn.unite(prefer=Prefer.LEFT, keep_both=True)
    (copy,) = (path.name for path in torn.left.glob("f.conflict-*"))
    assert (torn.texts("f"), torn.texts(copy)) == (["left", "left"], ["right!", "right!"])


@pytest.mark.parametrize("prefer", ["newer", "older", "larger", "smaller"])
def test_a_rule_that_names_no_winner_decides_nothing(pair: Pair, prefer: str) -> None:
    pair.both("f", "old")
    pair.unite()
    for side, text in ((pair.left, "LEFT"), (pair.right, "RITE")):
        (side / "f").write_text(text)
        os.utime(side / "f", (10, 10))
    assert pair.unite(prefer=Prefer(prefer)).exit is ExitCode.CONFLICTS
    assert pair.texts("f") == ["LEFT", "RITE"]


@pytest.mark.parametrize(("how", "text"), [(Resolution.LEFT, "left"), (Resolution.RIGHT, "right!")])
def test_resolve_solves_one_conflict_alone(torn: Pair, how: Resolution, text: str) -> None:
    (torn.left / "g").write_text("one")
    (torn.right / "g").write_text("other")
    assert torn.unite(resolve=(Resolve(b"f", how),)).conflicts == 1
    assert torn.texts("f") == [text, text]
    assert torn.texts("g") == ["one", "other"]


def test_both_versions_get_names_and_no_copy_of_a_copy(torn: Pair) -> None:
    assert torn.unite(keep_both=True).exit is ExitCode.OK
    (copy,) = (path.name for path in torn.left.glob("f.conflict-*"))
    assert copy.endswith("-19700101-000010")
    assert torn.texts("f") == ["right!", "right!"]
    assert torn.texts(copy) == ["left", "left"]
    (torn.left / copy).write_text("once")
    (torn.right / copy).write_text("again")
    assert torn.unite(keep_both=True).conflicts == 1
    assert len(list(torn.left.iterdir())) == 5  # `stays`, and the two stores
    assert torn.unite(keep_both=True, prefer=Prefer.LEFT).conflicts == 1


def test_a_kill_after_a_version_got_its_name_moves_nothing_else(
    torn: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_the_rename(self: Steps, plan: Plan) -> None:
        (rename,) = (each for each in plan.steps if isinstance(each[1], Rename))
        self._do(*rename)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Steps, "run", only_the_rename)
        with pytest.raises(KeyboardInterrupt):
            torn.unite(keep_both=True)
    torn.unite()
    (copy,) = (path.name for path in torn.left.glob("f.conflict-*"))
    assert torn.texts("f") == ["right!", "right!"]
    assert torn.texts(copy) == ["left", "left"]


def test_no_more_copies_than_allowed(pair: Pair) -> None:
    for number in range(5):
        (pair.left / f"f{number}").write_text("left")
        (pair.right / f"f{number}").write_text("right")
    assert pair.unite(keep_both=True, max_copies=2).conflicts == 3


def test_a_conflict_is_solved_by_hand(torn: Pair) -> None:
    torn.unite()
    (torn.right / "f").unlink()
    assert torn.unite().exit is ExitCode.OK
    assert torn.texts("f") == ["left", "left"]


def test_a_conflict_of_kinds_is_solved_whole(pair: Pair) -> None:
    (pair.left / "x").write_text("file")
    (pair.right / "x/y").mkdir(parents=True)
    (pair.right / "x/y/z").write_text("deep")
    assert pair.unite().exit is ExitCode.CONFLICTS
    assert pair.unite(resolve=(Resolve(b"x", Resolution.LEFT),)).exit is ExitCode.OK
    assert pair.texts("x") == ["file", "file"]


def test_a_repository_that_both_changed_is_one_conflict(pair: Pair) -> None:
    pair.both("p/.git/index", "0")
    pair.both("p/code", "0")
    pair.unite()
    (pair.left / "p/.git/new").write_text("1")
    (pair.right / "p/.git/index").write_text("two")
    (pair.left / "p/code").write_text("edited")
    report = pair.unite()
    assert (pair.conflicts(), report.conflicts) == ([b"p/.git"], 1)
    assert pair.texts("p/.git/new") == ["1", None]
    assert pair.texts("p/code") == ["edited", "edited"]


def test_other_names_can_be_units(pair: Pair) -> None:
    pair.both("a.bundle/one", "0")
    pair.unite()
    (pair.left / "a.bundle/two").write_text("2")
    (pair.right / "a.bundle/three").write_text("3")
    assert pair.unite(units=(b"a.bundle",)).conflicts == 1
    assert pair.conflicts() == [b"a.bundle"]


# Guards


def test_an_empty_side_that_had_entries_stops_the_run(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.right / "a").unlink()
    with pytest.raises(RdcError, match="found an empty directory") as caught:
        pair.unite()
    assert caught.value.code is ExitCode.FILE_IO
    assert pair.texts("a") == ["a", None]
    assert pair.unite(force_empty=True).left == 1
    assert pair.texts("a") == [None, None]


def test_an_empty_mount_point_is_known_without_a_state_of_its_own(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    shutil.rmtree(pair.right)
    pair.right.mkdir()
    with pytest.raises(RdcError, match="found an empty directory"):
        pair.unite()
    assert os.listdir(pair.right) == []
    assert pair.unite(force_empty=True).exit is ExitCode.OK
    assert pair.texts("a") == ["a", "a"]


def test_another_directory_in_the_place_of_one_costs_conflicts_and_no_file(pair: Pair) -> None:
    pair.both("a", "a")
    pair.both("gone", "x")
    pair.unite()
    shutil.rmtree(pair.right)
    pair.right.mkdir()
    (pair.right / "a").write_text("another")
    report = pair.unite()
    assert (report.first, report.conflicts) == (True, 1)
    assert pair.texts("gone") == ["x", "x"]


@pytest.mark.parametrize("change", ["delete", "replace"])
def test_the_guard_stops_before_a_step(pair: Pair, change: str) -> None:
    for number in range(120):
        pair.both(f"f{number}", "text")
    pair.unite()
    for number in range(70):
        path = pair.left / f"f{number}"
        if change == "delete":
            path.unlink()
        else:
            path.write_text("encrypted")
    before = snapshot(pair.right)
    with pytest.raises(RdcError, match=f"would {change} 70 of 120 entries") as caught:
        pair.unite()
    assert caught.value.code is ExitCode.MAX_DELETE
    assert snapshot(pair.right) == before
    assert pair.unite(guard=100).right == 70


def test_what_was_renamed_is_not_deleted_for_the_guard(pair: Pair) -> None:
    for number in range(120):
        pair.both(f"d/f{number}", "text")
    pair.unite()
    (pair.left / "d").rename(pair.left / "e")
    assert pair.unite().right == 1


def test_a_missing_side_stops_the_run(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    shutil.rmtree(pair.right)
    with pytest.raises(RdcError, match="expected a directory at the right") as caught:
        pair.unite()
    assert caught.value.code is ExitCode.FILE_IO


def test_the_same_and_nested_directories_are_refused(pair: Pair) -> None:
    with pytest.raises(UsageError, match="the same directory"):
        rdc.unite(pair.left, f"{pair.left}/.")
    (pair.left / "in").mkdir()
    (pair.right / "link").symlink_to(pair.left / "in")
    with pytest.raises(UsageError, match="lies in"):
        rdc.unite(pair.left, pair.right / "link")


def test_a_second_run_at_the_same_time_is_refused(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    with (pair.left / ".rdc-unite/lock").open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RdcError, match="another run of rdc unite works here") as caught:
            pair.unite()
    assert caught.value.code is ExitCode.BUSY
    pair.unite()


# Users at work while a run works


def during(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Act between the plan and its first step."""
    whole = Steps.run

    def run(self: Steps, plan: object) -> None:
        act()
        whole(self, plan)  # type: ignore[arg-type]

    monkeypatch.setattr(Steps, "run", run)


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


# What takes no part


def test_excluded_entries_stay_where_they_are(pair: Pair) -> None:
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.log"),)
    pair.both("a.log", "both")
    pair.both("d/b.log", "both")
    pair.both("d/f", "f")
    pair.both("stays", "text")
    pair.unite()
    (pair.left / "a.log").unlink()
    (pair.right / "new.log").write_text("new")
    assert pair.unite(rules=rules).exit is ExitCode.OK
    assert pair.texts("a.log") == [None, "both"]
    assert pair.texts("new.log") == [None, "new"]
    shutil.rmtree(pair.left / "d")
    assert pair.unite(rules=rules).exit is ExitCode.PARTIAL
    assert pair.texts("d/b.log") == [None, "both"]
    assert pair.texts("d/f") == [None, None]
    # While it was excluded no ancestor knew it: nothing is deleted.
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("a.log") == ["both", "both"]


def test_a_special_file_in_the_place_of_a_file_is_left_alone(pair: Pair) -> None:
    pair.both("f", "text")
    pair.both("g", "text")
    pair.unite()
    (pair.left / "f").unlink()
    os.mkfifo(pair.left / "f")
    report = pair.unite()
    assert (report.exit, report.held) == (ExitCode.PARTIAL, 1)
    assert (pair.right / "f").read_text() == "text"


def test_links_are_entries_and_are_never_followed(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret")
    (pair.left / "l").symlink_to("../outside")
    (pair.left / "loop").symlink_to("loop")
    pair.unite()
    assert os.readlink(pair.right / "l") == "../outside"
    (pair.right / "l").unlink()
    pair.unite()
    assert not os.path.lexists(pair.left / "l")
    assert (tmp_path / "outside").read_text() == "secret"


def test_a_rule_for_the_top_is_about_the_top(pair: Pair) -> None:
    (pair.left / "name").write_text("1")
    (pair.left / "s").mkdir()
    (pair.left / "s/name").write_text("2")
    (pair.right / "name").write_text("3")
    assert pair.unite(rules=(FilterRule(RuleAction.EXCLUDE, b"/name"),)).exit is ExitCode.OK
    assert pair.texts("s/name") == ["2", "2"]
    assert pair.texts("name") == ["1", "3"]


def test_rules_are_about_paths_as_they_are(pair: Pair) -> None:
    """A rule names a path, so an entry takes part once its directory has another name."""
    rules = (FilterRule(RuleAction.EXCLUDE, b"/p/s"),)
    pair.both("p/f", "f")
    (pair.left / "p/s").write_text("here alone")
    pair.unite(rules=rules)
    (pair.right / "p").rename(pair.right / "q")
    assert pair.unite(rules=rules).exit is ExitCode.OK
    assert pair.unite(rules=rules).exit is ExitCode.OK
    assert pair.texts("q/s") == ["here alone", "here alone"]


def test_nothing_behind_a_link_is_deleted(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "target").mkdir()
    (tmp_path / "target/f").write_text("outside")
    pair.both("link/f", "text")
    pair.both("stays", "text")
    pair.unite()
    (pair.left / "link/f").unlink()
    shutil.rmtree(pair.right / "link")
    (pair.right / "link").symlink_to(tmp_path / "target")
    pair.unite()
    assert (tmp_path / "target/f").read_text() == "outside"


def test_hard_links_prove_no_rename(pair: Pair) -> None:
    pair.both("a", "text")
    pair.unite()
    os.link(pair.left / "a", pair.left / "b")
    (pair.left / "a").unlink()
    os.link(pair.left / "b", pair.left / "c")
    (pair.right / "a").write_text("edited")
    assert pair.unite().exit is ExitCode.OK
    assert snapshot(pair.left) == snapshot(pair.right)
    assert pair.texts("a") == ["edited", "edited"]


def test_temporaries_take_no_part(pair: Pair) -> None:
    (pair.left / ".rdc-0123456789abcdef.tmp").write_text("mine")
    (pair.left / "f.swp").write_text("an editor's")
    pair.unite()
    assert sorted(os.listdir(pair.right)) == [".rdc-undo", ".rdc-unite", "f.swp"]


def test_a_file_that_cannot_be_read_stays(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests run as root, who can read all: the call fails by itself."""
    pair.both("f", "text")
    pair.both("g", "text")
    pair.unite()
    (pair.left / "f").write_text("edited")
    (pair.left / "g").write_text("edited")
    whole = Root.open_read

    def refuse(self: Root, path: bytes) -> object:
        if path == b"f":
            raise self.failure(PermissionError(13, "Permission denied"), path, "open it for reading")
        return whole(self, path)

    with monkeypatch.context() as patch:
        patch.setattr(Root, "open_read", refuse)
        assert pair.unite().exit is ExitCode.PARTIAL
    assert (pair.texts("f"), pair.texts("g")) == (["edited", "text"], ["edited", "edited"])
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("f") == ["edited", "edited"]


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


# Content, times and permissions


def test_a_touched_file_is_not_an_edit(pair: Pair) -> None:
    (pair.left / "f").write_text("text")
    pair.unite()
    os.utime(pair.left / "f", (50, 50))
    (pair.right / "f").write_text("edited")
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("f") == ["edited", "edited"]


def test_an_edit_that_keeps_size_and_time_is_found(pair: Pair) -> None:
    (pair.left / "f").write_text("one")
    pair.unite()
    before = (pair.right / "f").stat()
    (pair.right / "f").write_text("two")
    os.utime(pair.right / "f", ns=(before.st_atime_ns, before.st_mtime_ns))
    pair.unite()
    assert pair.texts("f") == ["two", "two"]


def test_equal_contents_of_a_first_run_are_agreed_whatever_their_times(pair: Pair) -> None:
    for side, when in ((pair.left, 30), (pair.right, 20)):
        (side / "f").write_text("text")
        os.utime(side / "f", (when, when))
    assert pair.unite().exit is ExitCode.OK
    assert [(side / "f").stat().st_mtime for side in (pair.left, pair.right)] == [20, 20]


def test_checksum_compares_what_looks_equal(pair: Pair) -> None:
    for side, text in ((pair.left, "one"), (pair.right, "two")):
        (side / "f").write_text(text)
        os.utime(side / "f", (30, 30))
    assert pair.unite(dry_run=True).conflicts == 0
    assert pair.unite(checksum=True).conflicts == 1


def test_permissions_go_over_beside_an_edit(pair: Pair) -> None:
    pair.both("f", "text")
    pair.unite()
    (pair.left / "f").chmod(0o755)
    (pair.right / "f").write_text("edited")
    pair.unite()
    assert [(side / "f").stat().st_mode & 0o777 for side in (pair.left, pair.right)] == [0o755, 0o755]
    assert pair.texts("f") == ["edited", "edited"]


def test_different_permissions_are_a_conflict_until_they_are_solved(pair: Pair) -> None:
    pair.both("f", "text")
    pair.both("d/g", "text")
    pair.unite()
    for name, left, right in (("f", 0o600, 0o755), ("d", 0o700, 0o711)):
        (pair.left / name).chmod(left)
        (pair.right / name).chmod(right)
    for _ in range(3):
        assert pair.unite().exit is ExitCode.CONFLICTS
        assert sorted(pair.conflicts()) == [b"d", b"f"]
    (pair.right / "f").write_text("edited")
    assert pair.unite().conflicts == 2
    assert pair.texts("f") == ["edited", "edited"]
    modes = [(side / "f").stat().st_mode & 0o777 for side in (pair.left, pair.right)]
    assert modes == [0o600, 0o755]
    assert pair.unite(prefer=Prefer.LEFT).exit is ExitCode.OK
    assert [(side / "d").stat().st_mode & 0o777 for side in (pair.left, pair.right)] == [0o700, 0o700]
    assert pair.unite().exit is ExitCode.OK


def test_a_touched_file_below_a_renamed_directory_is_no_edit(pair: Pair) -> None:
    (pair.left / "d").mkdir()
    (pair.left / "d/f").write_text("text")
    (pair.left / "d/g").write_text("text")
    pair.unite()
    (pair.left / "d").rename(pair.left / "e")
    os.utime(pair.left / "e/f", (50, 50))
    (pair.right / "d/f").write_text("edited")
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("e/f") == ["edited", "edited"]


# State, undo


def test_undo_at_one_side_is_never_repeated_at_the_other(pair: Pair) -> None:
    for name in ("edited", "deleted", "stays"):
        pair.both(name, "old")
    pair.unite()
    (pair.left / "edited").write_text("newer")
    (pair.left / "deleted").unlink()
    (pair.left / "made").write_text("made")
    pair.unite()
    assert rdc.undo(pair.right).left_alone == 0
    assert [pair.texts(name)[1] for name in ("edited", "deleted", "made")] == ["old", "old", None]
    assert pair.unite().exit is ExitCode.CONFLICTS
    assert pair.conflicts() == [b"edited"]
    assert pair.texts("deleted") == ["old", "old"]
    assert pair.texts("made") == ["made", "made"]


def test_undo_at_both_sides_decides_nothing(pair: Pair) -> None:
    pair.both("f", "old")
    pair.both("g", "old")
    pair.unite()
    (pair.left / "f").write_text("newer")
    (pair.right / "g").write_text("newer")
    pair.unite()
    rdc.undo(pair.left)
    rdc.undo(pair.right)
    assert (pair.texts("f"), pair.texts("g")) == (["newer", "old"], ["old", "newer"])
    pair.unite()
    assert pair.conflicts() == [b"f", b"g"]


def test_what_a_run_replaces_can_be_brought_back(pair: Pair) -> None:
    pair.both("f", "old")
    pair.unite()
    (pair.left / "f").write_text("newer")
    pair.unite(keep_undo=KeepUndo(days=1))
    assert pair.texts("f") == ["newer", "newer"]
    assert rdc.undo(pair.right).restored == 1
    assert pair.texts("f") == ["newer", "old"]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("what", ["lost", "damaged", "copied", "foreign file"])
def test_a_state_that_is_worth_nothing_deletes_nothing(
    pair: Pair, what: str, side: str, tmp_path: Path
) -> None:
    pair.both("a", "a")
    pair.both("b", "b")
    pair.unite()
    (pair.left / "a").unlink()
    (pair.right / "b").write_text("edited")
    top: Path = getattr(pair, side)
    (ancestor,) = top.glob(".rdc-unite/*/ancestor")
    if what == "lost":
        shutil.rmtree(top / ".rdc-unite")
    elif what == "damaged":
        data = bytearray(ancestor.read_bytes())
        data[len(data) // 2] ^= 4
        ancestor.write_bytes(data)
    elif what == "foreign file":
        ancestor.chmod(0o666)
    else:
        # The first one stays: ext4 would give the inode number of a removed directory to the next one.
        top.rename(tmp_path / "before")
        shutil.copytree(tmp_path / "before", top)
    report = pair.unite()
    assert report.exit is ExitCode.CONFLICTS
    assert pair.texts("a") == ["a", "a"]
    assert pair.texts("b") == ["b", "edited"]
    assert pair.unite(prefer=Prefer.RIGHT).exit is ExitCode.OK


def test_a_copy_with_the_same_id_gets_one_of_its_own(pair: Pair) -> None:
    """Tops of two file systems have the same inode number, so a copy of one cannot be told by it."""
    pair.both("a", "a")
    pair.unite()
    for each in pair.right.glob(".rdc-unite/*"):
        if each.is_dir():
            shutil.rmtree(each)
    copied = bytearray((pair.left / ".rdc-unite/root").read_bytes()[:-4])
    copied[-8:] = pair.right.stat().st_ino.to_bytes(8, "little")
    (pair.right / ".rdc-unite/root").write_bytes(copied + crc32(copied).to_bytes(4, "little"))
    (pair.left / "a").unlink()
    (pair.left / "b").write_text("b")
    assert pair.unite(dry_run=True).first
    report = pair.unite()
    assert (report.first, report.exit) == (True, ExitCode.OK)
    assert pair.texts("a") == ["a", "a"]
    assert not pair.unite().first


def test_a_state_of_another_user_is_refused_with_advice(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.left / ".rdc-unite").chmod(0o777)
    with pytest.raises(RdcError, match="move it away"):
        pair.unite()


def test_either_side_may_be_named_first(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.left / "a").write_text("edited")
    report = rdc.unite(pair.right, pair.left, QUICK)
    assert (report.first, report.left, report.right) == (False, 1, 0)
    assert pair.texts("a") == ["edited", "edited"]


def test_forgetting_makes_the_next_run_a_first_one(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.left / "a").unlink()
    (pair.left / "b").write_text("b")
    assert rdc.forget_united(pair.left, pair.right) == 2
    assert rdc.unite_status(pair.left, pair.right) is None
    assert pair.unite().first
    assert pair.texts("a") == ["a", "a"]


def test_a_hub_with_spokes_settles(tmp_path: Path) -> None:
    tops = [tmp_path / name for name in ("hub", "one", "two")]
    for top in tops:
        top.mkdir()
    (tops[1] / "a").write_text("from one")
    for spoke in (tops[1], tops[2], tops[1]):
        rdc.unite(tops[0], spoke, QUICK)
    assert (tops[2] / "a").read_text() == "from one"
    (tops[2] / "b").write_text("b")
    (tops[2] / "a").unlink()
    rdc.unite(tops[2], tops[0], QUICK)
    rdc.unite(tops[1], tops[0], QUICK)
    assert [sorted(path.name for path in top.iterdir() if path.name[0] != ".") for top in tops] == [["b"]] * 3


def test_state_is_seen_by_no_sync_and_no_scan(pair: Pair, tmp_path: Path) -> None:
    pair.both("a", "a")
    pair.unite()
    rdc.sync(f"{pair.left}/", f"{tmp_path}/copy", catalog=None)
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["a"]
    rdc.sync(f"{tmp_path}/copy/", f"{pair.left}/", rdc.SyncOptions(delete=True), catalog=None)
    assert (pair.left / ".rdc-unite").is_dir()
    assert not pair.unite().first
