"""Conflicts on real trees: what is one, and each way of solving it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import rdc
from rdc import (
    ExitCode,
    Prefer,
    Resolution,
    Resolve,
)
from rdc.lean.records import replace
from rdc.uniting.plan import Plan
from rdc.uniting.renames import Rename
from rdc.uniting.rows import LEFT, RIGHT
from rdc.uniting.steps import Steps
from tests.uniting.pairs import QUICK, Machines, Pair
from tests.uniting.remote_runs import unite_in_turns


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
    assert [conflict.path_bytes for conflict in status.conflicts] == [b"f"]


def test_times_outside_64_bits_of_nanoseconds_are_compared_as_times(torn: Pair) -> None:
    """Their stamps have no order. Of several such pairs the later one is the newer one in each."""
    names = [f"far{number}" for number in range(4)]
    for name in names:
        torn.both(name, "old")
    torn.unite(prefer=Prefer.LEFT)
    for number, name in enumerate(names):
        for side, text, time in ((torn.left, "left", 10_000_000_000), (torn.right, "newer", 10_000_000_100)):
            (side / name).write_text(text)
            os.utime(side / name, (0, time + number))
    assert torn.unite(prefer=Prefer.NEWER).exit is ExitCode.OK
    assert [torn.texts(name) for name in names] == [["newer", "newer"]] * 4


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
    assert torn.notices() == []


def test_resolve_of_a_path_without_a_conflict_says_so(torn: Pair) -> None:
    (torn.left / "d").mkdir()
    (torn.right / "d").mkdir()
    (torn.left / "d/g").write_text("one")
    (torn.right / "d/g").write_text("other")
    paths = (b"ff", b"d", b"d/h")
    assert torn.unite(resolve=tuple(Resolve(path, Resolution.LEFT) for path in paths)).conflicts == 1
    assert torn.notices() == [
        "d/h: --resolve found no conflict there",
        "ff: --resolve found no conflict there",
    ]
    assert torn.texts("d/g") == ["one", "one"]
    assert torn.unite(resolve=(Resolve(b"", Resolution.RIGHT),)).exit is ExitCode.OK
    assert torn.texts("f") == ["right!", "right!"]


@pytest.mark.parametrize("near", [None, LEFT, RIGHT])
def test_resolve_says_so_too_if_both_sides_are_as_they_were(near: int | None, pair: Pair) -> None:
    pair.both("f", "text")
    pair.unite()
    options = replace(QUICK, resolve=(Resolve(b"typo", Resolution.LEFT),))
    if near is None:
        report = rdc.unite(pair.left, pair.right, options, reporter=pair.events.append)
    else:
        report = unite_in_turns(pair.left, pair.right, options, pair.events.append, near=near).report
    assert report.exit is ExitCode.OK
    assert "typo: --resolve found no conflict there" in pair.notices()


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


@pytest.mark.parametrize("linked", [False, True])
@pytest.mark.parametrize("file_side", ["left", "right"])
@pytest.mark.parametrize("way", ["here", "left dials", "right dials"])
@pytest.mark.parametrize("kind", ["directory", "symlink", "file that became one"])
def test_both_versions_of_two_kinds_stay_and_the_file_gets_a_name(
    tmp_path: Path, kind: str, way: str, file_side: str, linked: bool
) -> None:
    pair = Pair(tmp_path) if way == "here" else Machines(tmp_path)
    if isinstance(pair, Machines):
        pair.near = LEFT if way == "left dials" else RIGHT
    if kind == "file that became one":
        pair.both("n/d.txt", "old")
        pair.unite()
    file, other = pair.left / "n/d.txt", pair.right / "n/d.txt"
    if file_side == "right":
        file, other = other, file
    for path in (file, other):
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
    file.write_text("a file")
    os.utime(file, (9, 9))
    if linked:
        os.link(file, file.with_name("second"))
    if kind == "symlink":
        other.symlink_to("elsewhere")
    else:
        (other / "below").mkdir(parents=True)
        (other / "below/f").write_text("of a directory")
    assert pair.unite().conflicts == 1
    report = pair.unite(keep_both=True)
    assert (report.exit, report.conflicts) == (ExitCode.OK, 0)
    (copy,) = (path.name for path in pair.left.glob("n/d.conflict-*.txt"))
    assert pair.texts(f"n/{copy}") == ["a file", "a file"]
    if kind == "symlink":
        assert [os.readlink(path) for path in (file, other)] == ["elsewhere"] * 2
    else:
        assert pair.texts("n/d.txt/below/f") == ["of a directory"] * 2
    last = pair.unite()
    assert (last.exit, last.left, last.right) == (ExitCode.OK, 0, 0)


@pytest.mark.parametrize(
    "name", ["x" * 255, "x" * 240 + ".txt", "é" * 127, "a" + "語" * 84, "a." + "y" * 253, "." + "z" * 254]
)
def test_the_new_name_of_a_long_one_fits(pair: Pair, name: str) -> None:
    names = [name, name[:-1] + ("w" if name.isascii() else "z")]
    for each in names:
        (pair.left / each).write_text("left")
        (pair.right / each).write_text("right!")
    assert pair.unite(keep_both=True).exit is ExitCode.OK
    copies = [path.name for path in pair.left.iterdir() if ".conflict-" in path.name]
    assert len(copies) == 2
    assert all(pair.texts(each)[0] == pair.texts(each)[1] for each in [*names, *copies])
    assert sorted(pair.texts(each)[0] or "" for each in [*names, *copies]) == ["left"] * 2 + ["right!"] * 2


def test_a_kill_after_a_version_got_its_name_moves_nothing_else(
    torn: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def only_the_rename(self: Steps, plan: Plan, _files: object) -> None:
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


@pytest.mark.parametrize("near", [None, 0, 1], ids=["local", "left dials", "right dials"])
def test_what_is_equal_below_a_conflict_of_a_first_run_is_no_state_of_its_own(
    pair: Pair, near: int | None
) -> None:
    """Two clones of one repository, with other heads."""

    def unite() -> rdc.UniteReport:
        if near is None:
            return pair.unite()
        pair.events = []
        return unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=near).report

    for name in ("f", "r/.git/objects/a/b", "r/.git/objects/c", "r/other/d/e"):
        pair.both(name, name)
    for side in (pair.left, pair.right):
        (side / "r/.git/HEAD").write_text(side.name)
    for _ in range(3):
        assert unite().exit is ExitCode.CONFLICTS
        assert pair.conflicts() == [b"r/.git"]
    (pair.right / "f").write_text("edited")
    assert not unite().first
    assert pair.texts("f") == ["edited", "edited"]
