"""`--merge` in runs, here and with another machine: what is merged, kept, taken back and left."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

import rdc
from rdc.errors import ExitCode
from rdc.model.location import RemoteShell
from rdc.uniting import merged_texts
from rdc.uniting.merging import TEXT_BYTES
from rdc.uniting.records import Prefer
from tests.support.running.syncing import FAR
from tests.uniting.pairs import Pair

BASE = "".join(f"line {number}\n" for number in range(20))
LEFT = BASE.replace("line 3\n", "the left 3\n")
RIGHT = BASE.replace("line 13\n", "right side 13\n")
BOTH = LEFT.replace("line 13\n", "right side 13\n")


class FarPair(Pair):
    """The right directory is on another machine, as far as rdc knows."""

    def unite(self, **options: Any) -> rdc.UniteReport:
        self.events = []
        shell = RemoteShell(("sh", "-c", 'shift; exec "$@"', "sh"), FAR)
        return rdc.unite(
            self.left, f"far:{self.right}", shell=shell, reporter=self.events.append, fsync=False, **options
        )


@pytest.fixture(params=[Pair, FarPair], ids=["here", "far"])
def torn(request: pytest.FixtureRequest, tmp_path: Path) -> Pair:
    """A text that both sides edited since a run that kept it."""
    pair: Pair = request.param(tmp_path)
    pair.both("text", BASE)
    pair.unite(merge=True)
    (pair.left / "text").write_text(LEFT)
    (pair.right / "text").write_text(RIGHT)
    return pair


def test_edits_apart_are_merged_at_both_sides_and_undone_at_each(torn: Pair) -> None:
    report = torn.unite(merge=True)
    assert torn.texts("text") == [BOTH] * 2
    assert (report.exit, report.left, report.right, torn.conflicts()) == (ExitCode.OK, 1, 1, [])
    assert torn.items() == [("left", "merged", b"text"), ("right", "edited", b"text")]
    again = torn.unite(merge=True)
    assert (again.left, again.right, torn.items()) == (0, 0, [])
    rdc.undo(torn.left)
    rdc.undo(torn.right)
    assert torn.texts("text") == [LEFT, RIGHT]


def test_a_merged_text_keeps_its_attributes_and_its_acl(pair: Pair) -> None:
    """An ACL of one named user, whose mask is more than the group has."""
    entries = [(1, 6, -1), (2, 6, 77), (4, 0, -1), (16, 6, -1), (32, 0, -1)]
    acl = struct.pack("<I", 2) + b"".join([struct.pack("<HHi", *entry) for entry in entries])
    pair.both("text", BASE)
    values = {"user.tag": b"1", "system.posix_acl_access": acl}
    for side in (pair.left, pair.right):
        for name, value in values.items():
            os.setxattr(side / "text", name, value)
    options = {"merge": True, "xattrs": True, "acls": True}
    pair.unite(**options)
    (pair.left / "text").write_text(LEFT)
    (pair.right / "text").write_text(RIGHT)
    assert pair.unite(**options).exit is ExitCode.OK
    for side in (pair.left, pair.right):
        assert (side / "text").read_text() == BOTH
        assert {name: os.getxattr(side / "text", name) for name in os.listxattr(side / "text")} == values


def test_without_the_option_or_a_text_in_common_it_stays_a_conflict(torn: Pair) -> None:
    assert torn.unite().exit is ExitCode.CONFLICTS
    for name in os.listdir(torn.left / ".rdc-unite"):
        for path in (torn.left / ".rdc-unite" / name).glob("base-*"):
            path.write_bytes(path.read_bytes()[:-1] + b"x")
    assert torn.unite(merge=True).exit is ExitCode.CONFLICTS, "a damaged text is none"
    assert torn.conflicts() == [b"text"]
    assert torn.texts("text") == [LEFT, RIGHT]


def test_edits_of_the_same_line_stay_a_conflict_that_prefer_solves(torn: Pair) -> None:
    (torn.right / "text").write_text(BASE.replace("line 3\n", "right 3\n"))
    assert torn.unite(merge=True).exit is ExitCode.CONFLICTS
    assert torn.conflicts() == [b"text"]
    report = torn.unite(merge=True, prefer=Prefer.RIGHT)
    assert (report.exit, torn.conflicts()) == (ExitCode.OK, [])
    assert torn.texts("text")[0] == BASE.replace("line 3\n", "right 3\n")


def test_a_merge_comes_before_prefer(torn: Pair) -> None:
    torn.unite(merge=True, prefer=Prefer.LEFT)
    assert torn.texts("text") == [BOTH] * 2


def test_a_kill_between_the_two_runs_is_finished_by_the_next(
    torn: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = merged_texts.Merging._merge

    def killed(self: merged_texts.Merging, *given: Any) -> None:
        whole(self, *given)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(merged_texts.Merging, "_merge", killed)
        with pytest.raises(KeyboardInterrupt):
            torn.unite(merge=True)
    assert torn.texts("text") == [BOTH, RIGHT]
    assert torn.unite(merge=True).exit is ExitCode.OK
    assert torn.texts("text") == [BOTH] * 2


def test_an_edit_meanwhile_is_never_replaced(torn: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = merged_texts.Merging._merge

    def edited(self: merged_texts.Merging, *given: Any) -> None:
        whole(self, *given)
        (torn.right / "text").write_text("edited meanwhile\n")

    monkeypatch.setattr(merged_texts.Merging, "_merge", edited)
    assert torn.unite(merge=True).exit is ExitCode.CONFLICTS
    assert torn.texts("text") == [BOTH, "edited meanwhile\n"]


def test_a_dry_run_merges_and_keeps_nothing(torn: Pair) -> None:
    report = torn.unite(merge=True, dry_run=True)
    assert (report.exit, torn.texts("text")) == (ExitCode.CONFLICTS, [LEFT, RIGHT])


def kept(pair: Pair) -> list[int]:
    return sorted(path.stat().st_size for path in (pair.left / ".rdc-unite").glob("*/base-*"))


def test_the_texts_that_changed_last_are_kept_within_the_bound(pair: Pair) -> None:
    for number in range(1, 6):
        pair.both(f"f{number}", "x" * number)
        for side in (pair.left, pair.right):
            os.utime(side / f"f{number}", ns=(0, number * 10**9 + 123))
    (pair.left / "binary").write_bytes(b"\0")
    (pair.left / "long").write_bytes(b"a" * (TEXT_BYTES + 1))
    pair.unite(merge=True)
    assert kept(pair) == [16 + number for number in range(1, 6)]
    (state,) = (pair.left / ".rdc-unite").glob("*/")
    assert state.stat().st_mode & 0o777 == 0o700
    before = [path.stat() for path in sorted(state.iterdir())]
    pair.unite(merge=True)
    assert [path.stat() for path in sorted(state.iterdir())] == before, "a run without changes writes nothing"
    pair.unite(merge=True, keep_base=45)
    assert kept(pair) == [20, 21]
    pair.unite(merge=True, keep_base=0)
    assert kept(pair) == []
    pair.unite(merge=True)
    rdc.forget_united(pair.left, pair.right)
    assert not list((pair.left / ".rdc-unite").glob("*/"))


def test_a_text_in_a_renamed_directory_is_merged_where_it_is_now(torn: Pair) -> None:
    torn.both("d/text", BASE)
    torn.unite(merge=True)
    (torn.left / "d").rename(torn.left / "D")
    (torn.left / "D" / "text").write_text(LEFT)
    (torn.right / "d" / "text").write_text(RIGHT)
    assert torn.unite(merge=True).exit is ExitCode.OK
    assert torn.texts("D/text") == [BOTH] * 2
    assert not (torn.right / "d").exists()
