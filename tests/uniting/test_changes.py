"""What counts as a change: contents, times and permissions on real trees."""

from __future__ import annotations

import os
from typing import Any

import pytest

from rdc import (
    ExitCode,
    Prefer,
)
from rdc.uniting.plan import _Merge
from tests.uniting.pairs import Pair
from tests.uniting.real_world import every_stat


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
    visit = _Merge._visit

    def counted(self: _Merge, path: bytes, *nodes: Any) -> bool:
        seen.append(path)
        return visit(self, path, *nodes)

    monkeypatch.setattr(_Merge, "_visit", counted)
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
