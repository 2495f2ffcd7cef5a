"""The forms of output of `rdc similar`, in this process and in its own."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode, UsageError
from rdc.survey import similar_command as similar
from tests.support.running.fake_environment import FakeProcess
from tests.support.trees.edited_texts import edited, text

RDC = (sys.executable, "-m", "rdc")
HOSTILE = b"\x1b[2J\xff\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    for name, data in {
        "one/a": text(1, 8_000),
        "one/b": text(2, 3_000),
        "two/a": edited(text(1, 8_000), 5, 3),
        "two/b": text(2, 3_000),
        "other": text(3, 8_000),
    }.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    with open(os.fsencode(top) + b"/" + HOSTILE, "wb") as file:
        file.write(edited(text(1, 8_000), 6, 3))
    return top


def run(top: Path, *words: str, code: ExitCode = ExitCode.OK) -> FakeProcess:
    process = FakeProcess()
    assert similar.run([*words, "--no-catalog", str(top)], process.environment) is code
    return process


def test_groups_for_people(tree: Path) -> None:
    process = run(tree)
    lines = process.out.splitlines()
    assert [line.split(maxsplit=3)[1:] for line in lines] == [
        ["8.0", "KB", f"{tree}/\\x1b[2J\\xff\\x0a"],
        ["8.0", "KB", f"{tree}/one/a"],
        ["8.0", "KB", f"{tree}/two/a"],
    ]
    assert all(50 < float(line.split()[0]) < 100 for line in lines)
    assert process.err == "1 group of 3 similar files, out of 5 with different content; 2 pairs compared\n"
    assert run(tree, "-q", "--threshold=0.99").out == ""
    (tree / "sole").mkdir()
    assert run(tree / "sole").err == "no similar files, out of 0 with different content\n"


def test_ranking(tree: Path) -> None:
    lines = run(tree, "--to", str(tree / "one" / "b")).out.splitlines()
    assert lines == [f"100.0     3.0 KB  {tree}/two/b"]
    lines = run(tree, "--to", str(tree / "one" / "a"), "--top=1").out.splitlines()
    assert len(lines) == 1
    out = subprocess.run(
        [*RDC, "similar", "-0", "--no-catalog", "--to", tree / "one" / "a", tree],
        capture_output=True,
        check=True,
    ).stdout
    assert set(out.split(b"\0")) == {os.fsencode(tree) + b"/" + HOSTILE, os.fsencode(tree) + b"/two/a", b""}


def test_folders(tree: Path) -> None:
    lines = run(tree, "--folders", "-q").out.splitlines()
    assert [line.split()[-1] for line in lines[1:]] == [f"{tree}/one", f"{tree}/two"]
    rows = list(csv.DictReader(io.StringIO(run(tree, "--folders", "--csv").out)))
    assert [(row["first"], row["second"], row["first_bytes"]) for row in rows] == [
        (f"{tree}/one", f"{tree}/two", "11000")
    ]
    assert 0.5 < float(rows[0]["overlap"]) < 1
    out = subprocess.run(
        [*RDC, "similar", "-0", "--no-catalog", "--folders", tree], capture_output=True
    ).stdout
    assert out == os.fsencode(f"{tree}/one\0{tree}/two\0\0")


def test_names_and_tables(tree: Path) -> None:
    out = subprocess.run([*RDC, "similar", "-0q", "--no-catalog", tree], capture_output=True, check=True)
    top = os.fsencode(tree)
    assert out.stdout == b"\0".join([top + b"/" + HOSTILE, top + b"/one/a", top + b"/two/a", b"", b""])
    assert out.stderr == b""
    rows = list(csv.DictReader(io.StringIO(run(tree, "--csv").out)))
    assert [row["group"] for row in rows] == ["1", "1", "1"]
    assert base64.b64decode(rows[0]["path_b64"]) == top + b"/" + HOSTILE
    assert {row["like"] for row in rows} <= {row["path"] for row in rows}
    rows = list(csv.DictReader(io.StringIO(run(tree, "--csv", "--to", str(tree / "two/b")).out)))
    assert [(row["similarity"], row["path"]) for row in rows] == [("1.0000", f"{tree}/one/b")]


def events(process: FakeProcess) -> list[dict[str, Any]]:
    assert process.out.isascii()
    found = [json.loads(line) for line in process.out.splitlines()]
    assert all(event.pop("v") == 1 for event in found)
    return [event for event in found if event["event"] != "progress"]


def test_events(tree: Path) -> None:
    start, group, summary = events(run(tree, "--json"))
    assert start == {"event": "start"}
    assert list(group) == ["event", "bytes", "files"]
    assert [list(file) for file in group["files"]][1] == ["path", "size", "similarity", "contained", "like"]
    assert base64.b64decode(group["files"][0]["path_b64"]) == os.fsencode(tree) + b"/" + HOSTILE
    assert list(summary) == [
        "event",
        "searched",
        "files",
        "groups",
        "grouped",
        "min_matches",
        "candidates",
        "false_candidates",
        "left_out",
        "seconds",
        "exit",
    ]
    _, match, summary = events(run(tree, "--json", "--to", str(tree / "one/b")))
    assert (match["event"], match["path"], match["similarity"]) == ("match", f"{tree}/two/b", 1.0)
    assert (summary["matches"], summary["exit"]) == (1, 0)
    _, folders, summary = events(run(tree, "--json", "--folders"))
    assert folders["first"] == {"path": f"{tree}/one", "bytes": 11_000}
    assert summary["event"] == "summary"
    found = events(run(tree, "--json", str(tree / "none"), code=ExitCode.PARTIAL))
    assert [event["event"] for event in found] == ["start", "error", "group", "summary"]
    assert found[-1]["exit"] == 23


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs a file or directory"),
        (["--json", "--csv", "x"], "--csv and --json exclude each other"),
        (["--to=y", "--folders", "x"], "--folders and --to exclude each other"),
        (["--threshold=0", "x"], "a part from 0.01 to 1"),
        (["--threshold=1.5", "x"], "a part from 0.01 to 1"),
        (["--threshold=nan", "x"], "a part from 0.01 to 1"),
        (["--to=y", "--top=0", "x"], "--top=0: a number of files"),
        (["--to=/proc/self", "/dev/null"], "a file is expected, not a directory"),
    ],
)
def test_what_makes_no_sense(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        similar.run([*words, "--no-catalog", "--exclude=*"], FakeProcess().environment)


def test_contents_with_many_copies_are_told(tmp_path: Path) -> None:
    for number in range(40):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "LICENSE").write_bytes(text(1, 2_000))
    process = run(tmp_path, "--folders")
    assert process.out == ""
    assert process.err.startswith("rdc: note: 1 contents with too many copies")
