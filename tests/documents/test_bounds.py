"""A small file of many tiny documents, or of many times its size, fills neither disks nor days."""

from __future__ import annotations

import gzip
import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from rdc.documents.parts import open_parts
from rdc.documents.read import json_lines, text_batch
from rdc.documents.read.text_batch import StoredBound, TextBatch
from rdc.errors import ExitCode, FileError
from rdc.library.similar import similar_documents
from rdc.limits import STORED_DOCUMENT_BYTES, STORED_FILE_BYTES, STORED_SHARE
from rdc.model.similar import DocumentOptions
from rdc.progress import Event, Problem

HOSTILE = 40_000
"""Rows of the hostile file. It is packed to some KB."""

LEAST = 4 << 20


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(text_batch, "STORED_BYTES_LEAST", LEAST)


def rows(texts: Iterable[str]) -> bytes:
    return b"".join([json.dumps({"text": text}).encode() + b"\n" for text in texts])


def honest(count: int) -> bytes:
    rng = random.Random(count)
    return rows(rng.randbytes(40).hex(" ") for _ in range(count))


@pytest.fixture
def files() -> None:
    """The hostile file comes before one that is honest, and packed as well."""
    Path("hostile.jsonl.gz").write_bytes(gzip.compress(rows(["the same"] * HOSTILE), mtime=0))
    Path("plain.jsonl").write_bytes(honest(300))
    Path("packed.jsonl.gz").write_bytes(gzip.compress(honest(301), mtime=0))


@pytest.mark.parametrize("stage", [False, True])
@pytest.mark.usefixtures("files")
def test_the_rest_of_such_a_file_is_left_out(stage: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    append = open_parts.NamelessFile.append

    def noted(file: open_parts.NamelessFile, spans: Any) -> None:
        append(file, spans)
        sizes.append(file.size)

    monkeypatch.setattr(open_parts.NamelessFile, "append", noted)
    events: list[Event] = []
    names = ["hostile.jsonl.gz", "plain.jsonl", "packed.jsonl.gz"]
    options = DocumentOptions(stage="stage" if stage else None)
    report = similar_documents(names, options, reporter=events.append)
    (problem,) = [event for event in events if isinstance(event, Problem)]
    assert problem.path_bytes == b"hostile.jsonl.gz"
    assert problem.code is ExitCode.PARTIAL
    assert "take at most 128 times its size in temporary files, found more" in problem.message
    assert report.exit is ExitCode.PARTIAL
    kept = Counter(one.path_bytes for one in report.kept)
    assert (kept[b"plain.jsonl"], kept[b"packed.jsonl.gz"]) == (300, 301)
    assert 601 <= report.summary.documents < 601 + HOSTILE // 2
    written = sum(path.stat().st_size for path in Path("stage").iterdir()) if stage else max(sizes)
    assert written < 2 * LEAST


def test_what_counts() -> None:
    bound = StoredBound()
    batch = TextBatch.of_files([b"f"], [b"x" * 1000])
    bound.admit(1, 10)
    room = LEAST + STORED_SHARE * STORED_FILE_BYTES
    for _ in range(room // (STORED_DOCUMENT_BYTES + 1000)):
        bound.count(b"f", batch)
    with pytest.raises(FileError, match="f: expected documents that take at most 128 times"):
        bound.count(b"f", batch)
    bound.admit(3, 1 << 20)
    bound.count(b"g", batch)


def test_a_file_that_becomes_much_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of empty lines no document comes, so what documents take does not bound it."""
    monkeypatch.setattr(json_lines, "UNPACKED_BYTES_LEAST", 1 << 20)
    bomb = zstandard.compress(honest(3) + (b" " * 4096 + b"\n") * (50 << 10))
    assert len(bomb) < 20_000
    Path("bomb.jsonl.zst").write_bytes(bomb)
    events: list[Event] = []
    report = similar_documents("bomb.jsonl.zst", reporter=events.append)
    (problem,) = [event for event in events if isinstance(event, Problem)]
    assert "becomes more than 4096 times its size" in problem.message
    assert report.summary.documents == 3
