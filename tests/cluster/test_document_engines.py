"""`rdc similar --text --cluster` on engines with two workers each: the bytes of one search, whatever dies.

tests/cluster/test_engines.py has the engines themselves, with scans. tests/cluster/test_object_engines.py has
Dask and Ray's client server.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.cluster.run_program import program
from tests.documents.corpora import families
from tests.documents.sliced_corpus import write_corpus


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Some hundred documents. One file is large enough for three slices to share it."""
    write_corpus(tmp_path / "tree")
    with (tmp_path / "tree" / "large.jsonl").open("w") as file:
        for number, text in enumerate(families(120)):
            file.write(json.dumps({"text": f"{text} row {number}", "padding": "x" * 90_000}) + "\n")
    assert (tmp_path / "tree" / "large.jsonl").stat().st_size > 12 << 20
    return tmp_path / "tree"


def search(tmp_path: Path, *words: str | Path) -> tuple[str, bytes, list[str]]:
    """The groups, what is kept, and the messages in order of the alphabet."""
    done = program(tmp_path, "rdc", "similar", "--text", f"--write-kept={tmp_path / 'keep'}", *words)
    assert done.returncode == 23, done.stderr
    return done.stdout, (tmp_path / "keep").read_bytes(), sorted(done.stderr.splitlines())


def test_processes_write_the_groups_of_one_search(tree: Path, tmp_path: Path) -> None:
    whole = search(tmp_path, tree)
    out = tmp_path / "parts"
    assert search(tmp_path, "--cluster=processes:2", "-o", out, tree) == whole
    assert sorted(os.listdir(out)) == [f"slice-{number}-of-8.rdcdocs" for number in range(1, 9)]
    # Again, from the parts that are there.
    before = {name: (out / name).stat().st_mtime_ns for name in os.listdir(out)}
    assert search(tmp_path, "--cluster=processes:2", "-o", out, tree) == whole
    assert {name: (out / name).stat().st_mtime_ns for name in os.listdir(out)} == before


@pytest.mark.sampled(2)
@pytest.mark.parametrize("url", ["processes:2", "ray:local"], indirect=True)
def test_a_killed_worker_changes_nothing(tree: Path, tmp_path: Path, url: str) -> None:
    (tmp_path / "parts").mkdir()
    marks, out = tmp_path / "marks", tmp_path / "parts"
    done = program(tmp_path, "tests.cluster.killed_search", url, tree, out, marks)
    whole = program(tmp_path, "tests.cluster.killed_search", "none", tree, tmp_path, marks)
    assert done.stdout == whole.stdout != "", done.stderr
    assert os.listdir(marks) == ["0"]


def test_a_sample_of_the_soak(tmp_path: Path) -> None:
    done = program(tmp_path, "scripts.soak_documents", "--documents=400", "--slices=4", "--engines=processes")
    assert done.returncode == 0, done.stderr
    assert "processes: groups, kept, part equal those of one search, to the byte" in done.stdout
