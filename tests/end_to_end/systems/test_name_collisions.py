"""Destinations whose file system takes several names of the source for one."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

import pytest

from rdc.errors import ExitCode
from rdc.files.names.entry_names import names_that_are_one
from rdc.files.root.root import Root
from rdc.lean.records import replace
from rdc.limits import SMALL_MANIFEST
from rdc.model.sync import SyncOptions
from tests.end_to_end.systems.normalising_double import normalising_mounted
from tests.support.running.followed import Followed
from tests.support.running.syncing import Run, Way, run_sync
from tests.support.trees.trees import tree, write_tree

OPTIONS = SyncOptions(delete=True, fsync=False)
COMPOSED, DECOMPOSED = "é".encode(), "e\u0301".encode()
WAYS = pytest.mark.parametrize("way", list(Way))


def refused(run: Run) -> list[bytes]:
    for problem in run.problems:
        assert problem.code == ExitCode.PARTIAL
        assert "takes them for one; rename one of them" in problem.message
    assert run.done.exit == (ExitCode.PARTIAL if run.problems else ExitCode.OK)
    return sorted(problem.path_bytes for problem in run.problems)


def contents(place: Path) -> dict[str, bytes]:
    return {
        os.path.relpath(path, place): path.read_bytes() for path in sorted(place.rglob("*")) if path.is_file()
    }


@WAYS
def test_case(way: Way, tmp_path: Path, exfat: Path) -> None:
    """Neither name of a clash is written, nor anything below it; the rest is, again and again."""
    source = write_tree(
        tmp_path / "source",
        tree(
            {
                "README": b"1",
                "readme": b"22",
                "fine": b"3",
                "Dir/x": b"4",
                "dir/y": b"5",
                "d/A": b"6",
                "d/a": b"7",
            }
        ),
    )
    for _ in range(2):
        run = run_sync(source, exfat / "there", OPTIONS, way=way)
        assert refused(run) == [b"Dir", b"README", b"d/A", b"d/a", b"dir", b"readme"]
        assert contents(exfat / "there") == {"fine": b"3"}
        assert sorted(os.listdir(exfat / "there")) == ["d", "fine"]
    (source / "readme").unlink()
    (source / "d/A").rename(source / "d/b")
    run = run_sync(source, exfat / "there", OPTIONS, way=way)
    assert refused(run) == [b"Dir", b"dir"]
    assert contents(exfat / "there") == {"README": b"1", "d/a": b"7", "d/b": b"6", "fine": b"3"}


def test_what_is_there_under_the_other_name_stays(tmp_path: Path, exfat: Path) -> None:
    """Also where the source has it no more and --delete is given: it may be all there is of the file."""
    source = write_tree(tmp_path / "source", tree({"Readme": b"new", "Dir/f": b"new", "other": b"1"}))
    there = write_tree(exfat / "there", tree({"README": b"old", "dir/f": b"old", "gone": b""}))
    run = run_sync(source, there, OPTIONS)
    assert refused(run) == [b"Dir", b"Readme"]
    assert contents(there) == {"README": b"old", "dir/f": b"old", "other": b"1"}
    dry = run_sync(source, there, SyncOptions(delete=True, dry_run=True))
    assert refused(dry) == [b"Dir", b"Readme"]
    assert contents(there) == {"README": b"old", "dir/f": b"old", "other": b"1"}


def test_where_names_are_their_own_all_are_written(tmp_path: Path) -> None:
    names = [b"README", b"readme", b"a.", b"a", COMPOSED, DECOMPOSED]
    source = write_tree(tmp_path / "source", tree())
    for name in names:
        (source / os.fsdecode(name)).write_bytes(name)
    os.utime(source, ns=(5, 5))
    assert run_sync(source, tmp_path / "there", OPTIONS).problems == []
    assert sorted(os.listdir(os.fsencode(tmp_path / "there"))) == sorted(names)
    assert os.stat(tmp_path / "there").st_mtime_ns == 5


def test_a_trial_leaves_nothing(tmp_path: Path, exfat: Path) -> None:
    for place, one in ((tmp_path / "sensitive", False), (exfat / "folding", True)):
        place.mkdir()
        os.utime(place, ns=(10**18, 10**18))
        names = (b"A", b"b", b"a", b"B", b"c")
        found = names_that_are_one(Root.open(os.fsencode(place)), b"", names)
        assert found == ([[0, 2], [1, 3]] if one else [])
        assert os.listdir(place) == []
        assert os.stat(place).st_mtime_ns == 10**18
    assert names_that_are_one(Root.open(os.fsencode(tmp_path)), b"no-such", (b"A", b"a")) == []


def test_many_spellings_cost_no_more_than_as_many_names(tmp_path: Path) -> None:
    """A hostile source may choose them."""
    letters = 12
    names = [bytes(b"Aa"[number >> at & 1] for at in range(letters)) for number in range(1 << letters)]
    began = time.process_time()
    assert names_that_are_one(Root.open(os.fsencode(tmp_path)), b"", names) == []
    assert time.process_time() - began < 5
    assert os.listdir(tmp_path) == []


@pytest.mark.needs("mount")
def test_a_file_system_that_normalises(tmp_path: Path) -> None:
    wanted = {os.fsdecode(name): name for name in (COMPOSED, DECOMPOSED, b"A", b"a")}
    source = write_tree(tmp_path / "source", tree(wanted))
    with normalising_mounted(tmp_path / "normalising") as point:
        there = point / "there"
        for _ in range(2):
            run = run_sync(source, there, OPTIONS)
            assert refused(run) == sorted([COMPOSED, DECOMPOSED])
            assert contents(there) == {"A": b"A", "a": b"a"}
        assert "cannot be here beside 'e\\xcc\\x81'" in "".join(problem.message for problem in run.problems)
        (source / os.fsdecode(DECOMPOSED)).unlink()
        assert run_sync(source, there, OPTIONS).problems == []
        assert (there / os.fsdecode(DECOMPOSED)).read_bytes() == COMPOSED
        (source / os.fsdecode(COMPOSED)).write_bytes(b"newer")
        assert run_sync(source, there, OPTIONS).problems == []
        assert (there / os.fsdecode(COMPOSED)).read_bytes() == b"newer"


ACCENTED = {
    "caf\xe9": b"1",
    "\xe9t\xe9/\xe0 la": b"2",
    "\xe9t\xe9/gone": b"3",
    "\xe9t\xe9/vid\xe9/x": b"4",
    "plain": b"5",
}


@pytest.fixture
def normalising(tmp_path: Path) -> Iterator[Path]:
    with normalising_mounted(tmp_path / "normalising") as point:
        yield point


@pytest.mark.needs("mount")
@WAYS
@pytest.mark.parametrize("count", [0, SMALL_MANIFEST], ids=["by listing", "by manifest"])
def test_entries_that_a_file_system_renames_are_in_step(
    way: Way, count: int, tmp_path: Path, normalising: Path
) -> None:
    """It keeps them decomposed. A second run has nothing to do, and later ones do what any run does."""
    many = {f"m{number % 7}/f{number}": b"%d" % number for number in range(count)}
    source, there = write_tree(tmp_path / "source", tree(ACCENTED | many)), normalising / "there"

    def run(*, dry_run: bool = False) -> tuple[int, int]:
        done = run_sync(source, there, replace(OPTIONS, dry_run=dry_run), way=way)
        assert done.problems == []
        return done.done.changed, done.done.deleted

    def names(place: Path) -> dict[str, bytes]:
        return {normalize("NFC", name): data for name, data in contents(place).items()}

    run()
    assert "cafe\u0301" in os.listdir(there)
    assert names(there) == contents(source)
    assert run(dry_run=True) == run() == (0, 0)
    (source / "caf\xe9").write_bytes(b"other")
    (source / "\xe9t\xe9/gone").unlink()
    (source / "\xe9t\xe9/vid\xe9/x").write_bytes(b"new")
    os.utime(source / "\xe9t\xe9", ns=(10**18, 10**18))
    assert run(dry_run=True) == run()
    assert names(there) == contents(source)
    assert run() == (0, 0)
    shutil.rmtree(source / "\xe9t\xe9")
    (source / "caf\xe9").rename(source / "\xe0 part")
    run()
    assert names(there) == contents(source)
    assert len(os.listdir(there)) == len(os.listdir(source))


@pytest.mark.needs("mount")
def test_a_watch_keeps_such_entries_in_step(tmp_path: Path, normalising: Path) -> None:
    source, there = write_tree(tmp_path / "source", tree(ACCENTED)), normalising / "there"
    with Followed(source, there, OPTIONS) as followed:
        followed.rest()
        (source / "caf\xe9").unlink()
        (source / "\xe9t\xe9/\xe0 la").write_bytes(b"newer")
        os.utime(source / "\xe9t\xe9/\xe0 la", ns=(10**18, 10**18))
        followed.change(b"", "\xe9t\xe9".encode())
        assert followed.problems == []
        expected = {normalize("NFD", name): data for name, data in contents(source).items()}
        assert contents(there) == expected


@pytest.mark.needs("mount")
def test_an_entry_that_was_given_the_other_form_stays(tmp_path: Path) -> None:
    """Where names are kept as given, it is somebody else's, as with another case."""
    source = write_tree(tmp_path / "source", tree({os.fsdecode(COMPOSED): b"new", "a": b"1"}))
    with normalising_mounted(tmp_path / "preserving", preserving=True) as point:
        there = write_tree(point / "there", tree({os.fsdecode(DECOMPOSED): b"old"}))
        assert refused(run_sync(source, there, OPTIONS)) == [COMPOSED]
        assert contents(there) == {os.fsdecode(DECOMPOSED): b"old", "a": b"1"}
        assert sorted(os.listdir(there)) == ["a", os.fsdecode(DECOMPOSED)]


def test_in_a_large_tree(tmp_path: Path, exfat: Path) -> None:
    """Which is compared by its manifest."""
    many = {f"d{number % 9}/f{number}": b"%d" % number for number in range(SMALL_MANIFEST + 1)}
    wanted = many | {"d1/F1": b"clash", "Dir/f": b"1", "dir/f": b"2"}
    source, there = write_tree(tmp_path / "source", tree(wanted)), write_tree(exfat / "there", tree(many))
    for _ in range(2):
        run = run_sync(source, there, OPTIONS)
        assert refused(run) == [b"Dir", b"d1/F1", b"d1/f1", b"dir"]
        assert contents(there) == many
