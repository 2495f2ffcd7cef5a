"""File systems on which names that differ in letter case, or in their Unicode form, are one: nothing is lost,
and the message says what to rename."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import rdc
from rdc.errors import ExitCode
from rdc.progress import Problem
from rdc.uniting.rows import LEFT, RIGHT
from tests.end_to_end.systems.normalising_double import normalising_mounted
from tests.support.storage.limited_cases import contents
from tests.support.storage.limited_mount import Oddities, odd_mounted
from tests.uniting.remote_runs import unite_in_turns

pytestmark = pytest.mark.needs("fuse")

ONE = "its file system takes this name and '{}' for one"


@pytest.fixture
def folding(tmp_path: Path) -> Iterator[Path]:
    with odd_mounted(tmp_path / "mount", tmp_path / "behind") as mount:
        mount.become(Oddities(folds=True))
        (mount.point / "right").mkdir()
        yield mount.point / "right"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    top = tmp_path / "left"
    for name in ("Dir/x", "dir/y"):
        (top / name).parent.mkdir(parents=True)
        (top / name).write_text(name)
    for name in ("README", "readme", "fine"):
        (top / name).write_text(name)
    (top / "Link").symlink_to("here")
    (top / "link").symlink_to("there")
    return top


def united(left: Path, right: Path, dials: int | None) -> tuple[ExitCode, dict[str, str]]:
    """Return the exit code and the problems by path. `dials`: the side that dials the other one."""
    problems: dict[str, str] = {}

    def hear(event: object) -> None:
        if isinstance(event, Problem) and event.code is not ExitCode.OK:
            problems[event.path] = event.message

    if dials is None:
        report = rdc.unite(left, right, reporter=hear)
    else:
        report = unite_in_turns(left, right, rdc.UniteOptions(), hear, near=dials).report
    return report.exit, problems


def unite_names_that_differ(left: Path, folding: Path, dials: int | None) -> None:
    """Remove the names of the left side that are one with others, and unite the rest."""
    for name in ("readme", "link", "dir/y"):
        os.remove(left / name)
    os.rmdir(left / "dir")
    assert united(left, folding, dials) == (ExitCode.OK, {})


def files(top: Path) -> dict[str, bytes]:
    return {path: content for path, content in contents(top).items() if not path.startswith(".")}


@pytest.mark.parametrize("dials", [None, LEFT, RIGHT])
def test_names_that_differ_in_case_say_which_to_rename(dials: int | None, left: Path, folding: Path) -> None:
    before = files(left)
    for _ in range(2):
        code, problems = united(left, folding, dials)
        assert code is ExitCode.PARTIAL
        assert problems.keys() == {"dir", "link", "readme"}
        for path, other in (("dir", "Dir"), ("link", "Link"), ("readme", "README")):
            assert ONE.format(other) in problems[path] and "rename one of them" in problems[path]
        assert files(left) == before
        assert files(folding) == {"Dir/x": b"Dir/x", "README": b"README", "fine": b"fine"}
    for name in ("dir", "link", "readme"):
        os.rename(left / name, left / f"other {name}")
    assert united(left, folding, dials) == (ExitCode.OK, {})
    assert files(folding) == files(left)


@pytest.mark.parametrize("dials", [None, LEFT, RIGHT])
def test_a_rename_in_case_alone_is_made_at_both_sides_by_hand(
    dials: int | None, left: Path, folding: Path
) -> None:
    unite_names_that_differ(left, folding, dials)
    os.rename(left / "fine", left / "Fine")
    code, problems = united(left, folding, dials)
    assert code is ExitCode.PARTIAL
    assert ONE.format("fine") in problems["fine"] and "rename it there, too" in problems["fine"]
    assert (folding / "fine").read_bytes() == (left / "Fine").read_bytes() == b"fine"
    for new in ("passing", "Fine"):
        os.rename(folding / ("fine" if new == "passing" else "passing"), folding / new)
    assert united(left, folding, dials) == (ExitCode.OK, {})
    assert files(folding) == files(left)


@pytest.mark.parametrize("dials", [None, LEFT, RIGHT])
def test_an_agreed_name_that_somebody_gave_another_case_there(
    dials: int | None, left: Path, folding: Path
) -> None:
    """The side that folds finds the entry under its old name, too, which it does not list."""
    unite_names_that_differ(left, folding, dials)
    for old, new in (("fine", "FINE"), ("Dir", "dir")):
        os.rename(folding / old, folding / "passing")
        os.rename(folding / "passing", folding / new)
    assert united(left, folding, dials) == (ExitCode.OK, {})
    assert files(left) == files(folding) == {"dir/x": b"Dir/x", "README": b"README", "FINE": b"fine"}
    assert united(left, folding, dials) == (ExitCode.OK, {})


@pytest.mark.parametrize("preserving", [False, True])
def test_two_forms_of_a_letter(preserving: bool, tmp_path: Path) -> None:
    """A side that keeps another form than it was given has both sides keep that one, once."""
    composed, decomposed = "\u00e9", "e\u0301"
    left = tmp_path / "left"
    left.mkdir()
    (left / composed).write_text("1")
    with normalising_mounted(tmp_path / "mount", preserving=preserving) as right:
        for _ in range(3):
            assert united(left, right, None) == (ExitCode.OK, {})
        kept = composed if preserving else decomposed
        assert files(left) == files(right) == {kept: b"1"}
        other = decomposed if preserving else composed
        (left / other).write_text("2")
        code, problems = united(left, right, None)
        assert code is ExitCode.PARTIAL and problems.keys() == {other}
        assert ONE.format(repr(kept.encode())[2:-1]) in problems[other]
        assert files(left) == {kept: b"1", other: b"2"} and files(right) == {kept: b"1"}


@pytest.mark.parametrize("dials", [None, LEFT, RIGHT])
def test_two_entries_that_became_one_are_not_deleted_at_the_other_side(
    dials: int | None, left: Path, tmp_path: Path
) -> None:
    """A network share may be mounted in another way than before."""
    with odd_mounted(tmp_path / "mount", tmp_path / "behind") as mount:
        (mount.point / "right").mkdir()
        assert united(left, mount.point / "right", dials) == (ExitCode.OK, {})
        (tmp_path / "behind/right/readme").unlink()
        mount.become(Oddities(folds=True))
        before = files(left)
        for _ in range(2):
            code, problems = united(left, mount.point / "right", dials)
            assert code is ExitCode.PARTIAL and ONE.format("README") in problems["readme"]
            assert files(left) == before
