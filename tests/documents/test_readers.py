"""Reading of documents: files, JSONL, packed JSONL and Parquet, and what can be wrong with them."""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import zstandard
from pyarrow import parquet

from rdc.documents.read import json_lines, parquet_rows, unit_reader
from rdc.documents.read import json_lines as byte_stream
from rdc.errors import ExitCode, UsageError
from rdc.library.similar import similar_documents
from rdc.model.similar import Document, DocumentOptions, DocumentReport
from rdc.progress import Event, Problem
from tests.documents.corpora import everything, families, found_clusters, write_jsonl

TEXTS = ["a first text", "a second text", "größer, 更多", "", 'line one\nline two\t"quoted"']


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(path: str, **options: Any) -> tuple[DocumentReport, list[str]]:
    """The report and the messages of a search."""
    found: list[Event] = []
    report = similar_documents(path, DocumentOptions(**options), reporter=found.append)
    problems = [event for event in found if isinstance(event, Problem)]
    assert all(one.path_bytes == os.fsencode(path) for one in problems)
    assert (report.exit is ExitCode.PARTIAL) == bool(problems)
    return report, [one.message.removeprefix(f"{path}: ") for one in problems]


def rows(report: DocumentReport) -> list[int]:
    return sorted([one.row for one in report.kept])


def test_forms_hold_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain, gzip, zstd in several frames, and Parquet in all its string types give the same documents."""
    texts = families(12) + TEXTS
    content = write_jsonl(Path("a.jsonl"), texts).read_bytes()
    middle = len(content) // 2
    forms = {
        "b.ndjson": content[:-1],
        "c.jsonl.gz": gzip.compress(content[:middle]) + gzip.compress(content[middle:]),
        "d.jsonl.zst": b"".join(map(zstandard.compress, (content[:middle], b"", content[middle:]))),
    }
    for name, packed in forms.items():
        Path(name).write_bytes(packed)
    kinds = {
        "e": pyarrow.string(),
        "f": pyarrow.large_string(),
        "g": pyarrow.dictionary(pyarrow.int32(), pyarrow.string()),
    }
    for name, kind in kinds.items():
        column = pyarrow.array(texts, pyarrow.string()).cast(kind)
        table = pyarrow.table({"id": range(len(texts)), "text": column})
        parquet.write_table(table, f"{name}.parquet", row_group_size=7)
    first = read("a.jsonl")[0]
    assert first.summary.documents == len(texts)
    monkeypatch.setattr(byte_stream, "READ_BYTES", 100)
    monkeypatch.setattr(parquet_rows, "BATCH_BYTES", 1000)
    for name in ("a.jsonl", *forms, "e.parquet", "f.parquet", "g.parquet"):
        report, messages = read(name)
        assert not messages, name
        assert (found_clusters(report), rows(report)) == (found_clusters(first), rows(first)), name
        assert report.summary == first.summary, name


def test_plain_files() -> None:
    os.mkdir("d")
    for number, text in enumerate(TEXTS):
        Path(f"d/{number}").write_text(text)
    os.symlink("0", "d/link")
    os.link("d/1", "d/other")
    report = similar_documents("d")
    assert [one.path_bytes for one in report.kept] == [b"d/%d" % number for number in range(5)]
    assert [[one.path_bytes for one in group.documents[0].copies] for group in report.groups] == [
        [b"d/other"]
    ]
    assert list(report.kept)[2] == Document(b"d/2", 0, len(TEXTS[2].encode()))


BAD_LINES = {
    b'{"text": 5}': "expected a text in 'text', found a number",
    b'{"text": null}': "expected a text in 'text', found null",
    b'{"text": ["a"]}': "expected a text in 'text', found an array",
    b'{"text": true}': "expected a text in 'text', found true or false",
    b'{"other": "x"}': "expected a field 'text', found none; --field names another",
    b'["text"]': "expected an object, found an array",
    b'"text"': "expected an object, found a text",
    b"17": "expected an object, found a number",
    b'{"text": "a"': "expected an object, found bad JSON at character 13",
    b'{"text": "a"} x': "expected an object, found bad JSON at character 15",
    b'{"text": "\xff"}': "expected UTF-8, found byte 0xff at byte 11",
    b'{"text": "\\ud800"}': "expected text in 'text', found half of a surrogate pair",
    b"[" * 100_000: "expected an object, found values nested too deep",
    b'{"text": ' + b"9" * 5000 + b"}": "expected a text in 'text', found a number",
    b"\0": "expected an object, found bad JSON at character 1",
}


@pytest.mark.parametrize("bad", BAD_LINES, ids=lambda bad: repr(bad[:20]))
def test_bad_lines(bad: bytes) -> None:
    Path("a.jsonl").write_bytes(b'{"text": "one"}\n\n' + bad + b'\n{"text": "two"}\r\n')
    report, messages = read("a.jsonl")
    assert rows(report) == [1, 4]
    (message,) = messages
    assert message.startswith(f"row 3: {BAD_LINES[bad]}")
    assert message.isprintable()
    assert report.summary.left_out == 1


def test_many_bad_lines_are_counted() -> None:
    Path("a.jsonl").write_text('{"text": "one"}\n' + "{}\n" * 1_234)
    report, messages = read("a.jsonl")
    assert len(messages) == 11
    assert messages[-1] == "1,224 more rows could not be used; 1,234 in total"
    assert report.summary.left_out == 1_234


def test_long_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line and a text beyond their limits are named and never in memory whole; those around them count."""
    monkeypatch.setattr(byte_stream, "READ_BYTES", 50)
    monkeypatch.setattr(json_lines, "LINE_BYTES", 1_000)
    monkeypatch.setattr(json_lines, "DOCUMENT_BYTES", 500)
    lines = ["a", "b" * 501, "c", "d" * 5_000, "e", "f" * 1_000]
    write_jsonl(Path("a.jsonl"), lines)
    report, messages = read("a.jsonl")
    assert rows(report) == [1, 3, 5]
    assert messages == [
        "row 2: 501 bytes of text, 500 are the most",
        "row 4: a line of more than 1,000 bytes",
        "row 6: a line of more than 1,000 bytes",
    ]
    monkeypatch.setattr(unit_reader, "DOCUMENT_BYTES", 500)
    Path("plain").write_text("x" * 501)
    assert read("plain")[1] == ["501 bytes of text, 500 are the most"]
    monkeypatch.setattr(parquet_rows, "DOCUMENT_BYTES", 500)
    parquet.write_table(pyarrow.table({"text": ["a", "b" * 501, "c"]}), "a.parquet")
    report, messages = read("a.parquet")
    assert rows(report) == [1, 3]
    assert messages == ["row 2: 501 bytes of text, 500 are the most"]


def test_a_bomb_is_unpacked_in_pieces() -> None:
    """A line that unpacks to 256 MB from some kilobytes never is in memory whole."""
    with zstandard.open("a.jsonl.zst", "wb") as file:
        for _ in range(256):
            file.write(bytes(1 << 20))
    with open("a.jsonl.zst", "rb") as packed:
        sizes = [len(span) for span in byte_stream.spans_of(b"a.jsonl.zst", packed)]
    assert sum(sizes) == 256 << 20
    assert max(sizes) <= 32 << 20


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.zst"])
def test_broken_stream(name: str) -> None:
    """The rows before the damage count. So do other files."""
    chosen = random.Random(1)
    texts = ["".join(chr(chosen.randrange(32, 127)) for _ in range(500)) for _ in range(90)]
    content = write_jsonl(Path("whole.jsonl"), texts).read_bytes()
    packed = gzip.compress(content) if name.endswith("gz") else zstandard.compress(content)
    for broken in (packed[: len(packed) // 2], packed[: len(packed) // 2] + b"x" * 100_000, b"", b"\0" * 100):
        Path(name).write_bytes(broken)
        found: list[Event] = []
        report = similar_documents([name, "whole.jsonl"], reporter=found.append)
        problems = [event for event in found if isinstance(event, Problem)]
        assert report.summary.documents >= 90
        if broken:
            # What the damage is unpacked to may be bad rows.
            (problem,) = [one for one in problems if "cannot read on: " in one.message]
            assert problem.message.startswith(f"{name}: row ")
            assert report.exit is ExitCode.PARTIAL


def test_parquet_rows() -> None:
    """Null and bad UTF-8 are named by row. A column that is missing or no text is named."""
    bad = pyarrow.array([b"one", None, b"three", b"\xff", b"five"], pyarrow.binary()).view(pyarrow.string())
    parquet.write_table(pyarrow.table({"text": bad, "n": range(5), "list": [["a"]] * 5}), "a.parquet")
    report, messages = read("a.parquet")
    assert rows(report) == [1, 3, 5]
    assert messages == [
        "row 2: expected a text, found null",
        "row 4: expected UTF-8, found byte 0xff at byte 1",
    ]
    report, messages = read("a.parquet", field="body")
    assert messages == ["expected a column 'body', found text, n, list; --field names another"]
    assert (report.summary.documents, report.summary.left_out) == (0, 5)
    for field, kind in (("n", "int64"), ("list", "list<element: string>")):
        assert read("a.parquet", field=field)[1] == [
            f"expected texts in '{field}', found {kind}; --field names another"
        ]


def test_broken_parquet() -> None:
    """A row group that cannot be read is named by its rows, and the next one is read."""
    chosen = random.Random(2)
    texts = ["".join(chr(chosen.randrange(32, 127)) for _ in range(100)) for _ in range(300)]
    parquet.write_table(
        pyarrow.table({"text": texts}),
        "a.parquet",
        row_group_size=100,
        use_dictionary=False,
        compression="zstd",
    )
    content = bytearray(Path("a.parquet").read_bytes())
    column = parquet.ParquetFile("a.parquet").metadata.row_group(1).column(0)
    middle = column.data_page_offset + column.total_compressed_size // 2
    content[middle : middle + 500] = bytes(500)
    Path("a.parquet").write_bytes(content)
    report, messages = read("a.parquet")
    assert rows(report) == [*range(1, 101), *range(201, 301)]
    (message,) = messages
    assert message.startswith("rows 101 to 200: cannot read them: ")
    assert report.summary.left_out == 100
    for broken in (b"", b"PAR1", bytes(content[:-100]), b"x" * 1000):
        Path("a.parquet").write_bytes(broken)
        (message,) = read("a.parquet")[1]
        assert message.startswith("cannot read it as Parquet: ")


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.parquet").write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        UsageError, match=r"a\.parquet: reading Parquet needs pyarrow \(python3 -m pip install"
    ):
        similar_documents("a.parquet")


def test_hostile_names() -> None:
    name = b"\x1b[2J\xff\n.jsonl"
    with open(name, "w") as file:
        file.write(json.dumps({"text": "a"}) + "\n{}\n")
    found: list[Event] = []
    report = similar_documents(name, part="a.rdcdocs", reporter=found.append)
    assert [one.path_bytes for one in report.kept] == [name]
    (problem,) = [event for event in found if isinstance(event, Problem)]
    assert problem.message.isprintable()
    from rdc.library.similar import merge_documents

    assert everything(merge_documents("a.rdcdocs")) == everything(report)


def test_missing_path() -> None:
    report, messages = read("gone")
    assert len(messages) == 1
    assert report.summary.left_out == 1
