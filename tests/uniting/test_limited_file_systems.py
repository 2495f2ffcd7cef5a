"""Whatever the file system of one side keeps: contents and deletions arrive, a second run is idle, and
nothing that one side cannot keep changes at the other one."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

import rdc
from rdc.catalog.catalog import Catalog
from rdc.errors import ExitCode
from rdc.progress import Problem
from rdc.uniting.rows import LEFT, RIGHT
from tests.support.storage.limited_cases import (
    CASES,
    MOST_LINES,
    State,
    contents,
    state,
    write_source,
)
from tests.support.storage.limited_mount import OddMount, odd_mounted
from tests.uniting.remote_runs import unite_in_turns

pytestmark = pytest.mark.needs("fuse")

LOCKLESS = "flock"
WITHOUT_UNDO = {"O_EXCL EINVAL", "O_EXCL EOPNOTSUPP", "one after the other"}
"""Where rdc.undo has no journal, and says so: these are united with --no-undo."""


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[OddMount]:
    """A mount of its own: the kernel never asks again for a call that failed with ENOSYS."""
    with odd_mounted(tmp_path / "mount", tmp_path / "behind") as found:
        yield found


@pytest.fixture(autouse=True)
def catalog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDC_CATALOG", str(tmp_path / "catalog"))


def entries(top: Path) -> State:
    """The user's entries, but for the times of directories, which take no part."""
    return {
        path: (mode, uid, gid, 0 if stat.S_ISDIR(mode) else mtime, content)
        for path, (mode, uid, gid, mtime, content) in state(top).items()
        if not path.startswith(".")
    }


def files(top: Path) -> dict[str, bytes]:
    return {path: content for path, content in contents(top).items() if not path.startswith(".")}


class Sides:
    """Two directories, of which the right one is on an odd mount."""

    def __init__(
        self, left: Path, right: Path, options: rdc.UniteOptions | None = None, dials: int | None = None
    ) -> None:
        """`dials`: the side that dials the other one; None: both are on one machine."""
        self.left, self.right, self.dials = left, right, dials
        self.options = options or rdc.UniteOptions()
        self.problems: list[Problem] = []
        right.mkdir(exist_ok=True)

    def unite(self) -> rdc.UniteReport:
        self.problems = []

        def hear(event: object) -> None:
            if isinstance(event, Problem):
                self.problems.append(event)

        if self.dials is None:
            report = rdc.unite(self.left, self.right, self.options, reporter=hear)
        else:
            catalog = Catalog(os.environ["RDC_CATALOG"])
            report = unite_in_turns(
                self.left, self.right, self.options, hear, near=self.dials, catalog=catalog
            ).report
        assert len(self.problems) <= MOST_LINES + 2, self.problems
        assert report.conflicts == 0
        assert files(self.left) == files(self.right)
        return report

    def assert_idle(self, mount: OddMount) -> None:
        """A run changes nothing, but for its lock."""
        before, kept = mount.count(), entries(self.left)
        report = self.unite()
        assert (report.left, report.right, report.exit) == (0, 0, ExitCode.OK)
        assert self.problems == []
        assert mount.count() - before <= 2
        assert entries(self.left) == kept


@pytest.mark.sampled(5)
@pytest.mark.parametrize("name", [name for name in CASES if name != LOCKLESS])
def test_edits_of_both_sides_and_nothing_else(name: str, mount: OddMount, tmp_path: Path) -> None:
    check_edits(name, mount, tmp_path, None)


@pytest.mark.sampled(14)
@pytest.mark.parametrize("dials", [LEFT, RIGHT])
@pytest.mark.parametrize("name", [name for name in CASES if name != LOCKLESS])
def test_between_machines(name: str, dials: int, mount: OddMount, tmp_path: Path) -> None:
    check_edits(name, mount, tmp_path, dials)


def check_edits(name: str, mount: OddMount, tmp_path: Path, dials: int | None) -> None:
    options = rdc.UniteOptions(keep_undo=None) if name in WITHOUT_UNDO else None
    sides = Sides(write_source(tmp_path / "left"), mount.point / "right", options, dials)
    mount.become(CASES[name])
    before = entries(sides.left)
    sides.unite()
    assert entries(sides.left) == before
    sides.assert_idle(mount)
    (sides.left / "a").write_bytes(b"edited here")
    (sides.left / "new").write_bytes(b"new")
    (sides.right / "big").write_bytes(b"edited there")
    (sides.right / "d/e/deep").unlink()
    before = entries(sides.left)
    sides.unite()
    assert files(sides.left)["big"] == b"edited there"
    assert files(sides.right)["a"] == b"edited here"
    assert "d/e/deep" not in files(sides.left)
    after = entries(sides.left)
    assert {path for path in before if before[path] != after.get(path)} == {"big", "d/e/deep"}
    assert after["big"][0] == before["big"][0]
    sides.assert_idle(mount)


@pytest.mark.parametrize("name", ["FAT", "0777", "2 s", "an object store"])
def test_a_first_meeting_with_a_copy(name: str, mount: OddMount, tmp_path: Path) -> None:
    """The copy was made by other means: nothing is a conflict, and nothing is written to either tree."""
    left, right = write_source(tmp_path / "left"), mount.point / "right"
    mount.become(CASES[name])
    rdc.sync(f"{left}/", right)
    before, copied = entries(left), entries(right)
    sides = Sides(left, right)
    report = sides.unite()
    assert (report.left, report.right) == (0, 0)
    assert (entries(left), entries(right)) == (before, copied)
    sides.assert_idle(mount)


def test_without_hard_links_nothing_is_kept_for_an_undo(mount: OddMount, tmp_path: Path) -> None:
    """It is said, and only where something would have been kept."""
    sides = Sides(write_source(tmp_path / "left"), mount.point / "right")
    mount.become(CASES["FAT"])
    sides.unite()
    (sides.left / "a").write_bytes(b"other")
    sides.unite()
    text = f"{sides.right}: its file system has no hard links: nothing is kept for rdc undo there"
    assert text in [problem.message for problem in sides.problems]
    assert not os.path.lexists(sides.right / ".rdc-undo")


def test_a_file_system_without_locks_is_refused(mount: OddMount, tmp_path: Path) -> None:
    sides = Sides(write_source(tmp_path / "left"), mount.point / "right")
    mount.become(CASES[LOCKLESS])
    with pytest.raises(rdc.RdcError, match=r"cannot lock it: .* needs a file system with locks"):
        sides.unite()
    assert files(sides.right) == {}
