"""`rdc similar --text` and `rdc merge` of its parts: options, forms of output, exit codes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.survey import merge_command as merge
from rdc.survey import similar_command as similar
from tests.documents.corpora import edited, words, write_jsonl
from tests.support.running.fake_environment import FakeProcess

HOSTILE = b"\x1b[2J\xff\n.txt"


@pytest.fixture(autouse=True)
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two documents that resemble each other, a copy of one, and others; one name is hostile."""
    monkeypatch.chdir(tmp_path)
    one, other = " ".join(words(1, 100)), " ".join(edited(1, 100, 1, 1))
    os.mkdir("docs")
    write_jsonl(Path("docs/a.jsonl"), [one, "something else", one])
    with open(b"docs/" + HOSTILE, "w") as file:
        file.write(other)


def run(*given: str, code: ExitCode = ExitCode.OK, verb: Any = similar) -> FakeProcess:
    process = FakeProcess()
    assert verb.run(list(given), process.environment) is code
    return process


def test_for_people() -> None:
    process = run("--text", "docs")
    lines = process.out.splitlines()
    assert [re.sub(r"^ *[\d.]+ +~[\d.]+ +[\d.]+ K?B +", "", line) for line in lines] == [
        "docs/\\x1b[2J\\xff\\x0a.txt",
        "docs/a.jsonl:1",
        f"{'':23}= docs/a.jsonl:3",
    ]
    assert all(90 < float(line.split()[0]) < 96 for line in lines[:2])
    assert process.err == (
        "1 group of 3 documents, out of 4; 2 to keep; 1 copy; 1 pair compared, 1 similar\n"
    )
    assert run("--text", "-q", "--threshold=1", "docs/a.jsonl").err == ""
    assert run("--text", "docs/a.jsonl", "--threshold=1").out.startswith("100.0 ~100.0")


def events(process: FakeProcess) -> list[dict[str, Any]]:
    assert process.out.isascii()
    found = [json.loads(line) for line in process.out.splitlines()]
    assert all(event.pop("v") == 1 for event in found)
    return [event for event in found if event["event"] != "progress"]


def test_events() -> None:
    start, group, summary = events(run("--text", "--json", "docs"))
    assert start == {"event": "start"}
    assert list(group) == ["event", "count", "documents"]
    assert group["count"] == 3
    first, second = group["documents"]
    assert list(first) == ["path", "path_b64", "size", "resemblance", "estimate", "like"]
    assert list(second) == ["path", "row", "size", "resemblance", "estimate", "like", "copies"]
    assert second["copies"] == [{"path": "docs/a.jsonl", "row": 3}]
    assert {"documents": 4, "kept": 2, "exit": 0}.items() <= summary.items()
    write_jsonl(Path("bad.jsonl"), [5])
    _, error, _ = events(run("--text", "--json", "bad.jsonl", code=ExitCode.PARTIAL))
    assert (error["event"], error["code"], error["path"]) == ("error", 23, "bad.jsonl")
    assert error["message"] == "bad.jsonl: row 1: expected a text in 'text', found a number"


def test_results_in_files() -> None:
    run("--text", "-q", "docs", "-o", "a.rdcdocs", "--write-kept=kept.jsonl", "--html=page.html")
    kept = [json.loads(line) for line in Path("kept.jsonl").read_text().splitlines()]
    assert [(line["path"], line.get("row")) for line in kept] == [
        (os.fsdecode(b"docs/" + HOSTILE).encode("utf-8", "surrogateescape").decode("utf-8", "replace"), None),
        ("docs/a.jsonl", 2),
    ]
    page = Path("page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert page.count('<span class="bar"') >= 2
    assert "docs/a.jsonl:1" in page
    assert "<script" not in page
    assert "default-src &#x27;none&#x27;" in page or "default-src 'none'" in page
    write_jsonl(Path("<x>.jsonl"), [" ".join(words(1, 100))])
    found = run("--text", "<x>.jsonl", "--against=a.rdcdocs", "--html=page.html", "--write-kept=kept.jsonl")
    assert found.out.endswith("<x>.jsonl:1 -> docs/a.jsonl:1\n")
    assert found.err.startswith("1 document with one like it in the older corpus, out of 1; 0 to keep")
    assert "<x>" not in Path("page.html").read_text()
    assert Path("kept.jsonl").read_text() == ""


def test_merge() -> None:
    run("--text", "-q", "docs/a.jsonl", "-o", "a.rdcdocs")
    run("--text", "-q", os.fsdecode(b"docs/" + HOSTILE), "-o", "b.rdcdocs")
    whole = run("--text", "docs", "--write-kept=one.jsonl")
    both = run("b.rdcdocs", "a.rdcdocs", "--write-kept=two.jsonl", "-o", "c.rdcdocs", verb=merge)
    assert (both.out, both.err) == (whole.out, whole.err)
    assert Path("one.jsonl").read_bytes() == Path("two.jsonl").read_bytes()
    assert run("c.rdcdocs", verb=merge).out == whole.out
    json_events = [events(run("--text", "--json", "docs")), events(run("c.rdcdocs", "--json", verb=merge))]
    for found in json_events:
        del found[-1]["seconds"]
    assert json_events[0] == json_events[1]
    assert run("c.rdcdocs", "--threshold=1", "-q", verb=merge).out.count("\n") == 2


def test_kinds_of_parts_do_not_mix() -> None:
    from rdc.library.scans import scan

    run("--text", "-q", "docs", "-o", "a.rdcdocs")
    scan("docs", catalog=None, part="a.rdcscan")
    for names in (["a.rdcdocs", "a.rdcscan"], ["a.rdcscan", "a.rdcdocs"]):
        with pytest.raises(UsageError, match=r"a\.rdcscan: no part of documents, and a\.rdcdocs is one"):
            run(*names, verb=merge)
    with pytest.raises(UsageError, match="--memory: these are parts of documents"):
        run("a.rdcdocs", "--memory=1g", verb=merge)
    for option in ("--write-kept=x", "--against=x", "--threshold=0.5"):
        with pytest.raises(UsageError, match="these are parts of scans"):
            run("a.rdcscan", option, verb=merge)
    with pytest.raises(RdcError, match=r"docs/a\.jsonl: expected a part that rdc similar --text -o wrote"):
        run("--text", "docs", "--against=docs/a.jsonl")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--text", "--to=x", "docs"], "--to and --text exclude each other"),
        (["--text", "--csv", "docs"], "--csv and --text exclude each other"),
        (["--write-kept=x", "docs"], "--write-kept: it needs --text"),
        (["--field=x", "docs"], "--field: it needs --text"),
        (["--text", "--threshold=0.01", "docs"], "of documents, a part from 0.1 to 1"),
        (["--text", "--threshold=2", "docs"], "of documents, a part from 0.1 to 1"),
        (["--text", "--shingle=lines", "docs"], "words or chars is expected"),
        (["--text", "--field=", "docs"], "--field needs a value"),
        (["--text", "-o", "x", "--write-kept=./x", "docs"], "two results cannot go to one file"),
        (["--text", "--write-kept=gone/x", "docs"], "cannot write it"),
        (
            ["--text", "--stage=docs/a.jsonl", "docs"],
            "docs/a.jsonl: cannot make the directory: Not a directory",
        ),
    ],
)
def test_contradictions(given: list[str], message: str) -> None:
    with pytest.raises(RdcError, match=re.escape(message)):
        run(*given)


def test_in_its_own_process() -> None:
    """Two runs with one stage, other numbers of threads and another hash seed print the same bytes."""
    outputs = set()
    for seed, cpus in (("1", "0"), ("2", "0,1")):
        done = subprocess.run(
            ["taskset", "-c", cpus, sys.executable, "-m", "rdc", "similar", "--text", "--stage=st", "docs"],
            capture_output=True,
            check=False,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.returncode == 0, done.stderr
        outputs.add(done.stdout + done.stderr)
    assert len(outputs) == 1
    assert len(os.listdir("st")) == 2


def test_slices() -> None:
    """Each writes its part and says so; the merge prints what one search prints."""
    whole = run("--text", "docs", "--write-kept=one.jsonl")
    for number in (1, 2):
        done = run("--text", f"--slice={number}/2", "-o", f"{number}.rdcdocs", "docs")
        assert done.out == ""
        assert re.fullmatch(
            rf"slice {number}/2: \d documents?, .* of text; rdc merge adds slices up\n", done.err
        )
    both = run("2.rdcdocs", "1.rdcdocs", "--write-kept=two.jsonl", verb=merge)
    assert (both.out, both.err) == (whole.out, whole.err)
    assert Path("one.jsonl").read_bytes() == Path("two.jsonl").read_bytes()
    Path("bad.txt").write_bytes(b"\xff")
    done = run("--text", "--slice=1/1", "-o", "1.rdcdocs", "bad.txt", code=ExitCode.PARTIAL)
    assert "bad.txt: expected UTF-8" in done.err
    assert done.err.endswith(
        "slice 1/1: 0 documents, 0 B of text; 1 could not be read; rdc merge adds slices up\n"
    )
    assert run("--text", "-q", "--slice=1/1", "-o", "1.rdcdocs", "docs").err == ""


@pytest.mark.parametrize(
    "option", ["--write-kept=x", "--against=x", "--html=x", "--threshold=0.5", "--json", "--stage=x"]
)
def test_what_a_slice_cannot_do_is_said(option: str) -> None:
    with pytest.raises(UsageError, match=rf"{option.partition('=')[0]} and --slice exclude each other; "):
        run("--text", option, "--slice=1/2", "-o", "p", "docs")
    assert not os.path.exists("p")


def test_options_of_slices() -> None:
    for given, message in (
        (["--slice=1/2"], "--slice=1/2 needs -o, such as: -o 1.rdcdocs"),
        (["--slice=3/2", "-o", "p"], "--slice=3/2: slice 3/2: slices are numbered"),
        (["--slice=x", "-o", "p"], "--slice=x: a slice and their number"),
        (["--slices=2"], "--slices needs --cluster"),
        (["--cluster=processes:2"], "--cluster needs -o, a directory"),
        (["--cluster=processes:2", "-o", "p", "--slice=1/2"], "leave --slice out"),
        (["--cluster=processes:2", "-o", "p", "--stage=s"], "--stage and --cluster exclude each other"),
        (["--cluster=ray:local", "-o", "p"], "docs: expected an absolute path"),
        (["--cluster=what", "-o", "p"], "--cluster: expected processes:N"),
    ):
        with pytest.raises(UsageError, match=re.escape(message)):
            run("--text", *given, "docs")
    with pytest.raises(UsageError, match="--slice: it needs --text"):
        run("--slice=1/2", "docs")


def test_a_cluster_of_processes() -> None:
    whole = run("--text", "docs", "--write-kept=one.jsonl")
    done = run(
        "--text", "--cluster=processes:1", "--slices=3", "-o", "parts", "--write-kept=two.jsonl", "docs"
    )
    assert (done.out, done.err) == (whole.out, whole.err)
    assert Path("one.jsonl").read_bytes() == Path("two.jsonl").read_bytes()
    assert sorted(os.listdir("parts")) == [f"slice-{number}-of-3.rdcdocs" for number in (1, 2, 3)]
    again = run("--text", "--cluster=processes:1", "-o", "parts", "--json", "docs")
    assert events(again)[-1]["documents"] == 4
    assert sorted(os.listdir("parts")) == [f"slice-{number}-of-3.rdcdocs" for number in (1, 2, 3)]


def test_urls_of_object_stores() -> None:
    for given in (["s3://user:hidden@bucket/x"], ["gs://bucket"], ["docs", "http://host/x"]):
        with pytest.raises(UsageError, match=r"://: expected s3://BUCKET/NAME; credentials come") as caught:
            run("--text", *given)
        assert "hidden" not in str(caught.value)
