"""What is kept between runs: undo, lost, copied and foreign state, pairs of one directory."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

import rdc
from rdc import (
    ExitCode,
    KeepUndo,
    Prefer,
    RdcError,
)
from rdc.lean.records import replace
from rdc.model.preserved import END_NS
from rdc.uniting.ancestor_file import decode, encode
from rdc.uniting.rows import LEFT, RIGHT
from rdc.uniting.run import forget_place
from tests.uniting.pairs import QUICK, Machines, Pair
from tests.uniting.real_world import snapshot
from tests.uniting.remote_runs import unite_in_turns


def test_undo_at_one_side_is_never_repeated_at_the_other(pair: Pair) -> None:
    for name in ("edited", "deleted", "stays"):
        pair.both(name, "old")
    pair.unite()
    (pair.left / "edited").write_text("newer")
    (pair.left / "deleted").unlink()
    (pair.left / "made").write_text("made")
    pair.unite()
    assert rdc.undo(pair.right).left_alone == 0
    assert [pair.texts(name)[1] for name in ("edited", "deleted", "made")] == ["old", "old", None]
    assert pair.unite().exit is ExitCode.CONFLICTS
    assert pair.conflicts() == [b"edited"]
    assert pair.texts("deleted") == ["old", "old"]
    assert pair.texts("made") == ["made", "made"]


def test_undo_at_both_sides_decides_nothing(pair: Pair) -> None:
    pair.both("f", "old")
    pair.both("g", "old")
    pair.unite()
    (pair.left / "f").write_text("newer")
    (pair.right / "g").write_text("newer")
    pair.unite()
    rdc.undo(pair.left)
    rdc.undo(pair.right)
    assert (pair.texts("f"), pair.texts("g")) == (["newer", "old"], ["old", "newer"])
    pair.unite()
    assert pair.conflicts() == [b"f", b"g"]


def test_what_a_run_replaces_can_be_brought_back(pair: Pair) -> None:
    pair.both("f", "old")
    pair.unite()
    (pair.left / "f").write_text("newer")
    pair.unite(keep_undo=KeepUndo(days=1))
    assert pair.texts("f") == ["newer", "newer"]
    assert rdc.undo(pair.right).restored == 1
    assert pair.texts("f") == ["newer", "old"]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("what", ["lost", "damaged", "copied", "foreign file"])
def test_a_state_that_is_worth_nothing_deletes_nothing(
    pair: Pair, what: str, side: str, tmp_path: Path
) -> None:
    pair.both("a", "a")
    pair.both("b", "b")
    pair.unite()
    (pair.left / "a").unlink()
    (pair.right / "b").write_text("edited")
    top: Path = getattr(pair, side)
    (ancestor,) = top.glob(".rdc-unite/*/ancestor")
    if what == "lost":
        shutil.rmtree(top / ".rdc-unite")
    elif what == "damaged":
        data = bytearray(ancestor.read_bytes())
        data[len(data) // 2] ^= 4
        ancestor.write_bytes(data)
    elif what == "foreign file":
        ancestor.chmod(0o666)
    else:
        # The first one stays: ext4 would give the inode number of a removed directory to the next one.
        top.rename(tmp_path / "before")
        shutil.copytree(tmp_path / "before", top)
    report = pair.unite()
    assert report.exit is ExitCode.CONFLICTS
    assert pair.texts("a") == ["a", "a"]
    assert pair.texts("b") == ["b", "edited"]
    assert pair.unite(prefer=Prefer.RIGHT).exit is ExitCode.OK


def spoil(rows: str, ancestor: Path) -> None:
    """Put rows that no tree has into an ancestor. Its digest fits, and both sides' may be spoilt alike."""
    found = decode(ancestor.read_bytes())
    paths, shared, stamps = list(found.paths), list(found.rows), list(found.stamps)
    match rows:
        case "unsorted":
            paths.reverse()
        case "an entry below a file":
            paths[-1] = b"a/f"
            paths.sort()
        case "a reserved name":
            paths[0] = b".rdc-unite"
        case "a long name":
            paths[-1] = b"x" * 256
        case "a mode":
            shared[0] = replace(shared[0], mode=0o7777)
        case "a mode of its own":
            stamps[0] = stamps[0]._replace(mode=0xFFFF)
        case "a directory with content":
            shared[paths.index(b"d")] = replace(shared[paths.index(b"d")], digest=bytes(16))
    ancestor.write_bytes(encode(found.head, paths, shared, stamps))


@pytest.mark.parametrize("way", [None, 0, 1], ids=["local", "left dials", "right dials"])
@pytest.mark.parametrize(
    "rows",
    [
        "unsorted", "an entry below a file", "a reserved name", "a long name", "a mode", "a mode of its own",
        "a directory with content",
    ],
)  # fmt: skip
def test_impossible_rows_are_damage_like_any_other(pair: Pair, rows: str, way: int | None) -> None:
    def unite() -> rdc.UniteReport:
        if way is None:
            return pair.unite()
        pair.events = []
        return unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=way).report

    for name in ("a", "b", "d/f"):
        pair.both(name, name)
    unite()
    (pair.left / "a").unlink()
    (pair.right / "b").write_text("edited")
    both = [top / ".rdc-unite" for top in (pair.left, pair.right)]
    for state in both[: 1 if rows == "a mode of its own" else 2]:
        spoil(rows, *state.glob("*/ancestor"))
    assert unite().exit is ExitCode.CONFLICTS
    (notice,) = pair.notices()
    assert "damaged" in notice
    assert "nothing is deleted" in notice
    assert pair.texts("a") == ["a", "a"]
    assert pair.texts("b") == ["b", "edited"]
    report = unite()
    assert (report.first, pair.notices()) == (False, [])
    for state in both:
        spoil(rows, *state.glob("*/ancestor"))
    assert rdc.forget_united(pair.left, pair.right) == 2
    assert unite().first
    assert "first time" in pair.notices()[0]


@pytest.mark.parametrize("way", [None, 0, 1], ids=["local", "left dials", "right dials"])
@pytest.mark.parametrize("content", [b"", b"RDCROOT\x01 cut", b"RDCROOT\x01" + bytes(36)])
@pytest.mark.parametrize("side", [0, 1])
def test_a_damaged_id_is_named(pair: Pair, way: int | None, content: bytes, side: int) -> None:
    """The pair has lost its ancestor with it: this is no first time, though it goes on like one."""

    def unite() -> rdc.UniteReport:
        if way is None:
            return pair.unite()
        pair.events = []
        return unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=way).report

    pair.both("a", "a")
    (pair.left / "b").write_text("b")
    unite()
    (pair.left / "b").unlink()
    ((pair.left, pair.right)[side] / ".rdc-unite" / "root").write_bytes(content)
    assert unite().exit is ExitCode.OK
    (notice,) = pair.notices()
    assert "damaged" in notice and "nothing is deleted" in notice
    assert way == 1 - side or ".rdc-unite/root: damaged: expected the id of the directory" in notice
    assert pair.texts("b") == ["b", "b"]
    assert unite().first is False
    assert pair.notices() == []


@pytest.mark.parametrize("way", [None, 0, 1], ids=["local", "left dials", "right dials"])
@pytest.mark.parametrize("prefer", [None, Prefer.LEFT])
def test_a_distant_time_that_no_file_has_any_more_stops_no_run(
    pair: Pair, way: int | None, prefer: Prefer | None
) -> None:
    """Of a time after 2261 an ancestor has a stamp, and only a file that has the time says which it is."""

    def unite(**options: Any) -> rdc.UniteReport:
        if way is None:
            return pair.unite(**options)
        chosen = replace(QUICK, **options)
        return unite_in_turns(pair.left, pair.right, chosen, pair.events.append, near=way).report

    for name in ("touched", "edited"):
        pair.both(name, name)
    unite()
    for top in (pair.left, pair.right):
        (ancestor,) = top.glob(".rdc-unite/*/ancestor")
        found = decode(ancestor.read_bytes())
        rows = [replace(row, mtime_ns=END_NS + 77) for row in found.rows]
        ancestor.write_bytes(encode(found.head, found.paths, rows, found.stamps))
    os.utime(pair.right / "touched", ns=(7_000_000_123, 7_000_000_123))
    (pair.left / "edited").chmod(0o600)
    if prefer is not None:
        (pair.right / "edited").write_text("edited, and longer")
    assert unite(prefer=prefer).exit is ExitCode.OK
    assert snapshot(pair.left) == snapshot(pair.right)
    unite()
    report = unite()
    assert (report.left, report.right, report.exit) == (0, 0, ExitCode.OK)


@pytest.mark.parametrize("damaged", [1, 2])
def test_forgetting_one_side_takes_what_is_damaged(pair: Pair, damaged: int) -> None:
    """Where the other directory was is known from an older ancestor, if from none then it may be any."""
    pair.both("a", "a")
    pair.unite()
    (pair.left / "a").write_text("edited")
    pair.unite()
    for name in ("ancestor", "ancestor.1")[:damaged]:
        (path,) = pair.left.glob(f".rdc-unite/*/{name}")
        path.write_bytes(path.read_bytes()[:-1])
    assert forget_place(os.fsencode(pair.left), b"elsewhere") == damaged - 1
    place = os.fsencode(pair.right.resolve())
    assert forget_place(os.fsencode(pair.left), place) == 2 - damaged
    assert not list(pair.left.glob(".rdc-unite/*/*"))


def test_a_copy_with_the_same_id_gets_one_of_its_own(pair: Pair) -> None:
    """Tops of two file systems have the same inode number, so a copy of one cannot be told by it."""
    pair.both("a", "a")
    pair.unite()
    for each in pair.right.glob(".rdc-unite/*"):
        if each.is_dir():
            shutil.rmtree(each)
    copied = bytearray((pair.left / ".rdc-unite/root").read_bytes()[:-4])
    copied[-16:] = (pair.right / ".rdc-unite/root").read_bytes()[-20:-4]
    (pair.right / ".rdc-unite/root").write_bytes(copied + crc32(copied).to_bytes(4, "little"))
    (pair.left / "a").unlink()
    (pair.left / "b").write_text("b")
    assert pair.unite(dry_run=True).first
    report = pair.unite()
    assert (report.first, report.exit) == (True, ExitCode.OK)
    assert pair.texts("a") == ["a", "a"]
    assert not pair.unite().first


@pytest.mark.parametrize("births", [True, False], ids=["births", "no births"])
def test_a_copy_that_got_the_number_of_the_old_directory_is_another_one(
    pair: Pair, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, births: bool
) -> None:
    if not births:
        monkeypatch.setattr("rdc.uniting.state.birth_time", lambda fd: 0)
    pair.both("a", "a")
    pair.both("b", "b")
    pair.unite()
    assert not pair.unite().first  # what tells a copy does not change by itself
    shutil.copytree(pair.left, tmp_path / "copy", symlinks=True)
    shutil.rmtree(pair.left)
    shutil.copytree(tmp_path / "copy", pair.left, symlinks=True)
    (pair.left / "a").unlink()
    root = pair.left / ".rdc-unite/root"
    reused = bytearray(root.read_bytes()[:-4])
    reused[-16:-8] = pair.left.stat().st_ino.to_bytes(8, "little")
    root.write_bytes(reused + crc32(reused).to_bytes(4, "little"))
    report = pair.unite()
    assert (report.first, report.exit) == (True, ExitCode.OK)
    assert pair.texts("a") == ["a", "a"]
    assert not pair.unite().first


def test_a_state_of_another_user_is_refused_with_advice(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.left / ".rdc-unite").chmod(0o777)
    with pytest.raises(RdcError, match="move it away"):
        pair.unite()


def put(kind: str, at: Path) -> None:
    """Put something into the place of a file or directory of the state."""
    if at.is_dir():
        shutil.rmtree(at)
    else:
        at.unlink(missing_ok=True)
    at.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "directory":
            at.mkdir()
        case "full directory":
            at.mkdir()
            (at / "somebody's").write_text("kept")
        case "fifo":
            os.mkfifo(at)
        case "link":
            at.symlink_to("/etc/passwd")
        case "socket":
            with socket.socket(socket.AF_UNIX) as made, contextlib.chdir(at.parent):
                made.bind(at.name)
        case "foreign file":
            at.write_text("x")
            at.chmod(0o666)


@pytest.mark.parametrize("kind", ["directory", "full directory", "fifo", "link", "socket", "foreign file"])
@pytest.mark.parametrize(
    "names",
    [
        "lock try edges PAIR/ancestor.1 PAIR/ancestor.new PAIR/ancestor.new.part PAIR/open PAIR/rules",
        "PAIR/journal",
        "PAIR/ancestor",
        "PAIR",
        "root mark",
    ],
)
def test_what_somebody_put_into_the_state_stops_no_run(pair: Pair, kind: str, names: str) -> None:
    for name in ("a", "b", "gone"):
        pair.both(name, name)
    pair.unite()
    (pair.left / "gone").unlink()
    (pair.left / "a").write_text("edited")
    (pair.right / "b").rename(pair.right / "c")
    (state,) = pair.right.glob(".rdc-unite/????????????????")
    for name in names.split():
        put(kind, state.parent / name.replace("PAIR", state.name))
    ways = [
        lambda: rdc.unite(pair.left, pair.right, QUICK),
        lambda: unite_in_turns(pair.left, pair.right, QUICK, lambda _: None, near=0).report,
        lambda: unite_in_turns(pair.left, pair.right, QUICK, lambda _: None, near=1).report,
    ]
    number = len(kind + names) % 3
    report = ways[number]()
    assert not report.held
    assert set(pair.texts("c")) == {"b"}
    report = ways[number - 1]()
    assert (report.left, report.right) == (0, 0)
    assert not report.first
    assert sorted({text for text in pair.texts("a") if text}) in (["edited"], ["a", "edited"])
    if kind == "full directory":
        assert list(pair.right.rglob("somebody's"))
    assert rdc.forget_united(pair.left, pair.right) == 2


def test_what_is_not_rdc_s_in_the_place_of_a_journal_is_damage(pair: Pair) -> None:
    """It may have had the plan of a run that was killed."""
    pair.both("a", "a")
    pair.unite()
    (state,) = pair.left.glob(".rdc-unite/????????????????")
    put("foreign file", state / "journal")
    assert pair.unite().first
    assert "damaged" in pair.notices()[0]


@pytest.mark.parametrize("kind", ["fifo", "link", "foreign file"])
def test_what_is_in_the_place_of_the_whole_state_is_named(pair: Pair, kind: str) -> None:
    pair.both("a", "a")
    put(kind, pair.right / ".rdc-unite")
    with pytest.raises(RdcError, match="expected a directory that only you can write, found") as caught:
        pair.unite()
    assert caught.value.code is ExitCode.FILE_IO


def test_either_side_may_be_named_first(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.left / "a").write_text("edited")
    report = rdc.unite(pair.right, pair.left, QUICK)
    assert (report.first, report.left, report.right) == (False, 1, 0)
    assert pair.texts("a") == ["edited", "edited"]


def test_forgetting_makes_the_next_run_a_first_one(pair: Pair) -> None:
    pair.both("a", "a")
    pair.unite()
    (pair.left / "a").unlink()
    (pair.left / "b").write_text("b")
    assert rdc.forget_united(pair.left, pair.right) == 2
    assert rdc.unite_status(pair.left, pair.right) is None
    assert pair.unite().first
    assert pair.texts("a") == ["a", "a"]


def test_a_hub_with_spokes_settles(tmp_path: Path) -> None:
    tops = [tmp_path / name for name in ("hub", "one", "two")]
    for top in tops:
        top.mkdir()
    (tops[1] / "a").write_text("from one")
    for spoke in (tops[1], tops[2], tops[1]):
        rdc.unite(tops[0], spoke, QUICK)
    assert (tops[2] / "a").read_text() == "from one"
    (tops[2] / "b").write_text("b")
    (tops[2] / "a").unlink()
    rdc.unite(tops[2], tops[0], QUICK)
    rdc.unite(tops[1], tops[0], QUICK)
    assert [sorted(path.name for path in top.iterdir() if path.name[0] != ".") for top in tops] == [["b"]] * 3


def test_state_is_seen_by_no_sync_and_no_scan(pair: Pair, tmp_path: Path) -> None:
    pair.both("a", "a")
    pair.unite()
    rdc.sync(f"{pair.left}/", f"{tmp_path}/copy", catalog=None)
    assert [path.name for path in (tmp_path / "copy").iterdir()] == ["a"]
    rdc.sync(f"{tmp_path}/copy/", f"{pair.left}/", rdc.SyncOptions(delete=True), catalog=None)
    assert (pair.left / ".rdc-unite").is_dir()
    assert not pair.unite().first


def _without(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def _garbage(path: Path) -> None:
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0] + b"garbage\n")


@pytest.mark.parametrize("way", [None, 0, 1], ids=["local", "left dials", "right dials"])
@pytest.mark.parametrize(
    ("harm", "what"), [(_without, "journal"), (_without, "kept"), (_without, "."), (_garbage, "journal")]
)
def test_a_damaged_record_for_an_undo_stops_no_run_and_proves_nothing(
    pair: Pair, way: int | None, harm: Callable[[Path], None], what: str
) -> None:
    """In doubt the last run counts as undone, and then the ancestor is worth less."""

    def unite() -> rdc.UniteReport:
        if way is None:
            return pair.unite()
        pair.events = []
        return unite_in_turns(pair.left, pair.right, QUICK, pair.events.append, near=way).report

    for name in ("a", "b", "c"):
        pair.both(name, name)
    unite()
    (pair.left / "a").write_text("edited")
    unite()
    (record,) = (pair.right / ".rdc-undo").glob("[0-9]*")
    harm(record / what)
    (pair.left / "a").write_text("again")  # the right one is as it was agreed on
    (pair.right / "b").write_text("what an undo may have brought back")
    (pair.right / "c").unlink()
    assert unite().exit is ExitCode.CONFLICTS
    assert pair.texts("a") == ["again", "again"]
    assert pair.texts("b") == ["b", "what an undo may have brought back"]
    assert pair.texts("c") == ["c", "c"]
    assert not pair.problems()


@pytest.mark.parametrize("kind", ["file", "symlink"])
def test_an_entry_in_the_place_of_the_undo_directory_is_moved_away_as_the_message_says(
    pair: Pair, kind: str, tmp_path: Path
) -> None:
    pair.both("a", "a")
    pair.unite()
    place = pair.right / ".rdc-undo"
    (tmp_path / "elsewhere").mkdir()
    place.write_text("mine") if kind == "file" else place.symlink_to(tmp_path / "elsewhere")
    (pair.left / "a").write_text("edited")
    with pytest.raises(rdc.RdcError, match="Not a directory; move it away, then run again"):
        pair.unite()
    assert pair.texts("a") == ["edited", "a"]
    place.rename(tmp_path / "away")
    assert pair.unite().exit is ExitCode.OK
    assert pair.texts("a") == ["edited", "edited"]
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("way", [None, LEFT, RIGHT], ids=["here", "left dials", "right dials"])
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("what", ["lost", "replaced", "restored in place"])
def test_a_first_run_after_others_says_that_something_was_lost(
    tmp_path: Path, side: str, what: str, way: int | None
) -> None:
    pair = Pair(tmp_path) if way is None else Machines(tmp_path)
    if isinstance(pair, Machines):
        pair.near = LEFT if way == LEFT else RIGHT
    pair.both("a", "a")
    pair.both("b", "b")
    pair.unite()
    assert pair.notices() == ["first time: nothing is deleted; what differs is a conflict"]
    top = tmp_path / side
    backup = tmp_path / "backup"
    shutil.copytree(top / ".rdc-unite", backup)
    (pair.left / "b").unlink()
    pair.unite()
    match what:
        case "lost":
            shutil.rmtree(top / ".rdc-unite")
        case "replaced":
            shutil.copytree(top, tmp_path / "other", ignore=shutil.ignore_patterns(".rdc-*"))
            shutil.rmtree(top)
            (tmp_path / "other").rename(top)
        case _:
            for name in backup.glob("*/*"):
                shutil.copyfile(name, top / ".rdc-unite" / name.relative_to(backup))
            for name in (top / ".rdc-unite").glob("*/ancestor.1"):
                name.unlink()
    (top / "b").write_text("from a backup")
    pair.unite()
    (told,) = pair.notices()
    assert told.endswith("; nothing is deleted, and what differs is a conflict")
    assert "remembered is of another one at its place, or lost" in told or "what one side remembers" in told
    assert pair.texts("b") == ["from a backup"] * 2
