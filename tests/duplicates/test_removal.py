"""What a removal of duplicates leaves alone, refuses and brings back, case by case."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.running.deduping import TIME, Run, dedupe, dupes, messages, seen

CONTENT = b"content" * 1000


@pytest.fixture
def top(tmp_path: Path) -> Path:
    """Two directories with three equal files."""
    for name in ("a/one", "a/two", "b/three"):
        path = tmp_path / "top" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(CONTENT)
        os.utime(path, ns=(TIME, TIME))
    return tmp_path / "top"


def removed(run: Run) -> set[str]:
    return {os.path.basename(item["path"]) for item in run.of("item")}


def journal_of(top: Path) -> Path:
    return top.parent / "journal"


def delete(top: Path, *words: str | Path) -> Run:
    return dupes("--delete", "--apply", f"--journal={journal_of(top)}", *words)


def test_setuid_files_and_names_outside_stay(top: Path) -> None:
    (top / "a/two").chmod(0o4755)
    os.link(top / "b/three", top.parent / "outside")
    before = seen(top)
    run = delete(top, top)
    assert (run.code, run.summary["files"], run.summary["skipped"]) == (0, 0, 2)
    assert "setuid" in messages(run)
    assert "names outside" in messages(run)
    assert seen(top) == before


def test_files_of_other_users_stay(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.lstat(top).st_uid + 1)
    run = dupes("--delete", top)
    assert run.summary["files"] == 0
    assert "belongs to user" in messages(run)


def test_a_file_open_for_writing_stays(top: Path) -> None:
    with open(top / "b/three", "ab"):
        run = delete(top, top)
    assert run.code == 23
    assert removed(run) == {"two"}
    assert "open for writing" in messages(run)


def test_names_of_one_file_are_one_copy(top: Path) -> None:
    (top / "a/two").unlink()
    (top / "b/three").unlink()
    os.link(top / "a/one", top / "b/three")
    (top / "b/link").symlink_to(top / "a/one")
    assert delete(top, top).summary["files"] == 0


def test_the_first_path_stays_whatever_its_length(top: Path) -> None:
    (top / "a/two").unlink()
    assert removed(delete(top, top / "b", top / "a")) == {"one"}


def test_copies_that_are_only_compared(top: Path) -> None:
    run = delete(top, f"--keep-in={top}/b", top / "a")
    assert removed(run) == {"one", "two"}
    assert (top / "b/three").read_bytes() == CONTENT


def test_a_link_that_would_lead_out_is_not_made(top: Path) -> None:
    words = (f"--journal={journal_of(top)}", f"--keep-in={top}/b", top / "a")
    run = dupes("--symlink", "--apply", *words)
    assert (run.code, run.summary["files"]) == (23, 0)
    assert "lead out" in messages(run)
    assert not (top / "a/one").is_symlink()


def test_nothing_is_overwritten_by_a_move(top: Path) -> None:
    out = top.parent / "out"
    (out / "b").mkdir(parents=True)
    (out / "b/three").write_bytes(b"mine")
    (out / "a").symlink_to(top)
    words = (f"--move={out}", "--apply", f"--journal={journal_of(top)}", top)
    before = seen(top)
    run = dupes(*words)
    assert run.code == 23
    assert "is taken" in messages(run)
    assert (out / "b/three").read_bytes() == b"mine"
    assert seen(top) == before  # no link is followed below DIR
    run = dupes(f"--move={top}/a/out", top)
    assert (run.code, "lies in" in messages(run)) == (1, True)


def test_undo_overwrites_no_newer_work(top: Path) -> None:
    assert removed(delete(top, top)) == {"two", "three"}
    (top / "a/two").write_bytes(b"newer")
    run = dedupe("--undo", journal_of(top))
    assert run.code == 23
    assert "newer work" in messages(run)
    assert (top / "a/two").read_bytes() == b"newer"
    assert (top / "b/three").read_bytes() == CONTENT
    text = dedupe("--undo", journal_of(top), "--text")
    assert "0 files" in text.err


def test_undo_copies_only_what_was_there(top: Path) -> None:
    delete(top, top)
    (top / "a/one").write_bytes(b"C" + CONTENT[1:])
    run = dedupe("--undo", journal_of(top))
    assert (run.code, run.summary["files"]) == (24, 0)
    assert set(seen(top)) == {"a/one"}
    journal_of(top).chmod(0o666)
    assert "trust" in messages(dedupe("--undo", journal_of(top)))


def test_set_by_set_for_a_person(top: Path) -> None:
    run = dupes("--delete", "--text", top)
    assert run.out.splitlines()[0] == f"keep     {top}/a/one"
    assert [line.split()[0] for line in run.out.splitlines()] == ["keep", "delete", "delete"]
    assert run.err == "2 files in 1 set: 16.4 KB to free (dry run: nothing was changed; --apply acts)\n"
    run = delete(top, "--text", top)
    assert f"to undo it: rdc dedupe --undo {journal_of(top)}" in run.err
    run = dedupe("--undo", journal_of(top), "--text")
    assert run.err == "2 files of 14.0 KB brought back\n"
