"""What counts as a change: contents, times and permissions on real trees."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import rdc
from rdc import (
    ExitCode,
    Prefer,
)
from rdc.files.root.root import Root
from rdc.uniting.plan import Merge
from rdc.uniting.rows import LEFT, RIGHT, TICK_NS, clock_of
from tests.uniting.pairs import QUICK, Machines, Pair
from tests.uniting.real_world import every_stat
from tests.uniting.remote_runs import unite_in_turns


@pytest.mark.parametrize("near", [None, 0, 1], ids=["local", "left dials", "right dials"])
def test_new_files_of_one_size_and_time_are_read_after_the_first_run(pair: Pair, near: int | None) -> None:
    """Two users who write at one moment get the same time."""
    pair.both("stays", "s")
    pair.unite()
    for side, text in ((pair.left, "one"), (pair.right, "two")):
        for name in ("f", "g"):
            (side / name).write_text(text if name == "f" else "same")
            os.utime(side / name, ns=(6_000_000_123, 6_000_000_123))
    if near is None:
        report = pair.unite()
    else:
        pair.events = []
        report = unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=near).report
    assert (report.exit, pair.conflicts()) == (ExitCode.CONFLICTS, [b"f"])


class SkewedTime:
    """The module time of a machine whose clock differs from that of the file systems."""

    def __init__(self, ahead_ns: int) -> None:
        self._ahead_ns = ahead_ns

    def time_ns(self) -> int:
        return time.time_ns() + self._ahead_ns

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)


@pytest.mark.parametrize("near", [None, 0, 1], ids=["local", "left dials", "right dials"])
@pytest.mark.parametrize("days", [-5, 5])
def test_the_clock_of_a_file_system_may_be_days_off(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, days: int, near: int | None
) -> None:
    for module in ("describe", "state"):
        monkeypatch.setattr(f"rdc.uniting.{module}.time", SkewedTime(days * 86_400 * 10**9))

    def unite() -> rdc.UniteReport:
        if near is None:
            return pair.unite()
        pair.events = []
        return unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=near).report

    for name in ("f", "g"):
        pair.both(name, "text")
    unite()
    (pair.left / "f").write_text("text of the same day")
    (pair.right / "g").write_text("TEXT")
    assert unite().exit is ExitCode.OK
    assert (pair.texts("f"), pair.texts("g")) == (["text of the same day"] * 2, ["TEXT"] * 2)
    before = [every_stat(side) for side in (pair.left, pair.right)]
    unite()
    assert [every_stat(side) for side in (pair.left, pair.right)] == before


@given(
    st.integers(0, 1 << 60), st.integers(-(1 << 60), 1 << 60), st.sampled_from([4_000_000, 2_000_000_000]),
    st.integers(0, 30_000_000), st.integers(0, 1 << 40),
)  # fmt: skip
def test_what_a_clock_calls_settled_gets_another_change_time(
    began: int, ahead: int, step: int, took: int, later: int
) -> None:
    """`step`: what the file system rounds its times down to. A change `later` has no time that is settled by
    then."""
    assume(not -2 * TICK_NS - took < ahead < 0 or step > TICK_NS)  # it may be the process's own clock
    kept = (began + took // 2 + ahead) // step * step
    clock = clock_of(kept, began, began + took)
    at = began + took + later
    assert (at + ahead) // step * step > clock.now(at) - clock.tick_ns - 1


def test_a_touched_file_is_not_an_edit(pair: Pair) -> None:
    (pair.left / "f").write_text("text")
    pair.unite()
    os.utime(pair.left / "f", (50, 50))
    (pair.right / "f").write_text("edited")
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("f") == ["edited", "edited"]


def test_the_same_edit_at_both_sides_is_agreed_also_below_a_renamed_directory(pair: Pair) -> None:
    for name in ("old/a", "old/b", "r/.git/x", "r/.git/y"):
        pair.both(name, "of both")
    pair.unite()
    for number, side in enumerate((pair.left, pair.right)):
        for name in ("old/a", "r/.git/x"):
            (side / name).write_text("edited")
            os.utime(side / name, ns=(6_000_000_000 + number, 6_000_000_000 + number))
    (pair.right / "old").rename(pair.right / "new")
    report = pair.unite()
    assert (report.exit, pair.conflicts()) == (ExitCode.OK, [])
    assert pair.texts("new/a") == pair.texts("r/.git/x") == ["edited", "edited"]
    assert pair.texts("old/a") == [None, None]


@pytest.mark.parametrize("edit", ["none", "another name", "the old name"])
def test_a_rename_of_a_file_with_a_common_time_is_checked_by_content(pair: Pair, edit: str) -> None:
    """A time of whole seconds may be one that a program sets to all files, and an inode number that of a
    file that is gone."""
    pair.both("a", "one")
    for side in (pair.left, pair.right):
        os.utime(side / "a", ns=(5_000_000_000, 5_000_000_000))
    pair.unite()
    (pair.right / "a").rename(pair.right / "b")
    if edit == "another name":
        (pair.right / "b").write_text("two")
        os.utime(pair.right / "b", ns=(5_000_000_000, 5_000_000_000))
    elif edit == "the old name":
        (pair.left / "a").write_text("edited")
    report = pair.unite()
    if edit == "the old name":
        # Nothing proves that b is what a was.
        assert (report.exit, pair.conflicts()) == (ExitCode.CONFLICTS, [b"b"])
        assert pair.texts("b") == ["edited", "one"]
    else:
        assert report.exit is ExitCode.OK
        assert pair.texts("b") == ["two" if edit == "another name" else "one"] * 2
        assert pair.texts("a") == [None, None]


@pytest.mark.parametrize("way", ["here", "left dials", "right dials"])
@pytest.mark.parametrize("first", ["rename", "edit"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("is_known", [False, True])
def test_an_edit_that_kept_size_and_time_of_a_renamed_file_arrives(
    tmp_path: Path, way: str, first: str, side: str, *, is_known: bool
) -> None:
    """Programs that write tags into photos and music do that, and rename the file by them."""
    pair = Pair(tmp_path) if way == "here" else Machines(tmp_path)
    if isinstance(pair, Machines):
        pair.near = LEFT if way == "left dials" else RIGHT
    pair.both("stays", "stays")
    if is_known:
        pair.unite()
        (pair.left / "song").write_text("1234")
    else:
        pair.both("song", "1234")
    pair.unite()
    top = tmp_path / side
    before = (top / "song").stat()
    assert before.st_mtime_ns % 1_000_000_000
    if first == "rename":
        (top / "song").rename(top / "named")
    name = "named" if first == "rename" else "song"
    (top / name).write_text("5678")
    os.utime(top / name, ns=(before.st_atime_ns, before.st_mtime_ns))
    if first == "edit":
        (top / "song").rename(top / "named")
    assert pair.unite().exit is ExitCode.OK
    assert (pair.texts("song"), pair.texts("named")) == ([None, None], ["5678", "5678"])
    last = pair.unite()
    assert (last.exit, last.left, last.right) == (ExitCode.OK, 0, 0)


def test_a_run_without_changes_takes_no_step_for_each_entry(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a side may have, its walk gives the digest that its state has."""
    for name in ("a", "d/e/f", "d/g", "z/ö"):
        pair.both(name, "text")
    (pair.left / "d/link").symlink_to("../a")
    (pair.left / "empty").mkdir()
    (pair.left / "d/g").chmod(0o600)
    pair.unite()
    (pair.right / "d/e").rename(pair.right / "moved")
    (pair.left / "a").write_text("edited")
    pair.unite()
    before = every_stat(pair.left), every_stat(pair.right)

    def fail(*_: object) -> None:
        raise AssertionError("an entry was looked at by itself")

    monkeypatch.setattr("rdc.uniting.describe.Listing._add", fail)
    report = pair.unite()
    assert (report.entries, report.left, report.right, report.exit) == (9, 0, 0, ExitCode.OK)
    assert (every_stat(pair.left), every_stat(pair.right)) == before
    os.utime(pair.right / "empty")  # times of directories take no part
    pair.unite()
    os.utime(pair.right / "d/link", follow_symlinks=False)
    with pytest.raises(AssertionError, match="by itself"):
        pair.unite()


def test_a_run_without_conflicts_decides_each_path_once(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bytes] = []
    visit = Merge._visit

    def counted(self: Merge, path: bytes, *nodes: Any) -> bool:
        seen.append(path)
        return visit(self, path, *nodes)

    monkeypatch.setattr(Merge, "_visit", counted)
    for name in ("a", "d/b", "d/e/c"):
        pair.both(name, "text")
        os.chmod(pair.left / name, 0o600)
    pair.unite()
    assert sorted(seen) == [b"a", b"d", b"d/b", b"d/e", b"d/e/c"]


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


def test_new_permissions_hide_no_edit_that_keeps_size_and_time(pair: Pair) -> None:
    pair.both("a", "one")
    pair.unite()
    (pair.left / "a").write_text("two")
    (pair.left / "a").chmod(0o600)
    os.utime(pair.left / "a", ns=(5_000_000_123, 5_000_000_123))
    pair.unite()
    assert pair.texts("a") == ["two", "two"]
    assert (pair.right / "a").stat().st_mode & 0o777 == 0o600


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


@pytest.mark.parametrize("taken", [False, True])
def test_a_replaced_file_below_a_renamed_directory_is_no_edit(pair: Pair, taken: bool) -> None:
    """An editor that saves a file without a change, and a restore, leave the old content in another inode.

    `taken`: the new name was that of another directory with the same names, which was renamed before.
    """
    for name in ("edited", "gone", "a", "b"):
        pair.both(f"old/{name}", "text")
        pair.both(f"{'new' if taken else 'other'}/{name}", "another text")
    pair.unite(checksum=True)
    for name in ("edited", "gone"):
        (pair.left / "file").write_text("text")
        (pair.left / "file").rename(pair.left / "old" / name)
    if taken:
        (pair.left / "new").rename(pair.left / "other")
    (pair.left / "old").rename(pair.left / "new")
    (pair.right / "old/edited").write_text("a longer text")
    (pair.right / "old/gone").unlink()
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("new/edited") == ["a longer text"] * 2
    assert pair.texts("new/gone") == [None, None]
    assert pair.texts("other/gone") == ["another text"] * 2
    assert pair.unite().exit is ExitCode.OK
    assert pair.items() == []


@pytest.mark.parametrize("what", ["time", "permissions", "content", "directory"])
def test_what_somebody_sets_right_after_a_step_is_a_change_of_his(
    pair: Pair, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Between the call that sets times or permissions and the look at them nothing is locked."""
    pair.both("f", "text")
    pair.both("d/g", "text")
    pair.unite(checksum=True)
    name = "d" if what == "directory" else "f"
    if name == "d":
        (pair.left / name).chmod(0o711)
    else:
        os.utime(pair.left / name, ns=(6_000_000_123, 6_000_000_123))
    whole = Root.set_metadata

    def set_metadata(self: Root, path: bytes, *words: Any, **more: Any) -> None:
        whole(self, path, *words, **more)
        at = pair.right / os.fsdecode(path)
        if what == "time":
            os.utime(at, ns=(7_000_000_456, 7_000_000_456))
        elif what == "content":
            at.write_text("TEXT")
        else:
            at.chmod(0o700)

    with monkeypatch.context() as patch:
        patch.setattr(Root, "set_metadata", set_metadata)
        pair.unite()
    pair.unite()
    assert pair.unite().exit is ExitCode.OK
    assert pair.items() == []
    shown = [(side / name).stat() for side in (pair.left, pair.right)]
    assert len({(each.st_mode, each.st_mtime_ns * (name == "f")) for each in shown}) == 1
    assert pair.texts("f") == (["TEXT"] * 2 if what == "content" else ["text"] * 2)
    if what in ("permissions", "directory"):
        assert shown[0].st_mode & 0o777 == 0o700
