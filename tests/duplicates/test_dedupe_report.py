"""Groups from a report that may be outdated, edited or hostile."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.cli.main import run as run_command
from rdc.errors import UsageError
from rdc.library.duplicate_groups import groups_of_report, location_of, open_operands
from tests.support.running.deduping import Run, dedupe, linked, messages, seen, write_duplicates
from tests.support.running.fake_environment import FakeProcess


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Groups of three files, under a/ and b/, that can be linked on any file system."""
    top = tmp_path / "tree"
    write_duplicates(top)
    return top


def link(tree: Path, *words: str | Path) -> Run:
    journal = tree.parent / f"journal{len(list(tree.parent.glob('journal*')))}"
    return dedupe("--hardlink", "--apply", "--journal", journal, *words)


def group_event(size: int, *paths: str | Path, **more: object) -> str:
    return json.dumps(
        {"v": 1, "event": "group", "size": size, "files": [{"path": str(p)} for p in paths], **more}
    )


def test_groups_of_a_report(tree: Path) -> None:
    wanted = {path: what.size for path, what in seen(tree).items()}
    size = wanted["a/group0-copy1"]
    lines = [
        '{"v":1,"event":"start"}',
        group_event(size, tree / "a/group0-copy1", tree / "b/group0-copy0"),
        '{"v":1,"event":"summary","groups":1}',
    ]
    text = "\n".join(lines).encode()
    report = tree.parent / "report"
    report.write_bytes(text)
    for words, stdin in ((("--from", report), b""), (("--from=-",), text)):
        run = dedupe("--hardlink", *words, tree, stdin=stdin)
        assert (run.code, run.summary["files"]) == (0, 1)
    assert dedupe("--hardlink", "--from", report, "--min-size=1M", tree).summary["files"] == 0
    assert dedupe("--from", tree.parent / "none", tree).code == 23
    run = link(tree, "--from", report, tree)
    assert linked(tree, "a/group0-copy1", "b/group0-copy0", "b/group0-copy2") == 2


def dupes(*words: str | Path) -> bytes:
    process = FakeProcess()
    run_command(["dupes", "--json", "--no-catalog", *(str(word) for word in words)], process.environment)
    return process.out.encode()


@pytest.mark.parametrize("operand", ["t", "t/", ".", "..", "t/b", "link", "link/a", "t/a/group0-copy1"])
@pytest.mark.parametrize("away", ["", "elsewhere", "t/a", "/"])
def test_relative_names_of_a_report_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operand: str, away: str
) -> None:
    """Whatever paths `rdc dupes` was given, dedupe finds the same files from any directory."""
    home = tmp_path / "h\udcffme"
    write_duplicates(home / "t", groups=1)
    (home / "link").symlink_to("t")
    (tmp_path / "elsewhere").mkdir()
    (home / "elsewhere").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "other").symlink_to(home)
    where = home / "t" if operand == ".." else home
    if operand == "..":
        where = home / "t" / "a"
    monkeypatch.chdir(where)
    report = dupes(operand, "t" if where == home else "../b")
    assert b'"group"' in report
    monkeypatch.chdir(home / away)
    for top in (home / "t", tmp_path / "other" / "t", home / "link", Path(os.path.relpath(home / "t"))):
        run = dedupe("--hardlink", "--from=-", top, stdin=report)
        assert (run.code, run.summary["files"], messages(run)) == (0, 2, "")


def test_a_report_that_does_not_say_where_its_names_begin(
    tree: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = group_event(30_000, "a/group0-copy1", "b/group0-copy0").encode()
    monkeypatch.chdir(tree)
    assert dedupe("--hardlink", "--from=-", tree, stdin=report).summary["files"] == 1
    monkeypatch.chdir(tmp_path)
    run = dedupe("--hardlink", "--from=-", tree, stdin=report)
    assert (run.code, run.summary["files"]) == (23, 0)
    assert f"found {tmp_path}/a/group0-copy1, as the report does not say" in messages(run)
    assert "run it in the directory in which rdc dupes ran" in messages(run)


def test_reports_in_one_stream_begin_each_where_it_says(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = (tree / "a/group0-copy1").stat().st_size
    lines = [
        json.dumps({"v": 1, "event": "start", "cwd": str(tree / "a")}),
        group_event(size, "group0-copy1", "../b/group0-copy0"),
        json.dumps({"v": 1, "event": "start", "cwd": str(tree / "b")}),
        group_event(size, "group0-copy2", "group0-copy0"),
        json.dumps({"v": 1, "event": "start", "cwd": "/nowhere"}),
        group_event(size, "group0-copy2", "group0-copy0"),
        json.dumps({"v": 1, "event": "start"}),
        group_event(size, "b/group0-copy2", "a/group0-copy1"),
    ]
    monkeypatch.chdir(tree)
    run = dedupe("--hardlink", "--from=-", tree, stdin="\n".join(lines).encode())
    assert run.summary["groups"] == 3
    assert "found /nowhere/group0-copy2; left alone" in messages(run)


def test_dupes_in_a_directory_that_was_removed(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert json.loads(dupes(tree).splitlines()[0]) == {"v": 1, "event": "start"}


def test_other_names_in_a_report(tmp_path: Path) -> None:
    write_duplicates(tmp_path, groups=1, copies=2)
    os.link(tmp_path / "a/group0-copy1", tmp_path / "a/second")
    file = {"path": str(tmp_path / "a/group0-copy1"), "links": [{"path": str(tmp_path / "a/second")}]}
    event = {
        "v": 1,
        "event": "group",
        "size": 30_000,
        "files": [file, {"path": str(tmp_path / "b/group0-copy0")}],
    }
    run = dedupe("--hardlink", "--from=-", tmp_path, stdin=json.dumps(event).encode())
    assert (run.code, run.summary["files"], run.summary["skipped"]) == (0, 1, 0)


def test_a_report_is_not_believed(tree: Path) -> None:
    """Files that differ, lie elsewhere, are missing or are no regular files: nothing happens to them."""
    outside = tree.parent / "outside"
    outside.write_bytes((tree / "a/group0-copy1").read_bytes())
    (tree / "link").symlink_to(outside)
    (tree / "up").symlink_to(tree.parent)
    before = seen(tree.parent)
    inodes = {path: os.stat(tree.parent / path).st_ino for path in before}
    lines = [
        group_event(30_000, tree / "a/group0-copy1", tree / "alone"),
        group_event(30_000, tree / "a/group0-copy1", outside),
        group_event(30_000, tree / "a/group0-copy1", tree / "../outside"),
        group_event(30_000, tree / "a/group0-copy1", tree / "link"),
        group_event(30_000, tree / "a/group0-copy1", tree / "up/outside"),
        group_event(30_000, tree / "a/group0-copy1", tree / "gone"),
        group_event(30_000, tree / "a/group0-copy1", tree / "a"),
        group_event(29_999, tree / "a/group0-copy1", tree / "b/group0-copy0"),
        group_event(30_000, tree / "a/group0-copy1", tree / "a/group0-copy1"),
        group_event(30_000, "/etc/passwd", "/etc/hostname"),
        group_event(30_000),
    ]
    text = "\n".join(lines).encode()
    assert dedupe("--hardlink", "--from=-", tree, stdin=text).summary["files"] == 0
    run = dedupe("--hardlink", "--apply", "--journal", tree / "../journal", "--from=-", tree, stdin=text)
    assert run.code in (23, 24)
    assert run.summary["files"] == 0
    assert "outside: expected a file below the PATHs given" in messages(run)
    assert "/etc/passwd: expected a file below the PATHs given" in messages(run)
    assert {path: os.stat(tree.parent / path).st_ino for path in before} == inodes
    assert seen(tree.parent) == before


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"no json",
        b"[]",
        b"[" * 100_000,
        b'{"event":"group"}',
        b'{"v":2,"event":"group"}',
        b'{"v":1,"event":"group"}',
        b'{"v":1,"event":"group","size":true,"files":[]}',
        b'{"v":1,"event":"group","size":-1,"files":[]}',
        b'{"v":1,"event":"group","size":1e99,"files":[]}',
        b'{"v":1,"event":"group","size":99999999999999999999,"files":[]}',
        b'{"v":1,"event":"group","size":1,"files":{}}',
        b'{"v":1,"event":"group","size":1,"files":[7]}',
        b'{"v":1,"event":"group","size":1,"files":[{"path":7}]}',
        b'{"v":1,"event":"group","size":1,"files":[{"path":""}]}',
        b'{"v":1,"event":"group","size":1,"files":[{"path":"a\\u0000b"}]}',
        b'{"v":1,"event":"group","size":1,"files":[{"path":"\\ud800"}]}',
        b'{"v":1,"event":"group","size":1,"files":[{"path_b64":"!"}]}',
        b'{"v":1,"event":"group","size":1,"files":[{"path":"a","links":7}]}',
        b'{"v":1,"event":"start","cwd":7}',
        b'{"v":1,"event":"start","cwd":""}',
        b'{"v":1,"event":"start","cwd":"a/b"}',
        b'{"v":1,"event":"start","cwd":"/a\\u0000b"}',
        b'{"v":1,"event":"start","cwd":"/a","cwd_b64":"YQ=="}',
        b'{"v":1,"event":"group","size":1,"files":[{"path":"' + b"a" * 70_000 + b'"}]}',
    ],
)
def test_what_is_no_report(tree: Path, text: bytes) -> None:
    run = dedupe("--text", "--from=-", tree, stdin=text)
    assert run.code == 1
    assert re.match(r"rdc: -, line 1: not a report of duplicates: expected ", run.err)
    assert len(run.err.splitlines()) == 1


@given(st.binary(max_size=200))
def test_any_report(text: bytes) -> None:
    operands = open_operands([b"/nonexistent/.."[:1]], [])
    try:
        groups_of_report("r", text, operands, 1, lambda error: None)
    except UsageError:
        pass
    finally:
        operands.close()


@given(st.lists(st.sampled_from(["..", ".", "a", "", "b\n"]), max_size=6))
def test_places_stay_below_their_trees(parts: list[str]) -> None:
    operands = open_operands([b"/usr"], [])
    try:
        place = location_of(os.fsencode("/usr/" + "/".join(parts)), operands)
    finally:
        operands.close()
    if place is not None:
        assert b".." not in place[1].split(b"/")
        assert place[1]
