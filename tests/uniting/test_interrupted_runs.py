"""What an interrupted run leaves in doubt: which versions may come back after it, and which never do."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

import pytest

from rdc import ExitCode, UniteReport
from rdc.files.base.paths import temporary_name
from rdc.uniting.rows import Row
from rdc.uniting.state import PairDirectory
from rdc.uniting.steps import Steps
from tests.uniting.pairs import QUICK, Pair
from tests.uniting.real_world import snapshot
from tests.uniting.remote_runs import unite_in_turns

Unite = Callable[[Pair], UniteReport]


@pytest.fixture(params=[None, 0, 1], ids=["local", "left dials", "right dials"])
def unite(request: pytest.FixtureRequest) -> Unite:
    def run(pair: Pair) -> UniteReport:
        if request.param is None:
            return pair.unite()
        pair.events = []
        return unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=request.param).report

    return run


class KilledError(BaseException):
    """Nobody catches it."""


def killed_at(unite: Unite, pair: Pair, cls: type, name: str) -> None:
    """Run until a method is called for the first time."""

    def killed(*_: object) -> None:
        raise KilledError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cls, name, killed)
        with pytest.raises(KilledError):
            unite(pair)


def killed_before_agreeing(unite: Unite, pair: Pair) -> None:
    """Run until all steps are done, and nothing of that is agreed."""
    killed_at(unite, pair, PairDirectory, "prepare")


@pytest.mark.parametrize("known", [False, True], ids=["new", "edited"])
@pytest.mark.parametrize("later", [None, "later"])
def test_a_version_that_had_arrived_comes_back_once(
    pair: Pair, unite: Unite, known: bool, later: str | None
) -> None:
    """Its user deletes the file after an interrupted run: what that run brought to the other side was never
    agreed. It is copied, even if its user wrote another version in between."""
    pair.both("other", "text")
    if known:
        pair.both("f", "old")
    unite(pair)
    (pair.left / "f").write_text("arrived")
    killed_before_agreeing(unite, pair)
    assert pair.texts("f") == ["arrived", "arrived"]
    if later is not None:
        (pair.left / "f").write_text(later)
    (pair.left / "f").unlink()
    assert unite(pair).exit is ExitCode.OK
    assert pair.texts("f") == ["arrived", "arrived"]
    (pair.left / "f").unlink()
    assert unite(pair).exit is ExitCode.OK
    assert pair.texts("f") == [None, None]


def test_a_conflict_with_what_had_arrived_ends_by_a_deletion(pair: Pair, unite: Unite) -> None:
    pair.both("f", "old")
    unite(pair)
    (pair.left / "f").write_text("arrived")
    killed_before_agreeing(unite, pair)
    (pair.left / "f").write_text("later, and longer")
    for _ in range(2):
        assert unite(pair).exit is ExitCode.CONFLICTS
        assert pair.texts("f") == ["later, and longer", "arrived"]
    (pair.left / "f").unlink()
    assert unite(pair).exit is ExitCode.OK
    assert pair.texts("f") == ["arrived", "arrived"]


@pytest.mark.parametrize("edited", [False, True], ids=["deleted", "edited, then deleted"])
def test_a_version_that_both_sides_had_never_comes_back(pair: Pair, unite: Unite, edited: bool) -> None:
    """Nothing has happened to the other side's file since the journal was written."""
    pair.both("f", "old")
    pair.both("other", "text")
    unite(pair)
    if edited:
        (pair.left / "f").write_text("edited")
        killed_at(unite, pair, Steps, "do")
        assert pair.texts("f") == ["edited", "old"]
    (pair.left / "f").unlink(missing_ok=True)
    for _ in range(2):
        killed_at(unite, pair, Steps, "do")
        assert pair.texts("f") == [None, "old"]
    assert unite(pair).exit is ExitCode.OK
    assert pair.texts("f") == [None, None]


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "written again"])
def test_a_deletion_that_was_done_stays_done(pair: Pair, unite: Unite, again: bool) -> None:
    pair.both("f", "old")
    pair.both("other", "text")
    unite(pair)
    (pair.left / "f").unlink()
    killed_before_agreeing(unite, pair)
    assert pair.texts("f") == [None, None]
    if again:
        (pair.left / "f").write_text("again")
        killed_at(unite, pair, Steps, "do")
        (pair.left / "f").unlink()
    assert unite(pair).exit is ExitCode.OK
    assert pair.texts("f") == [None, None]


def test_files_of_one_size_and_one_time_are_never_taken_for_each_other(pair: Pair, unite: Unite) -> None:
    """Their contents were never read, and after the kill nothing but their contents tells them apart."""
    pair.both("a", "one")
    pair.both("b", "two")
    unite(pair)
    (pair.left / "a").rename(pair.left / "c")
    killed_at(unite, pair, Steps, "do")
    (pair.left / "b").rename(pair.left / "a")
    for _ in range(2):
        assert unite(pair).exit is ExitCode.OK
        assert (pair.texts("a"), pair.texts("c")) == (["two", "two"], ["one", "one"])


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("change", ["edited here", "edited there", "directory renamed", "directory removed"])
def test_what_a_killed_run_left_goes_with_the_next_run(
    pair: Pair, unite: Unite, change: str, side: str
) -> None:
    """Also at a side that gets no file, and before a directory is renamed or removed."""
    here = pair.left if side == "left" else pair.right
    there = pair.right if side == "left" else pair.left
    pair.both("d/f", "text")
    pair.both("g", "text")
    unite(pair)
    for directory, name in (("", b"g"), ("d", b"f")):
        left = here / directory / os.fsdecode(temporary_name(name))
        left.write_text("half of a fi")
        left.chmod(0o600)
    match change:
        case "edited here":
            (here / "g").write_text("edited")
        case "edited there":
            (there / "g").write_text("edited")
        case "directory renamed":
            (there / "d").rename(there / "e")
            (there / "e/f").write_text("edited, too")
        case "directory removed":
            shutil.rmtree(there / "d")
    report = unite(pair)
    assert (report.exit, report.held) == (ExitCode.OK, 0)
    assert not list(here.rglob(".rdc-*.tmp"))
    assert snapshot(pair.left) == snapshot(pair.right)


@pytest.mark.parametrize("later", [None, "later"])
def test_a_new_change_time_alone_is_no_doubt(pair: Pair, unite: Unite, later: str | None) -> None:
    """What is kept for an undo is a second name of the old version, which gives that another change time."""
    pair.both("f", "old")
    pair.both("other", "text")
    unite(pair)
    (pair.left / "f").write_text("first")
    unite(pair)
    (pair.left / "f").write_text("second")
    killed_at(unite, pair, Steps, "do")
    os.link(pair.right / "f", pair.right / "kept for an undo")
    (pair.right / "kept for an undo").unlink()
    if later is None:
        (pair.left / "f").unlink()
    else:
        (pair.left / "f").write_text(later)
    assert unite(pair).exit is ExitCode.OK
    assert pair.texts("f") == [later, later]


def test_a_directory_whose_removal_was_interrupted_is_removed(pair: Pair, unite: Unite) -> None:
    for name in ("d/e/a", "d/e/b", "d/e/c", "other"):
        pair.both(name, "text")
    unite(pair)
    shutil.rmtree(pair.left / "d")
    removals = 0
    whole = Steps._remove

    def killed(self: Steps, side: int, path: bytes, row: Row) -> None:
        nonlocal removals
        removals += 1
        if removals > 2:
            raise KilledError
        whole(self, side, path, row)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Steps, "_remove", killed)
        with pytest.raises(KilledError):
            unite(pair)
    assert len(os.listdir(pair.right / "d/e")) == 1
    assert unite(pair).exit is ExitCode.OK
    assert sorted(snapshot(pair.left)) == sorted(snapshot(pair.right)) == [b"other"]
