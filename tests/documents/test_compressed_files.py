"""What is good in a file counts, however the file is named, marked, packed, cut or followed by junk."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import random
import zlib
from pathlib import Path

import pyarrow
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from rdc.documents.read import file_kinds, json_lines
from rdc.documents.read import file_kinds as slice_files
from rdc.documents.read.file_kinds import FileKind, Packing, is_divided, kind_of, packing_of
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.library.similar import document_slice, merge_documents, similar_documents
from rdc.model.scan import ScanSlice
from rdc.model.similar import DocumentOptions
from rdc.progress import Event, Problem
from tests.support.share import examples

MARK = b"\xef\xbb\xbf"


@pytest.fixture(autouse=True)
def inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def line(text: str, **more: object) -> bytes:
    return json.dumps({"text": text, **more}).encode() + b"\n"


def read(name: str, content: bytes, format_: str = "auto") -> tuple[list[int], list[str]]:
    """The rows of the documents, and what was reported."""
    Path(name).write_bytes(content)
    events: list[Event] = []
    report = similar_documents(name, DocumentOptions(format=format_), reporter=events.append)
    problems = [event.message for event in events if isinstance(event, Problem)]
    assert (report.exit is ExitCode.PARTIAL) == bool(problems)
    rows = [one.row for one in report.kept]
    copies = [copy.row for group in report.groups for one in group.documents for copy in one.copies]
    return sorted(rows + copies), problems


ROWS = line("a text") + line("another text")


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        *((name, ROWS) for name in ("a.jsonl", "a.JSONL", "a.NdJson", "a.json", "a.JSON")),
        *(
            (name, gzip.compress(ROWS, mtime=0))
            for name in ("a.jsonl.gz", "a.JSONL.GZ", "a.json.gz", "a.Json.Gz")
        ),
        *((name, zstandard.compress(ROWS)) for name in ("a.ndjson.zst", "A.NDJSON.ZST", "a.json.zst")),
    ],
)
def test_names_of_json_lines(name: str, packed: bytes) -> None:
    assert read(name, packed) == ([1, 2], [])


def test_names_of_parquet() -> None:
    parquet.write_table(pyarrow.table({"text": ["one", "two"]}), "a.PARQUET")
    assert read("a.PARQUET", Path("a.PARQUET").read_bytes()) == ([1, 2], [])


JSON_FILES = {
    line("a text") + line("another"): [1, 2],
    b"\n \n" + line("a text"): [3],
    MARK + line("a text"): [1],
    line("a text").rstrip(): [1],
    line("a text") + b"{bad\n": [1],
    b'{"text": "x", "id": ' + b"9" * 5_000 + b"}\n": [1],
    # One document of its own, as any other file.
    b'{\n  "text": "pretty"\n}\n': [0],
    b'[{"text": "an array"}]\n': [0],
    b'{"other": "no field"}\n{"text": "x"}\n': [0],
    b'"text"\n': [0],
    b"": [0],
    b"{": [0],
    b"\n\n": [0],
}


@pytest.mark.parametrize("content", JSON_FILES)
def test_a_json_file_is_lines_or_one_text(content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1 << 20, 7):
        monkeypatch.setattr(file_kinds, "READ_BYTES", size)
        assert read("a.json", content)[0] == JSON_FILES[content]
    assert read("b.txt", content)[0] == [0]


def test_a_long_first_line_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_kinds, "READ_BYTES", 10)
    monkeypatch.setattr(file_kinds, "LINE_BYTES", 100)
    assert read("a.json", line("x" * 200))[0] == [0]
    assert read("a.json", line("x" * 50))[0] == [1]


@pytest.mark.parametrize("name", ["a", "a.txt", "a.json", "a.parquet", "a.dat.gz", "a.zst"])
def test_a_format_for_every_name(name: str) -> None:
    packed = gzip.compress(ROWS, mtime=0) if name.endswith("gz") else ROWS
    packed = zstandard.compress(ROWS) if name.endswith("zst") else packed
    assert read(name, packed, "jsonl") == ([1, 2], [])
    assert read("a.jsonl", ROWS, "text") == ([0], [])
    with pytest.raises(UsageError, match="format 'csv'"):
        read(name, packed, "csv")


def test_kinds() -> None:
    assert kind_of(b"x.json", "auto") is FileKind.LINES_OR_TEXT
    assert kind_of(b"jsonl", "auto") is FileKind.TEXT
    assert kind_of(b"x.jsonl.bz2", "auto") is FileKind.TEXT
    assert packing_of(b"X.GZ") is Packing.GZIP
    names = (b"a.JSONL", b"a.Parquet", b"a.json", b"a.jsonl.gz")
    assert [is_divided(name, "auto") for name in names] == [True, True, False, False]
    assert is_divided(b"dump", "jsonl")
    assert not is_divided(b"dump.gz", "jsonl")


def test_byte_order_marks() -> None:
    """Programs put one before a file, and joined files have some within."""
    content = MARK + line("one") + MARK + line("two") + line("three")
    assert read("a.jsonl", content) == ([1, 2, 3], [])
    assert read("a.jsonl.gz", gzip.compress(content, mtime=0)) == ([1, 2, 3], [])
    os.mkdir("d")
    Path("d/a").write_bytes(MARK + "größer".encode())
    Path("d/b").write_bytes("größer".encode())
    assert similar_documents("d").summary.copies == 1
    assert read("a.jsonl", "{}".encode("utf-16"))[1] == [
        "a.jsonl: row 1: expected UTF-8, found byte 0xff at byte 1"
    ]


@pytest.mark.parametrize("number", ["9" * 5_000, "-" + "1" * 100_000, "1." + "7" * 50_000, "1e999999", "-0"])
def test_numbers_of_any_length(number: str) -> None:
    good = b'{"text": "a text", "id": [' + number.encode() + b"]}\n"
    assert read("a.jsonl", good + line("another") + good) == ([1, 2, 3], [])
    rows, problems = read("a.jsonl", b'{"text": ' + number.encode() + b"}\n")
    assert rows == []
    assert problems == ["a.jsonl: row 1: expected a text in 'text', found a number"]


def many(count: int) -> bytes:
    chosen = random.Random(count)
    return b"".join(line(" ".join(str(chosen.random()) for _ in range(20))) for _ in range(count))


@pytest.mark.parametrize("junk", [b"junk", b"\x1f", b"\0\0junk", b"x" * 100_000])
@pytest.mark.parametrize("content", [ROWS, many(3_000)], ids=len)
def test_junk_after_gzip(content: bytes, junk: bytes) -> None:
    rows, problems = read("a.jsonl.gz", gzip.compress(content, mtime=0) + junk)
    assert len(rows) == content.count(b"\n")
    assert problems == ["a.jsonl.gz: the bytes after the end of the compressed data are no gzip; left out"]
    assert read("a.jsonl.gz", gzip.compress(content, mtime=0) + bytes(100_000)) == (rows, [])


def test_headers_of_gzip() -> None:
    """Every field that RFC 1952 has, in members one after another."""
    body = zlib.compressobj(wbits=-15)
    raw = body.compress(ROWS) + body.flush()
    trailer = zlib.crc32(ROWS).to_bytes(4, "little") + len(ROWS).to_bytes(4, "little")
    extra, name, comment = b"\x05\0extra", b"a name" + b"x" * 9_000 + b"\0", b"a comment\0"
    fields = {4: extra, 8: name, 16: comment, 2: b"\x12\x34"}
    members = []
    for flags in range(0, 32, 2):
        head = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6)
        given = b"".join(field for flag, field in fields.items() if flags & flag)
        members.append(head + given + raw + trailer)
    assert read("a.jsonl.gz", b"".join(members)) == (list(range(1, 33)), [])
    for head in (b"\x1f\x8b\x07" + bytes(7), b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * (3 << 20)):
        assert read("a.jsonl.gz", head)[0] == []
    spoiled = bytearray(members[0])
    spoiled[-1] ^= 1
    rows, (problem,) = read("a.jsonl.gz", bytes(spoiled))
    assert rows == [1, 2]
    assert "checksum" in problem


@settings(max_examples=examples(25), deadline=None)
@given(st.integers(0, 1 << 30), st.sampled_from([".jsonl.gz", ".jsonl.zst"]))
def test_a_cut_costs_what_is_behind_it(where: int, ending: str) -> None:
    content = many(300)
    packed = gzip.compress(content, 1, mtime=0) if ending.endswith("gz") else zstandard.compress(content)
    cut = where % len(packed)
    Path(f"cut{ending}").write_bytes(packed[:cut])
    found = bytearray()
    with open(f"cut{ending}", "rb") as file, contextlib.suppress(*json_lines.UNPACK_ERRORS):
        for span in json_lines.spans_of(f"cut{ending}".encode(), file):
            found += span
    assert content.startswith(found)
    if ending.endswith("gz"):
        # All that zlib gives for these bytes.
        assert found == zlib.decompressobj(31).decompress(packed[:cut])


def test_damage_costs_little_before_it() -> None:
    content = many(3_000)
    packed = bytearray(gzip.compress(content, mtime=0))
    middle = len(packed) // 2
    packed[middle : middle + 50] = b"\xff" * 50
    rows, problems = read("a.jsonl.gz", bytes(packed))
    whole = zlib.decompressobj(31).decompress(bytes(packed[: middle - json_lines.GZIP_BYTES])).count(b"\n")
    assert rows[:whole] == list(range(1, whole + 1))
    assert any("cannot read on" in problem for problem in problems)


def long_zstd(log: int) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=log, enable_ldm=True)
    packer = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return packer.compress(ROWS) + packer.flush()


def test_long_windows_of_zstd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "WINDOW_SHARE", 1e9)
    for log in (27, 28, 31):
        assert read("a.jsonl.zst", long_zstd(log)) == ([1, 2], [])
    monkeypatch.setattr(json_lines, "WINDOW_BYTES_MOST", 1 << 27)
    assert read("a.jsonl.zst", long_zstd(27)) == ([1, 2], [])
    rows, (problem,) = read("a.jsonl.zst", long_zstd(28))
    assert rows == []
    assert "its window is larger than 128 MiB" in problem
    monkeypatch.setattr(json_lines, "WINDOW_SHARE", 0.0)
    assert read("a.jsonl.zst", long_zstd(27)) == ([1, 2], [])


def test_slices_divide_files_of_any_letter_case(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slice_files, "RANGE_BYTES", 4_000)
    os.mkdir("d")
    content = many(300)
    for name in ("a.JSONL", "b.json", "c.Json.GZ"):
        packed = gzip.compress(content, mtime=0) if name.endswith("GZ") else content
        Path(f"d/{name}").write_bytes(packed)
    parquet.write_table(pyarrow.table({"text": ["one", "two"] * 3_000}), "d/e.PARQUET", row_group_size=50)
    for format_ in ("auto", "jsonl"):
        if format_ == "jsonl":
            os.unlink("d/e.PARQUET")
            Path("d/e.parquet").write_bytes(content)
            Path("d/dump").write_bytes(content)
        options = DocumentOptions(format=format_)
        whole = similar_documents("d", options)
        parts = [f"{format_}{number}.rdcdocs" for number in range(1, 5)]
        for number, part in enumerate(parts, 1):
            document_slice("d", ScanSlice(number, 4), part, options)
        merged = merge_documents(parts, options)
        assert merged.summary == whole.summary
        assert list(merged.kept) == list(whole.kept)
    with pytest.raises(UsageError):
        merge_documents(["auto1.rdcdocs", *parts[1:]])


def test_a_stage_knows_how_files_were_read() -> None:
    Path("dump").write_bytes(ROWS)
    for format_, count in (("auto", 1), ("jsonl", 2), ("auto", 1)):
        report = similar_documents("dump", DocumentOptions(stage="stage", format=format_))
        assert report.summary.documents == count


class Slow:
    """Gives a few bytes at a time."""

    def __init__(self, content: bytes) -> None:
        self.left = content

    def read(self, size: int, /) -> bytes:
        taken, self.left = self.left[: min(size, 3)], self.left[min(size, 3) :]
        return taken


def test_a_stream_that_is_no_file_can_be_read() -> None:
    assert b"".join(json_lines.spans_of(b"a.jsonl.gz", Slow(gzip.compress(ROWS, mtime=0) * 2))) == 2 * ROWS
    with pytest.raises(RdcError, match="no gzip"):
        list(json_lines.spans_of(b"a.jsonl.gz", Slow(gzip.compress(ROWS, mtime=0) + b"junk")))
