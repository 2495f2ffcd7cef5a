"""setuid and setgid bits travel with owners; where owners are not kept they are dropped, for good."""

from __future__ import annotations

import os
import shutil
import stat
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.model.entries import Kind, Metadata
from rdc.model.preserved import EVERYTHING, Preserved
from rdc.model.sync import SyncOptions
from tests.support.running.beside_rsync import rdc, rsync
from tests.support.running.followed import Followed
from tests.support.running.syncing import Run, Way, run_sync
from tests.support.trees.manifests import entry, listing
from tests.support.trees.unprivileged import as_nobody, place_of_nobody

MODES = (0o4755, 0o2755, 0o6711, 0o7777, 0o1644, 0o644)
NO_OWNER = Preserved(owner=False)


@given(st.lists(st.integers(0, 0o7777), max_size=20))
def test_every_form_of_modes_loses_the_same(modes: list[int]) -> None:
    left = [mode & 0o1777 for mode in modes]
    assert [NO_OWNER.mode(mode) for mode in modes] == left
    assert [NO_OWNER.metadata(Metadata(mode, 1, 2, 3)).mode for mode in modes] == left
    assert NO_OWNER.modes_of(array("H", modes).tobytes()) == array("H", left).tobytes()
    rows = listing([entry(b"%d" % number, mode=mode) for number, mode in enumerate(modes)])
    rows_left = listing([entry(b"%d" % number, mode=mode) for number, mode in enumerate(left)])
    assert NO_OWNER.listing(rows) == rows_left
    assert NO_OWNER.announced(rows.packed()) == rows_left.packed()
    assert EVERYTHING.listing(rows) == rows
    assert EVERYTHING.announced(rows.packed()) == rows.packed()


def make(top: Path, modes: tuple[int, ...] = MODES, *, more: int = 0) -> Path:
    """A file and a directory of each mode; `more` files beside them."""
    (top / "more").mkdir(parents=True)
    for number in range(more):
        (top / "more" / str(number)).write_bytes(b"x")
    for mode in modes:
        (top / f"d{mode:o}").mkdir()
        for path in (top / f"f{mode:o}", top / f"d{mode:o}" / "f"):
            path.write_bytes(b"#!")
            path.chmod(mode)
        (top / f"d{mode:o}").chmod(mode)
    top.chmod(0o2755)
    return top


@pytest.mark.needs("rsync")
@pytest.mark.parametrize("words", [[], ["-H"], ["--chmod=u+w,o-x"]], ids=" ".join)
def test_a_run_names_the_owner_that_it_sets(words: list[str], tmp_path: Path) -> None:
    """rsync does so with -n alone: after chown(2) it looks at the entry again, and compares that with SRC."""
    source, top = make(tmp_path / "s", (0o2711, 0o6755)), make(tmp_path / "d", (0o2711, 0o6755))
    for path in (*source.rglob("*"), *top.rglob("*")):
        mode = path.stat().st_mode & 0o7777
        if path.is_relative_to(source):
            os.chown(path, 1, 1)
            path.chmod(mode)
        os.utime(path, (1, 1))
    where = [f"{source}/", f"{top}/"]
    rehearsed = rsync("-n", "-i", *words, *where)
    assert any("og..." in line for line in rehearsed[1])
    for more in (["-n"], []):
        assert rdc("-i", *more, *words, *where) == rehearsed


def modes_of(top: Path) -> dict[str, int]:
    return {
        str(path.relative_to(top)): stat.S_IMODE(os.lstat(path).st_mode) for path in (top, *top.rglob("*"))
    }


def without(modes: dict[str, int]) -> dict[str, int]:
    return {path: mode & 0o1777 for path, mode in modes.items()}


def check_settled(run: Run) -> None:
    assert (run.items, run.problems, run.done.changed) == ([], [], 0)


@pytest.mark.parametrize("way", [Way.HERE, Way.PUSH])
@pytest.mark.parametrize("checksum", [False, True], ids=["quick", "checksum"])
@pytest.mark.parametrize("more", [0, 300], ids=["listed", "by manifest"])
def test_bits_go_where_owners_are_not_kept(more: int, checksum: bool, way: Way, tmp_path: Path) -> None:
    source, here = make(tmp_path / "source", more=more), tmp_path / "here"
    here.mkdir()
    options = SyncOptions(owner=False, checksum=checksum, fsync=False)
    run_sync(source, here, options, way=way)
    assert modes_of(here) == without(modes_of(source))
    again = run_sync(source, here, options, way=way)
    check_settled(again)
    if not checksum:
        assert again.done.bytes_sent + again.done.bytes_received <= 600
    # What got the bits here, from an older run or by hand, loses them, and the code says why.
    (here / "f644").chmod(0o4644)
    (here / "f4755").chmod(0o4755)
    (here / "d2755").chmod(0o2755)
    items = run_sync(source, here, options, way=way).items
    assert sorted(line.split()[0][2:] for line in items) == ["...p....."] * 3, items
    assert modes_of(here) == without(modes_of(source))
    check_settled(run_sync(source, here, options, way=way))


def test_bits_stay_where_owners_are_kept(tmp_path: Path) -> None:
    source, here = make(tmp_path / "source", more=300), tmp_path / "here"
    options = SyncOptions(owner=True, fsync=False)
    run_sync(source, here, options)
    assert modes_of(here) == modes_of(source)
    # From one to the other and back: each run settles it.
    bare = SyncOptions(owner=False, fsync=False)
    for one, modes in ((bare, without(modes_of(source))), (options, modes_of(source))):
        run_sync(source, here, one)
        assert modes_of(here) == modes
        check_settled(run_sync(source, here, one))


def test_a_new_version_of_a_file_has_none(tmp_path: Path) -> None:
    source, here = make(tmp_path / "source"), tmp_path / "here"
    shutil.copytree(source, here)
    for mode in MODES:
        path = source / f"f{mode:o}"
        path.write_bytes(b"a new version")
        path.chmod(mode)
    run_sync(source, here, SyncOptions(owner=False, fsync=False))
    assert modes_of(here) == without(modes_of(source))


def test_a_user_without_rights_gets_none() -> None:
    with place_of_nobody() as place:

        def work() -> tuple[dict[str, int], dict[str, int], list[str]]:
            source, here = make(place / "source", (0o4755, 0o2755, 0o6711)), place / "here"
            run_sync(source, here, SyncOptions(fsync=False))
            again = run_sync(source, here, SyncOptions(fsync=False))
            return modes_of(source), modes_of(here), again.items

        source, here, items = as_nobody(work)
    assert (here, items) == (without(source), [])


def test_a_turn_of_a_watch_brings_none(tmp_path: Path) -> None:
    source, here = make(tmp_path / "source"), tmp_path / "here"
    here.mkdir()
    with Followed(source, here, SyncOptions(owner=False, fsync=False, delete=True)) as followed:
        followed.rest()
        assert modes_of(here) == without(modes_of(source))
        (source / "f644").chmod(0o4750)
        (source / "new").mkdir()
        (source / "new").chmod(0o2700)
        followed.change(b"")
        followed.change(b"", b"new")
        assert followed.problems == []
    assert modes_of(here) == without(modes_of(source))


def test_kinds_that_have_no_bits_are_as_they_were() -> None:
    rows = listing([entry(b"l", Kind.SYMLINK)])
    assert NO_OWNER.listing(rows) is rows
