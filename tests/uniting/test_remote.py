"""Two directories of two machines: bytes and trips, roles in turn, either side dialling, kills, rights."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc.daemon.access import Access, granted_options, unite_rights
from rdc.errors import ExitCode, RdcError, TrustError, UsageError
from rdc.lean.records import replace
from rdc.model.options import KeepUndo
from rdc.model.selection import FilterRule, RuleAction
from rdc.model.sync import SyncOptions
from rdc.protocol.messages import Open, Role
from rdc.session.serve import Admitted, UniteRights, as_asked
from rdc.uniting.pages import FilesEnd
from rdc.uniting.records import Prefer, Resolution, Resolve, UniteConflict
from rdc.uniting.rows import LEFT, RIGHT
from rdc.uniting.state import RootState
from tests.uniting.pairs import QUICK, Pair
from tests.uniting.real_histories import history_beside_memory, history_with_kills
from tests.uniting.real_world import every_stat, snapshot
from tests.uniting.remote_runs import RemoteResult, unite_in_turns


class FarPair(Pair):
    """Two directories, of which one is on another machine."""

    near = LEFT
    admit: Callable[[Open], Admitted] = staticmethod(as_asked)
    last: RemoteResult

    def unite(self, **options: Any) -> rdc.UniteReport:
        self.events = []
        given = replace(QUICK, **options)
        self.last = unite_in_turns(
            self.left, self.right, given, self.events.append, near=self.near, admit=self.admit
        )
        return self.last.report


@pytest.fixture(params=[LEFT, RIGHT], ids=["left dials", "right dials"])
def far_pair(tmp_path: Path, request: pytest.FixtureRequest) -> FarPair:
    pair = FarPair(tmp_path)
    pair.near = request.param
    return pair


def fill(pair: FarPair, directories: int = 30, files: int = 20) -> None:
    rng = random.Random(1)
    for directory in range(directories):
        for number in range(files):
            pair.both(f"d{directory}/f{number}", rng.randbytes(15).hex())


def the_same(pair: FarPair) -> None:
    assert snapshot(pair.left) == snapshot(pair.right)
    before = [every_stat(side) for side in (pair.left, pair.right)]
    for near in (LEFT, RIGHT):
        pair.near = near
        report = pair.unite()
        assert (report.left, report.right, pair.items()) == (0, 0, [])
        assert (pair.last.trips, pair.last.sessions) == (1, 1)
        assert pair.last.bytes <= 700
    assert [every_stat(side) for side in (pair.left, pair.right)] == before


# Bytes and round trips


def test_equal_trees_cost_one_digest_in_a_first_run(far_pair: FarPair) -> None:
    fill(far_pair)
    report = far_pair.unite()
    assert (report.first, report.exit, far_pair.items()) == (True, ExitCode.OK, [])
    assert far_pair.last.bytes <= 900
    assert far_pair.last.trips <= 3
    the_same(far_pair)


def test_one_edit_a_side(far_pair: FarPair) -> None:
    fill(far_pair)
    far_pair.unite()
    (far_pair.left / "d3/f3").write_text("edited at the left, and longer than it was before")
    (far_pair.right / "d5/f5").write_text("edited at the right")
    report = far_pair.unite()
    assert (report.left, report.right, report.exit) == (1, 1, ExitCode.OK)
    assert far_pair.last.bytes <= 3_000
    assert far_pair.last.trips <= 10
    the_same(far_pair)


def test_a_large_file_with_an_edit_goes_by_delta(far_pair: FarPair) -> None:
    text = random.Random(2).randbytes(2 << 20)
    for side in (far_pair.left, far_pair.right):
        (side / "large").write_bytes(text)
    far_pair.unite()
    (far_pair.left / "large").write_bytes(text[: 1 << 20] + b"inserted" + text[1 << 20 :])
    assert far_pair.unite().right == 1
    assert far_pair.last.bytes < 40_000
    the_same(far_pair)


def test_edits_below_a_renamed_directory_arrive(far_pair: FarPair) -> None:
    """The cost grows with the number of edits, and not with that of the entries."""
    fill(far_pair, directories=1, files=300)
    far_pair.unite()
    (far_pair.left / "d0").rename(far_pair.left / "e")
    for number in range(3):
        (far_pair.right / f"d0/f{number}").write_text(f"edited {number}")
    report = far_pair.unite()
    assert (report.left, report.right, report.conflicts) == (3, 1, 0)
    assert far_pair.texts("e/f1") == ["edited 1"] * 2
    assert far_pair.last.bytes <= 7_000
    the_same(far_pair)


# What a run does


def test_all_kinds_of_steps_at_both_sides(far_pair: FarPair) -> None:
    for name in ("edit", "gone", "kind", "mode", "d/in", "stays"):
        far_pair.both(name, f"text of {name}")
    far_pair.unite()
    for side, mark in ((far_pair.left, "l"), (far_pair.right, "r")):
        (side / f"new-{mark}").write_text(mark)
        (side / f"link-{mark}").symlink_to(f"to {mark}")
        (side / f"deep-{mark}/er").mkdir(parents=True)
        (side / f"deep-{mark}/er/f").write_text("x" * 70_000)
    (far_pair.left / "gone").unlink()
    (far_pair.left / "kind").unlink()
    (far_pair.left / "kind").mkdir()
    (far_pair.left / "kind/f").write_text("below")
    (far_pair.right / "mode").chmod(0o600)
    (far_pair.right / "edit").write_text("edited")
    (far_pair.right / "d").rename(far_pair.right / "deep-r/moved")
    assert far_pair.unite().exit is ExitCode.OK
    assert far_pair.problems() == []
    assert far_pair.texts("deep-r/moved/in") == ["text of d/in"] * 2
    assert far_pair.texts("kind/f") == ["below"] * 2
    the_same(far_pair)


def test_a_dry_run_says_the_same_and_writes_nothing(far_pair: FarPair) -> None:
    far_pair.both("a", "a")
    (far_pair.left / "b").write_text("b")
    before = [every_stat(side) for side in (far_pair.left, far_pair.right)]
    far_pair.unite(dry_run=True)
    items = far_pair.items()
    assert [every_stat(side) for side in (far_pair.left, far_pair.right)] == before
    far_pair.unite()
    assert far_pair.items() == items == [("right", "new", b"b")]


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"prefer": Prefer.LEFT}, "left"),
        ({"prefer": Prefer.NEWER}, "right!"),
        ({"resolve": (Resolve(b"f", Resolution.RIGHT),)}, "right!"),
        ({"keep_both": True}, "right!"),
    ],
)
def test_conflicts_are_named_and_solved(far_pair: FarPair, options: dict[str, object], texts: str) -> None:
    far_pair.both("f", "old")
    far_pair.both("stays", "s")
    far_pair.unite()
    for side, text, when in ((far_pair.left, "left", 10), (far_pair.right, "right!", 20)):
        (side / "f").write_text(text)
        os.utime(side / "f", (when, when))
    for near in (LEFT, RIGHT, LEFT):
        far_pair.near = near
        assert far_pair.unite().exit is ExitCode.CONFLICTS
        (event,) = (each for each in far_pair.events if isinstance(each, UniteConflict))
        assert (event.left_size, event.right_size) == (4, 6)
    assert far_pair.texts("f") == ["left", "right!"]
    assert far_pair.unite(**options).exit is ExitCode.OK
    assert far_pair.texts("f") == [texts, texts]
    assert bool(list(far_pair.right.glob("f.conflict-*"))) == ("keep_both" in options)
    the_same(far_pair)


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Acts right before the files of a turn are sent, and right after."""

    def act(before: Callable[[], object], after: Callable[[], object]) -> None:
        whole = FilesEnd.serve

        def serve(self: FilesEnd, *words: Any) -> Any:
            before()
            done = yield from whole(self, *words)
            after()
            monkeypatch.setattr(FilesEnd, "serve", whole)
            return done

        monkeypatch.setattr(FilesEnd, "serve", serve)

    return act


@pytest.mark.parametrize("source", [LEFT, RIGHT])
def test_files_that_swap_names_before_they_are_sent_are_told_apart_later(
    far_pair: FarPair, source: int, meanwhile: Callable[..., None]
) -> None:
    """What arrives is another file's content, and says nothing of the file that was listed."""
    top = (far_pair.left, far_pair.right)[source]
    far_pair.both("old", "known at both sides")
    far_pair.unite(checksum=True)
    (top / "new").write_text("a new file")
    os.utime(top / "new", ns=(6_000_000_123, 6_000_000_123))

    def swap() -> None:
        (top / "old").rename(top / "aside")
        (top / "new").rename(top / "old")
        (top / "aside").rename(top / "new")

    meanwhile(swap, lambda: None)
    for _ in range(3):
        far_pair.unite()
    assert far_pair.texts("old") == ["a new file"] * 2
    assert far_pair.texts("new") == ["known at both sides"] * 2
    the_same(far_pair)


@pytest.mark.parametrize("source", [LEFT, RIGHT])
@pytest.mark.parametrize("text", ["new", "NEW", "another one"])
def test_what_is_in_the_place_of_a_file_for_a_moment_is_agreed_on_by_nobody(
    far_pair: FarPair, source: int, text: str, meanwhile: Callable[..., None]
) -> None:
    """For a moment another directory was in the place of its own."""
    top = (far_pair.left, far_pair.right)[source]
    far_pair.both("d/stays", "text")
    far_pair.unite()
    (top / "d/new").write_text("new")

    def other() -> None:
        (top / "d").rename(top / "aside")
        (top / "d").mkdir()
        (top / "d/new").write_text(text)
        os.utime(top / "d/new", ns=(7_000_000_456, 7_000_000_456))

    def back() -> None:
        (top / "d/new").unlink()
        (top / "d").rmdir()
        (top / "aside").rename(top / "d")

    meanwhile(other, back)
    for _ in range(3):
        far_pair.unite()
    assert far_pair.texts("d/new") == ["new"] * 2
    assert len({(side / "d/new").stat().st_mtime_ns for side in (far_pair.left, far_pair.right)}) == 1
    the_same(far_pair)


def test_permissions_in_conflict_are_written_down_once(far_pair: FarPair) -> None:
    far_pair.both("f", "text")
    far_pair.both("g", "text")
    far_pair.unite()
    for side, mode in ((far_pair.left, 0o600), (far_pair.right, 0o755)):
        (side / "f").chmod(mode)
    far_pair.unite()
    before = [every_stat(side) for side in (far_pair.left, far_pair.right)]
    assert far_pair.unite().exit is ExitCode.CONFLICTS
    assert [every_stat(side) for side in (far_pair.left, far_pair.right)] == before
    (far_pair.right / "f").write_text("edited")
    assert far_pair.unite(prefer=Prefer.LEFT).exit is ExitCode.OK
    assert far_pair.texts("f") == ["edited", "edited"]


def test_both_sides_can_take_a_run_back(far_pair: FarPair) -> None:
    for name in ("f", "g", "stays"):
        far_pair.both(name, "old")
    far_pair.unite()
    (far_pair.left / "f").write_text("new")
    (far_pair.right / "g").unlink()
    far_pair.unite(keep_undo=KeepUndo(days=7))
    assert rdc.undo(far_pair.right).restored == 1
    assert rdc.undo(far_pair.left).restored == 1
    assert (far_pair.texts("f"), far_pair.texts("g")) == (["new", "old"], ["old", None])
    assert far_pair.unite().conflicts == 1, "an undo is neither repeated nor deleted"
    assert far_pair.texts("g") == ["old", "old"]


def test_rules_are_those_that_were_given_last_at_either_side(far_pair: FarPair) -> None:
    rules = (FilterRule(RuleAction.EXCLUDE, b"*.o"),)
    far_pair.both("a", "a")
    far_pair.unite(rules=rules)
    (far_pair.left / "x.o").write_text("o")
    for near in (LEFT, RIGHT):
        far_pair.near = near
        assert far_pair.unite().right == 0
    (far_pair.left / ".rdc-unite").joinpath(os.listdir(far_pair.left / ".rdc-unite")[0])
    for state in far_pair.left.glob(".rdc-unite/*/rules"):
        state.unlink()
    for near in (LEFT, RIGHT):
        far_pair.near = near
        assert far_pair.unite().right == 0
    assert not (far_pair.right / "x.o").exists()
    assert far_pair.unite(rules=()).right == 1


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("what", ["lost", "damaged"])
def test_a_state_that_is_worth_nothing_deletes_nothing(far_pair: FarPair, side: str, what: str) -> None:
    for name in ("a", "b", "gone"):
        far_pair.both(name, name)
    far_pair.unite()
    (far_pair.left / "gone").unlink()
    for ancestor in (getattr(far_pair, side) / ".rdc-unite").glob("*/ancestor*"):
        if what == "lost":
            ancestor.unlink()
        else:
            data = bytearray(ancestor.read_bytes())
            data[-1] ^= 1
            ancestor.write_bytes(data)
    report = far_pair.unite()
    assert (report.first, report.conflicts) == (True, 0)
    assert far_pair.texts("gone") == ["gone", "gone"]
    the_same(far_pair)


@pytest.mark.parametrize("side", ["left", "right"])
def test_an_emptied_side_stops_the_run_before_anything(far_pair: FarPair, side: str) -> None:
    far_pair.both("a", "a")
    far_pair.unite()
    at: Path = getattr(far_pair, side)
    for path in sorted(at.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with pytest.raises(RdcError, match="found an empty directory") as caught:
        far_pair.unite()
    assert caught.value.code is ExitCode.FILE_IO
    assert os.listdir(at) == []
    assert far_pair.unite(force_empty=True).exit is ExitCode.OK
    assert far_pair.texts("a") == ["a", "a"]


def test_the_guard_stops_before_a_step(far_pair: FarPair) -> None:
    fill(far_pair, 6, 20)
    far_pair.unite()
    for number in range(4):
        for path in (far_pair.left / f"d{number}").iterdir():
            path.unlink()
    before = snapshot(far_pair.right)
    with pytest.raises(RdcError, match="would delete 80 of 126") as caught:
        far_pair.unite()
    assert caught.value.code is ExitCode.MAX_DELETE
    assert snapshot(far_pair.right) == before


def test_a_side_that_another_run_uses_is_busy(far_pair: FarPair) -> None:
    far_pair.both("a", "a")
    far_pair.unite()
    from rdc.files.root.root import Root

    root = Root.open(os.fsencode(far_pair.right))
    try:
        with RootState(root, write=True), pytest.raises(RdcError, match="another run") as caught:
            far_pair.unite()
        assert caught.value.code is ExitCode.BUSY
    finally:
        root.release()


# Rights of a module


@pytest.mark.parametrize(
    ("rights", "change", "allowed"),
    [
        (UniteRights(delete=False), "new", True),
        (UniteRights(delete=False), "edit", True),
        (UniteRights(delete=False), "delete", False),
        (UniteRights(replace=False, delete=False), "new", True),
        (UniteRights(replace=False, delete=False), "edit", False),
    ],
)
def test_what_a_module_forbids_is_refused_before_anything_moves(
    tmp_path: Path, rights: UniteRights, change: str, allowed: bool
) -> None:
    pair = FarPair(tmp_path)
    for name in ("a", "b", "stays"):
        pair.both(name, "old")
    pair.unite()
    pair.admit = lambda open_: replace(as_asked(open_), rights=rights)
    if change == "new":
        (pair.left / "c").write_text("new")
    elif change == "edit":
        (pair.left / "a").write_text("edited")
    else:
        (pair.left / "a").unlink()
    (pair.right / "b").write_text("of the module")
    before = snapshot(pair.left), snapshot(pair.right)
    if allowed:
        assert pair.unite().right == 1
        return
    with pytest.raises(TrustError, match="nothing was done"):
        pair.unite()
    assert (snapshot(pair.left), snapshot(pair.right)) == before


@pytest.mark.parametrize(
    ("access", "rights"),
    [
        (Access("m"), UniteRights()),
        (Access("m", no_delete=True), UniteRights(delete=False, undo=False)),
        (Access("m", no_delete=True, keep_undo=KeepUndo(days=1)), UniteRights(delete=False)),
        (Access("m", append_only=True), UniteRights(replace=False, delete=False, undo=False)),
        (Access("m", no_undo=True), UniteRights(undo=False)),
    ],
)
def test_the_rights_are_those_of_the_module(access: Access, rights: UniteRights) -> None:
    assert unite_rights(access) == rights
    asked = replace(Open.asking(Role.SOURCE, b"m/", bytes(16), SyncOptions()), needs="unite")
    assert granted_options(asked, access).keep_undo == access.keep_undo
    for closed in (replace(access, read_only=True), replace(access, write_only=True)):
        with pytest.raises(TrustError, match="m is"):
            granted_options(asked, closed)


def test_two_remote_sides_are_refused() -> None:
    with pytest.raises(UsageError, match="at one of the two hosts"):
        rdc.unite("here:a", "there:b")


# Histories, and kills of one side or both


@pytest.mark.parametrize("seed", range(3))
def test_a_run_between_machines_does_what_the_plan_in_memory_does(seed: int, tmp_path: Path) -> None:
    history_beside_memory(seed, tmp_path, remote=True)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("loses", [False, True], ids=["kills", "kills and lost state"])
def test_nothing_unseen_is_lost_between_machines(seed: int, loses: bool, tmp_path: Path) -> None:
    history_with_kills(seed, loses, tmp_path, remote=True)
