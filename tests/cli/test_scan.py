"""`rdc scan` and `rdc merge` on the command line: options, outputs, exit codes and signals."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import rdc
from rdc.cli import main
from rdc.errors import UsageError
from rdc.model.scan import DEFAULT_MEMORY, ScanOptions, ScanSlice
from rdc.survey.scan_command import parse_scan, read_scan
from tests.support.running.fake_environment import FakeProcess
from tests.support.trees.mixed_tree import mixed_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    mixed_tree(tmp_path / "t")
    return tmp_path / "t"


def run(*words: str | Path, terminal: bool = False) -> tuple[int, str, str]:
    process = FakeProcess(environ={"TERM": "xterm"}, terminal=terminal)
    code = main.run([str(word) for word in words], process.environment)
    return code, process.out, process.err


def options(*words: str) -> ScanOptions:
    return read_scan(parse_scan(["x", *words]), lambda _: b"").options


def test_what_the_options_mean() -> None:
    assert options() == ScanOptions()
    assert options("--memory=2g").memory == 2 << 30
    assert options("--memory", "300MiB").memory == 300 << 20
    assert options("--time=30m").seconds == 1800
    assert options("--time=1.5").seconds == 1.5
    assert options("--sample=10%").sample == 0.1
    assert options("--sample=.25", "--seed=7").sample == 0.25
    assert options("--seed=7").seed == 7
    assert options("--slice=3/8", "-o=x").slice == ScanSlice(3, 8)
    assert options("--shift=8").shift == 8
    assert options("-x", "--no-zstd") == ScanOptions(one_file_system=True, compress=False)
    assert options("--level=fixed-4096", "--level=fixed-4096").fixed == ("fixed-4096",)
    assert ScanOptions().memory == DEFAULT_MEMORY


NONSENSE = [
    *["--memory=1k", "--memory=x", "--memory=99999999t", "--time=0", "--time=5w", "--sample=0", "--sample=2"],
    *["--sample=%", "--sample=", "--seed=-1", "--level=cdc-512", "--csv=x", "--parquet=", "-o="],
    *["--json --csv=types", "--wat", "--catalog=", "--slice=1/2", "--shift=33", "--shift=-1", "--shift=x"],
    *["--slice=0/4 -o=x", "--slice=5/4 -o=x", "--slice=1 -o=x", "--slice= -o=x", "--slice=1/9999999 -o=x"],
]


@pytest.mark.parametrize("words", NONSENSE)
def test_nonsense_is_named(words: str) -> None:
    with pytest.raises(UsageError) as raised:
        read_scan(parse_scan(["x", *words.split()]), lambda _: b"")
    assert re.split("[ =]", words)[0] in str(raised.value)


def test_what_means_nothing_for_an_object_store_is_named() -> None:
    for words, expected in (
        (("-x", "s3://bucket/x"), "-x is for file systems, and a store has none"),
        (("gs://bucket/x",), "gs://: expected s3://BUCKET/NAME"),
    ):
        code, out, err = run("scan", "--no-catalog", *words)
        assert (code, out, err.count("\n")) == (1, "", 1)
        assert expected in err


def test_a_scan_and_its_forms(tree: Path) -> None:
    code, out, err = run("scan", "--no-catalog", tree)
    assert (code, err) == (0, "")
    assert re.fullmatch(r"16 KiB chunks save \d+ %, zstd after them \d+ %", out.splitlines()[0])
    code, out, err = run("scan", "--no-catalog", "--json", tree)
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["bytes"] == rdc.scan([tree], catalog=None).bytes
    code, out, _ = run("scan", "--no-catalog", "--csv=levels", "--no-zstd", tree)
    assert out.splitlines()[0].startswith("name,mean_bytes,chunks")
    assert len(out.splitlines()) == 5
    assert run("scan", "--no-catalog", "--exclude=*", "--json", tree)[0] == 0


def test_problems_are_told_and_counted(tree: Path) -> None:
    code, out, err = run("scan", "--no-catalog", tree, tree / "gone")
    assert code == 23
    assert err.count("gone: cannot open it") == 1
    assert "1 problem" in out
    code, _, err = run("scan")
    assert code == 1
    assert "needs a directory" in err
    assert run("scan", "--help")[1].startswith("Usage: rdc scan")
    assert run("merge", "--help")[1].startswith("Usage: rdc merge")


def test_what_cannot_be_written_is_told_before_anything_is_read(
    tree: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for word in (f"-o={tmp_path}", f"--output={tmp_path}/none/part", f"--html={tmp_path}"):
        code, out, err = run("scan", "--no-catalog", word, tree)
        assert (code, out) == (11, ""), word
        assert "cannot write it" in err and "gone" not in err
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    code, out, err = run("scan", "--no-catalog", f"--parquet={tmp_path}/out", tree)
    assert (code, out) == (1, "")
    assert "pip install pyarrow" in err


def test_a_page_replaces_only_a_page(tree: Path, tmp_path: Path) -> None:
    target = tmp_path / "notes.html"
    target.write_text("<title>my notes</title>")
    code, out, err = run("scan", "--no-catalog", f"--html={target}", tree)
    assert (code, out) == (1, "") and "expected a page of a scan" in err
    assert target.read_text() == "<title>my notes</title>"
    page = tmp_path / "page.html"
    for _ in range(2):
        code, _, err = run("scan", "--no-catalog", f"--html={page}", tree)
        assert code == 0, err


def test_the_report_is_shown_even_where_its_file_fails(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, out, err = run("scan", "--no-catalog", f"--parquet={tmp_path}/file/x", tree)
    assert code == 11
    assert "chunks save" in out and "cannot write the report" in err


def test_notices_are_not_shown_where_only_errors_are_wanted(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    assert "rdc: note: " in run("scan", "--no-catalog", tree)[2]
    assert run("scan", "-q", "--no-catalog", tree)[2] == ""


def test_a_bar_appears_on_a_terminal(tree: Path) -> None:
    process = FakeProcess(environ={"TERM": "xterm"}, terminal=True)
    process.clock.step = 0.2
    assert main.run(["scan", "--no-catalog", str(tree)], process.environment) == 0
    assert "reading" in process.err


def test_merge(tree: Path, tmp_path: Path) -> None:
    parts = [tmp_path / "a.rdcscan", tmp_path / "b.rdcscan"]
    for part, folder in zip(parts, ("a", "b"), strict=True):
        assert run("scan", "--no-catalog", "-q", "-o", part, tree / folder)[0] == 0
    both = tmp_path / "both.rdcscan"
    code, out, err = run("merge", "--json", "-o", both, *parts)
    assert (code, err) == (0, "")
    merged = json.loads(out)
    whole = json.loads(run("scan", "--no-catalog", "--json", tree / "a", tree / "b")[1])
    # Only the scan of both trees sees two of the hard links.
    assert merged["files"] - 2 == whole["files"]
    for one, other in zip(merged["levels"][1:], whole["levels"][1:], strict=True):
        assert one["unique_bytes"] == other["unique_bytes"]
    assert json.loads(run("merge", "--json", both)[1]) == merged
    parts[0].write_bytes(parts[0].read_bytes()[:-9])
    for words, code, message in (
        ([*parts], 12, "a.rdcscan: damaged"),
        ([tmp_path / "none"], 11, "none: cannot read the part"),
        ([], 1, "needs parts"),
        (["--sample=1", both], 1, "unknown option"),
    ):
        found, _, err = run("merge", *words)
        assert found == code
        assert message in err


def test_the_library_form(tree: Path) -> None:
    report = rdc.scan([tree], rdc.ScanOptions(compress=False), catalog=None)
    assert isinstance(report, rdc.ScanReport)
    assert (
        "rich"
        not in subprocess.run(
            [sys.executable, "-c", "import rdc, sys; rdc.ScanOptions; print(*sys.modules)"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
    )


def test_each_kernel_scans_the_same(tmp_path: Path) -> None:
    drawn = random.Random(5)
    text = drawn.randbytes(30_000)
    for name, content in (("a", text), ("b", text[1000:]), ("c", b"x" * 50_000)):
        (tmp_path / name).write_bytes(content)
    words = [sys.executable, "-m", "rdc", "scan", "--no-catalog", "--json", str(tmp_path)]
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    both = [
        subprocess.run(words, env={**environ, **more}, capture_output=True, check=True).stdout
        for more in ({}, {"RDC_KERNEL": "c"})
    ]
    assert both[0] == both[1]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_scan_reports_what_it_read(tmp_path: Path, number: int) -> None:
    drawn = random.Random(1)
    # More files than the batch that rdc finishes after the signal.
    for index in range(1500):
        (tmp_path / f"{index}").write_bytes(drawn.randbytes(2_000))
    # The process signals itself in the middle, so the test depends on no timing.
    stopped = (
        "import os, sys\nfrom rdc.catalog import small_files\nfrom rdc.cli.main import entry\n"
        "original, calls = small_files.read_contents, []\n"
        "def read_contents(*a):\n"
        " calls.append(1)\n"
        f" len(calls) == 2 and os.kill(os.getpid(), {int(number)})\n return original(*a)\n"
        "small_files.read_contents = read_contents\nentry()\n"
    )
    process = subprocess.run(
        [sys.executable, "-c", stopped, "scan", "--no-catalog", "--json", "--no-zstd", str(tmp_path)],
        capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    out, err = process.stdout, process.stderr
    assert (process.returncode, err) == (20, b"")
    document = json.loads(out)
    assert document["coverage"]["reason"] == "interrupted"
    assert 0 < document["files"] < 1500
    assert document["headline"].endswith(", of what was read")
    assert {level["bytes"] for level in document["levels"]} == {document["bytes"]}
