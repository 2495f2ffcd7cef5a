"""The forms of output of `rdc dupes`, in this process and in its own."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from rdc.duplicates import dupes_command
from rdc.errors import ExitCode, UsageError
from tests.support.daemon.daemons import WAIT_SECONDS, wait_until
from tests.support.running.fake_environment import FakeProcess
from tests.support.running.started_processes import started
from tests.support.trees.descriptors import open_files

RDC = (sys.executable, "-m", "rdc")
HOSTILE = b'\x1b[2J\xff\n = a,"b"\x7f'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    (top / "sub").mkdir(parents=True)
    for name in ("one", "sub/two"):
        (top / name).write_bytes(bytes(1000))
    for name in ("x", "y", "sub/z"):
        (top / name).write_bytes(b"small")
    (top / "link").hardlink_to(top / "one")
    with open(os.fsencode(top) + b"/" + HOSTILE, "wb") as file:
        file.write(bytes(1000))
    return top


def run(top: Path, *words: str, code: ExitCode = ExitCode.OK) -> FakeProcess:
    process = FakeProcess()
    assert dupes_command.run([*words, "--no-catalog", str(top)], process.environment) is code
    return process


def test_groups_apart_by_an_empty_line_the_greatest_waste_first(tree: Path) -> None:
    process = run(tree)
    hostile = f'{tree}/\\x1b[2J\\xff\\x0a = a,"b"\\x7f'
    assert process.out == (f"{hostile}\n{tree}/link\n{tree}/sub/two\n\n{tree}/x\n{tree}/y\n{tree}/sub/z\n")
    assert process.err == "2 groups, 6 files, 2.0 KB could be saved\n"
    process = run(tree, "--links", "-q", "--sort=count", "--max-size", "1k")
    assert f"{tree}/link\n  = {tree}/one\n{tree}/sub/two\n" in process.out
    assert process.err == ""


def test_identical_directories_stand_for_their_files(tmp_path: Path) -> None:
    for name in ("a/one", "a/sub/two", "b/c/one", "b/c/sub/two", "d"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("one" if name.endswith("one") else "two")
    process = run(tmp_path)
    assert process.out == (
        f"{tmp_path}/a/  (2 files, 6 B in each)\n{tmp_path}/b/c/\n\n{tmp_path}/d\n{tmp_path}/a/sub/two\n"
    )
    assert process.err == "2 groups, 5 files, 9 B could be saved, 6 B of it in 1 copy of a directory\n"
    directories, one, two = (
        event for event in events(run(tmp_path, "--json").out) if event["event"] in {"directories", "group"}
    )
    paths = [{"path": f"{tmp_path}/a"}, {"path": f"{tmp_path}/b/c"}]
    assert directories == {"v": 1, "event": "directories", "files": 2, "bytes": 6, "waste": 6, "paths": paths}
    assert [file.get("covered") for file in one["files"]] == [None, None, True]
    assert [file.get("covered") for file in two["files"]] == [None, True]
    # Programs get every file, and a report with directories removes what one without them does.
    assert len(run(tmp_path, "--csv").out.splitlines()) == 6
    report = tmp_path.with_name("report.json")
    report.write_text(run(tmp_path, "--json").out)
    removed = [run(tmp_path, "--delete", *words).out for words in ((), (f"--from={report}",))]
    assert removed[0] == removed[1]
    assert removed[0].count("delete") == 3


def test_nothing_found(tree: Path) -> None:
    process = run(tree, "--min-size=2000")
    assert (process.out, process.err) == ("", "0 groups, 0 files, 0 B could be saved\n")


def test_names_for_programs(tree: Path) -> None:
    for links in ((), ("--links",)):
        words = [*RDC, "dupes", "-0q", *links, "--sort=path", "--no-catalog", str(tree)]
        out = subprocess.run(words, capture_output=True, check=True).stdout
        top = os.fsencode(tree)
        one = [top + b"/" + HOSTILE, top + b"/link", top + b"/one", top + b"/sub/two"]
        if not links:
            del one[2]
        two = [top + b"/x", top + b"/y", top + b"/sub/z"]
        assert out == b"".join(b"\0".join([*group, b"", b""]) for group in (one, two))


def test_a_table(tree: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(run(tree, "--csv", "--links").out, newline="")))
    assert [(row["group"], row["file"], row["size"]) for row in rows] == [
        ("1", "1", "1000"),
        ("1", "2", "1000"),
        ("1", "2", "1000"),
        ("1", "3", "1000"),
        ("2", "1", "5"),
        ("2", "2", "5"),
        ("2", "3", "5"),
    ]
    assert base64.b64decode(rows[0]["path_b64"]) == os.fsencode(tree) + b"/" + HOSTILE
    assert rows[0]["path"].isprintable()
    assert [(row["path"], row["path_b64"]) for row in rows[1:3]] == [
        (f"{tree}/link", ""),
        (f"{tree}/one", ""),
    ]


def events(text: str) -> list[dict[str, Any]]:
    assert text.isascii()
    return [json.loads(line) for line in text.splitlines()]


def test_events(tree: Path) -> None:
    (tree / "gone").symlink_to("nowhere")
    process = FakeProcess()
    words = ["--json", "--links", "--no-catalog", str(tree / "gone"), str(tree)]
    assert dupes_command.run(words, process.environment) is ExitCode.PARTIAL
    found = events(process.out)
    assert all(event["v"] == 1 for event in found)
    assert [event["event"] for event in found if event["event"] != "progress"] == [
        "start",
        "error",
        "group",
        "group",
        "summary",
    ]
    assert found[0] == {"v": 1, "event": "start", "cwd": os.getcwd()}
    error, first, second = (event for event in found if event["event"] in {"error", "group"})
    assert (error["code"], error["path"]) == (23, f"{tree}/gone")
    assert "nothing" in error["message"]
    assert list(first) == ["v", "event", "size", "waste", "files"]
    assert (first["size"], first["waste"], len(first["files"])) == (1000, 2000, 3)
    assert base64.b64decode(first["files"][0]["path_b64"]) == os.fsencode(tree) + b"/" + HOSTILE
    assert first["files"][1] == {"path": f"{tree}/link", "links": [{"path": f"{tree}/one"}]}
    assert second["files"] == [{"path": f"{tree}/{name}"} for name in ("x", "y", "sub/z")]
    summary = found[-1]
    assert list(summary) == [
        "v",
        "event",
        "searched",
        "groups",
        "files",
        "waste",
        "files_read",
        "bytes_read",
        "seconds",
        "exit",
    ]
    assert (summary["groups"], summary["files"], summary["waste"]) == (2, 6, 2010)
    assert (summary["files_read"], summary["bytes_read"], summary["exit"]) == (6, 3015, 23)
    assert process.err == ""


def test_events_of_a_run_that_fails(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: object, **keywords: object) -> None:
        raise UsageError("no")

    monkeypatch.setattr("rdc.survey.duplicates.find_duplicates", fail)
    process = FakeProcess()
    with pytest.raises(UsageError):
        dupes_command.run(["--json", str(tree)], process.environment)
    assert [event["event"] for event in events(process.out)] == ["start", "error"]


def test_trouble_is_told_and_the_rest_found(tree: Path) -> None:
    process = run(tree, str(tree / "none"), code=ExitCode.PARTIAL)
    assert process.err.splitlines()[0].startswith(f"rdc: {tree}/none: cannot look at it: expected a file")
    assert process.err.splitlines()[1].startswith("2 groups")


def test_filters_and_empty_files(tree: Path) -> None:
    (tree / "e1").touch()
    (tree / "e2").touch()
    out = run(tree, "--exclude=/sub/", "--empty", "--max-size=5").out
    assert out == f"{tree}/x\n{tree}/y\n\n{tree}/e1\n{tree}/e2\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "needs a file or directory"),
        (["--json", "-0", "x"], "--json and --null exclude each other"),
        (["--sort=name", "x"], "--sort=name: expected waste, size, count, path"),
        (["--min-size=many", "x"], "--min-size=many: a size such as"),
        (["--delete", "--symlink", "x"], "--delete and --symlink exclude each other"),
        (["--delete", "--csv", "x"], "--csv and --delete exclude each other"),
        (["--apply", "x"], "--apply is for --delete, --move or --symlink"),
        (["--delete", "--keep=best", "x"], "--keep=best: expected newest, oldest"),
        (["--delete", "--keep=in:nowhere", "x"], "there is no directory nowhere"),
        (["--delete", "--keep-in=nowhere", "x"], "there is no directory nowhere"),
        (["--move=", "x"], "--move needs a path"),
        (["--move=/proc/self", "/proc"], "lies in /proc"),
    ],
)
def test_what_makes_no_sense(words: list[str], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        dupes_command.run(words, FakeProcess().environment)


def test_a_process_with_an_empty_environment(tree: Path, tmp_path: Path) -> None:
    bare = {"PATH": os.defpath, "HOME": str(tmp_path / "home")}
    done = subprocess.run([*RDC, "dupes", str(tree)], env=bare, capture_output=True)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 7
    assert not (tmp_path / "home").exists()


def test_whoever_reads_may_leave(tree: Path) -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([*RDC, "dupes", "-0", "--no-catalog", tree], stdout=write_end, stderr=-1)
    os.close(write_end)
    assert done.returncode == 128 + signal.SIGPIPE


def test_an_interrupt_ends_it_soon() -> None:
    """The threads stop in the middle of large files, which take some tenths of a second."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as place:
        some = bytes(range(256)) * (1 << 14)
        for name in ("a", "b", "c", "d"):
            with open(f"{place}/{name}", "wb") as file:
                file.writelines(some for _ in range(80))
        with started([*RDC, "dupes", "--no-catalog", place]) as child:
            wait_until(lambda: any(target.startswith(f"{place}/") for target in open_files(child.pid)))
            child.send_signal(signal.SIGINT)
            out, err = child.communicate(timeout=WAIT_SECONDS)
    assert (child.returncode, out, err) == (ExitCode.INTERRUPTED, b"", b"rdc: interrupted\n")
