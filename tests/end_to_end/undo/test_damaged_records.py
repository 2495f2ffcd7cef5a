"""Records of undos that are cut, damaged, old, or written by somebody else."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from zlib import crc32

import pytest

from rdc.errors import ExitCode, RdcError
from rdc.files.base.paths import UNDO_NAME
from rdc.model.options import KeepUndo
from rdc.model.sync import SyncOptions
from tests.support.running.syncing import command, run_sync
from tests.support.trees.trees import Directory, File, Link, describe, tree, write_tree
from tests.support.undo.undo_runs import read_beside, undone
from tests.support.undo.undone_sync import census, unlike

KEEPING = SyncOptions(delete=True, keep_undo=KeepUndo(days=30), fsync=False)
STORE = os.fsdecode(UNDO_NAME)
Node = File | Directory | Link | bytes
HELD: dict[str, Node] = {
    "replaced": b"old", "removed": b"gone", "mode": File(b"x", 0o600), "link": Link(b"old"), "d/x": b"x",
}  # fmt: skip
WANTED: dict[str, Node] = {
    "replaced": b"new", "mode": File(b"x", 0o644), "link": Link(b"new"), "made": b"made", "e/y": b"y",
}  # fmt: skip


@pytest.fixture(params=[False, True], ids=["no-fsync", "fsync"])
def top(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    source, top = write_tree(tmp_path / "s", tree(WANTED)), write_tree(tmp_path / "d", tree(HELD))
    options = SyncOptions(delete=True, keep_undo=KeepUndo(days=30), fsync=request.param)
    assert run_sync(source, top, options).problems == []
    return top


def kept(top: Path) -> dict[str, bytes]:
    return {path.name: os.readlink(os.fsencode(path)) if path.is_symlink() else path.read_bytes()
            for path in (top / STORE / "1/kept").iterdir()}  # fmt: skip


def refused(top: Path) -> str:
    """Nothing is undone: the message of the one line that says so. Kept versions stay."""
    before, held = read_beside(top), kept(top)
    for words in (("undo", top), ("undo", "-n", top)):
        ended = command(*words)
        assert (ended.code != 0, len(ended.complaints)) == (True, 1), ended
    assert describe(before, read_beside(top)) == []
    assert kept(top) == held
    return ended.complaints[0]


def test_a_journal_that_is_cut_anywhere_undoes_nothing(top: Path) -> None:
    journal = top / STORE / "1/journal"
    data = journal.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    for size in sorted({0, 1, len(data) - 1, *ends[:-1], *(end - 3 for end in ends)}):
        journal.write_bytes(data[:size])
        assert "lost" in refused(top) or "expected a journal" in refused(top)
    journal.write_bytes(data)
    assert undone(top).left_alone == []


@pytest.mark.parametrize("kind", ["zeros", "other lines", "a line less", "a line twice"])
def test_a_damaged_journal_undoes_nothing(kind: str, top: Path) -> None:
    journal = top / STORE / "1/journal"
    lines = journal.read_bytes().splitlines(keepends=True)
    at = len(lines) // 2
    match kind:
        case "zeros":
            lines[at] = bytes(len(lines[at]))
        case "other lines":
            lines[at:] = [b"\n" * len(line) for line in lines[at:]]
        case "a line less":
            del lines[at]
        case _:
            lines[-1:] = [b""]
    journal.write_bytes(b"".join(lines))
    refused(top)


@pytest.mark.parametrize("length", [None, b"x" * 21, b"9" * 20 + b"\n"])
def test_a_length_that_does_not_fit_undoes_nothing(length: bytes | None, top: Path) -> None:
    path = top / STORE / "1/length"
    path.unlink()
    if length is not None:
        path.write_bytes(length)
    refused(top)


@pytest.mark.parametrize("length", [b"", bytes(21)])
def test_a_length_that_a_power_cut_left_says_nothing(length: bytes, top: Path) -> None:
    (top / STORE / "1/length").write_bytes(length)
    assert undone(top).left_alone == []


def test_an_unfinished_record_without_its_end_is_named_by_what_it_kept(top: Path) -> None:
    """Where nothing tells how long it was, as in version 1 or after a power cut with --no-fsync."""
    (top / STORE / "1/length").write_bytes(b"")
    journal = top / STORE / "1/journal"
    data = journal.read_bytes()
    first_kept = next(at for at, line in enumerate(data.splitlines()) if b'"keep"' in line)
    journal.write_bytes(b"".join(data.splitlines(keepends=True)[:first_kept]))
    assert "a line about each kept entry" in refused(top)


def test_a_record_without_its_journal_stops_no_later_sync_and_undo(top: Path, tmp_path: Path) -> None:
    (top / STORE / "1/journal").unlink()
    assert "a part of the journal is lost" in refused(top)
    (tmp_path / "s/made").write_bytes(b"later")
    assert run_sync(tmp_path / "s", top, KEEPING).problems == []
    listed = command("undo", "--list", top).out.splitlines()
    assert ["interrupted" in line for line in listed] == [True, False]
    assert not any("1970" in line for line in listed)
    assert undone(top).left_alone == []
    assert (top / "made").read_bytes() == b"made"
    assert "a part of the journal is lost" in refused(top)


def test_a_record_that_cannot_be_opened_keeps_no_other_one(top: Path, tmp_path: Path) -> None:
    shutil.rmtree(top / STORE / "1/kept")
    for text in (b"second", b"third"):
        (tmp_path / "s/made").write_bytes(text)
        assert run_sync(tmp_path / "s", top, KEEPING).problems == []
    small = SyncOptions(delete=True, keep_undo=KeepUndo(size=1), fsync=False)
    (tmp_path / "s/made").write_bytes(b"fourth")
    run_sync(tmp_path / "s", top, small)
    assert undone(top).left_alone == []
    assert (top / "made").read_bytes() == b"third"


def test_the_next_syncs_drop_no_damaged_record_before_its_time(top: Path, tmp_path: Path) -> None:
    journal = top / STORE / "1/journal"
    for data in (b"", b"nonsense\n"):
        journal.write_bytes(data)
        (tmp_path / "s/made").write_bytes(os.urandom(9))
        assert run_sync(tmp_path / "s", top, KEEPING).problems == []
        assert kept(top)


# Records of others


def _of_another(path: Path) -> None:
    os.chown(path, 4242, 4242, follow_symlinks=False)


def _open_to_others(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o022)


def _open_to_a_group(path: Path) -> None:
    path.chmod(path.stat().st_mode | 0o020)


def _a_link(path: Path) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to("aside")


def _another_name(path: Path) -> None:
    os.link(path, path.parent.parent.parent.parent / "second")


FILES, DIRECTORIES = ("1/journal", "1/length"), ("1", "1/kept", ".")
PLANTED = [(change, path) for change in (_of_another, _open_to_others, _open_to_a_group, _a_link)
           for path in (*FILES, *DIRECTORIES)]  # fmt: skip
PLANTED += [(_another_name, path) for path in FILES]


@pytest.mark.parametrize(("change", "path"), PLANTED)
def test_what_others_can_have_written_is_not_obeyed(
    change: Callable[[Path], None], path: str, top: Path
) -> None:
    if change is _of_another and os.geteuid() != 0:
        pytest.skip("a file of another user needs root")
    before = read_beside(top)
    change(top / STORE / path if path != "." else top / STORE)
    with pytest.raises(RdcError) as problem:
        undone(top)
    assert problem.value.code is ExitCode.FILE_IO
    after = read_beside(top)
    del before[b""], after[b""]  # whose time a rename in it changes
    assert [line for line in describe(before, after) if "aside" not in line] == []


# Version 1


def as_version_1(top: Path) -> None:
    journal = top / STORE / "1/journal"
    lines = []
    for line in journal.read_text().splitlines():
        items = json.loads(line[:-9])
        if items[0] in ("left", "held", "own"):
            continue
        if items[0] == "rdc undo":
            items[1] = 1
        text = json.dumps(
            [each[:4] if isinstance(each, list) else each for each in items], separators=(",", ":")
        )
        lines.append(f"{text} {crc32(text.encode()):08x}\n")
    journal.write_text("".join(lines))
    (top / STORE / "1/length").unlink()


def test_version_1_is_undone(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree(WANTED)), write_tree(tmp_path / "d", tree(HELD))
    before = census(top)
    assert run_sync(source, top, KEEPING).problems == []
    as_version_1(top)
    (source / "made").write_bytes(b"and changed")
    assert run_sync(source, top, KEEPING).problems == []
    assert undone(top).left_alone == []
    assert undone(top).left_alone == []
    assert unlike(before, census(top)) == []


def test_version_1_that_is_cut_is_named(tmp_path: Path) -> None:
    source, top = write_tree(tmp_path / "s", tree(WANTED)), write_tree(tmp_path / "d", tree(HELD))
    assert run_sync(source, top, KEEPING).problems == []
    as_version_1(top)
    journal = top / STORE / "1/journal"
    data = journal.read_bytes()
    ends = [at + 1 for at, byte in enumerate(data) if byte == ord("\n")]
    lines = data.splitlines()
    last_kept = max(at for at, line in enumerate(lines) if b'"keep"' in line)
    for end in (0, *ends[:last_kept]):
        journal.write_bytes(data[:end])
        assert "lost" in refused(top)
