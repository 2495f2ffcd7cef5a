"""What reads documents again after a search: excerpts of differences, and the copy without
near-duplicates."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.documents.reread import clean_copy, differences, parquet_copy
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.library.similar import merge_documents, similar_documents
from rdc.model.similar import DocumentOptions, TextDifference
from rdc.progress import Event, Problem
from tests.documents.corpora import edited, families, words, write_jsonl
from tests.support.running.syncing import command

WORDS = st.lists(st.sampled_from(["a", "b", "cc", "[d]", "\x1b[2J", "\u202e", "e" * 300]), max_size=200)


@given(WORDS, WORDS, st.booleans())
def test_differences_are_short_and_true(one: list[str], other: list[str], by_characters: bool) -> None:
    joint = "" if by_characters else "\n "
    text, like = joint.join(one), joint.join(other)
    found = differences.differences(text, like, by_characters=by_characters)
    same = text == like if by_characters else one == other
    assert (found == ()) == same
    assert len(found) <= differences.SHOWN
    flat = (text, like) if by_characters else (" ".join(one), " ".join(other))
    for difference in found:
        assert difference.here != difference.like or "…" in difference.here
        for part, most in (
            (difference.before, differences.CONTEXT_CHARACTERS),
            (difference.after, differences.CONTEXT_CHARACTERS),
            (difference.here, differences.DIFFERENT_CHARACTERS),
            (difference.like, differences.DIFFERENT_CHARACTERS),
        ):
            assert len(part) <= most
        assert difference.here.removesuffix("…") in flat[0]
        assert difference.like.removesuffix("…") in flat[1]
        for whole in flat:
            assert difference.before.removeprefix("…") in whole
            assert difference.after.removesuffix("…") in whole


@pytest.mark.parametrize(
    ("text", "like", "expected"),
    [
        ("a b c", "a x c", (TextDifference("a", "b", "x", "c"),)),
        ("a b c", "a c", (TextDifference("a", "b", "", "c"),)),
        ("a\tb", "a  b\n", ()),
        ("a b", "a b c", (TextDifference("a b", "", "c", ""),)),
        ("", "x", (TextDifference("", "", "x", ""),)),
        (" ".join(words(1)), " ".join(["n", *words(1)]), 1),
        (" ".join(edited(1, 500, 90, 1)), " ".join(words(1, 500)), 3),
    ],
)
def test_known_differences(text: str, like: str, expected: tuple[TextDifference, ...] | int) -> None:
    found = differences.differences(text, like)
    assert (len(found) if isinstance(expected, int) else found) == expected


def corpus(place: Path) -> Path:
    """Near-duplicates across files of every kind, with rows that are no documents in between."""
    (place / "in" / "deep").mkdir(parents=True)
    texts = families(12)
    lines = [json.dumps({"id": at, "text": text, "x": [1.5]}, indent=None) for at, text in enumerate(texts)]
    plain = "\ufeff" + "\r\n".join([lines[0], "", "no json", *lines[1:20], '{"text": 5}', *lines[20:]])
    (place / "in" / "a.jsonl").write_bytes(plain.encode())
    with gzip.open(place / "in" / "deep" / "b.jsonl.gz", "wb") as file:
        file.write("\n".join([*reversed(lines), json.dumps({"text": "alone here"})]).encode())
    (place / "in" / "deep" / "c.txt").write_bytes(b"\xef\xbb\xbfa plain text of its own")
    (place / "in" / "d.txt").write_text(texts[0])
    return place / "in"


def written(directory: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(directory)): gzip.decompress(path.read_bytes())
        if path.suffix == ".gz"
        else path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def test_a_clean_copy_has_what_stays_as_it_came(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = written(corpus(tmp_path))
    report = similar_documents("in", DocumentOptions(clean="new/out", threshold=0.5))
    assert report.exit is ExitCode.PARTIAL  # rows without a text
    kept: dict[str, list[int]] = {}
    for document in report.kept:
        kept.setdefault(document.path, []).append(document.row)
    found = written(tmp_path / "new" / "out")
    assert set(found) == set(kept) and set(found) < {f"in/{name}" for name in before}
    for name, rows in kept.items():
        source = before[name.removeprefix("in/")]
        lines = source.split(b"\n")
        assert found[name] == (b"".join(lines[row - 1] + b"\n" for row in rows) if rows != [0] else source)
    assert written(tmp_path / "in") == before
    again = similar_documents("new/out", DocumentOptions(threshold=0.5))
    assert again.summary.kept == again.summary.documents == report.summary.kept
    assert again.exit is ExitCode.OK


@pytest.mark.parametrize("group_bytes", [1, 1 << 20])
def test_a_clean_copy_of_parquet(group_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pa: Any = pytest.importorskip("pyarrow")
    pq: Any = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(parquet_copy, "GROUP_BYTES", group_bytes)
    monkeypatch.setattr(parquet_copy, "BATCH_DOCUMENTS", 7)
    texts = families(12)
    columns = {
        "id": pa.array(range(len(texts)), pa.int32()),
        "body": pa.array([None if at == 5 else text for at, text in enumerate(texts)]).dictionary_encode(),
        "nested": pa.array([{"a": [at, None]} for at in range(len(texts))]),
    }
    table = pa.table(columns).replace_schema_metadata({"made": "by a test"})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=9, compression="zstd")
    options = DocumentOptions(field="body", clean=str(tmp_path / "out"), threshold=0.5)
    report = similar_documents(tmp_path / "a.parquet", options)
    rows = [document.row - 1 for document in report.kept]
    assert 0 < len(rows) < len(texts) - 1
    (file,) = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    found = pq.read_table(file)
    assert found.to_pylist() == table.take(rows).to_pylist()
    assert found.schema.equals(pq.read_table(tmp_path / "a.parquet").schema, check_metadata=True)
    assert pq.ParquetFile(file).metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_file_that_changed_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is reported and left out, the others are copied, and nothing half written stays."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("a", 1), ("b", 2), ("c", 3), ("d", 4)):
        write_jsonl(tmp_path / f"{name}.jsonl", [" ".join(words(10 * seed + at)) for at in range(3)])
    Path("e.txt").write_text("one text")

    def change(event: Event, /) -> None:
        found.append(event)
        if getattr(event, "phase", "") == "write" and not changed:
            changed.append(True)
            lines = Path("b.jsonl").read_text().splitlines(keepends=True)
            Path("b.jsonl").write_text("".join([lines[0], lines[1].replace("word", "w"), lines[2]]))
            Path("c.jsonl").write_text("".join(Path("c.jsonl").read_text().splitlines(keepends=True)[:2]))
            Path("d.jsonl").unlink()
            Path("e.txt").write_text("another")

    found: list[Event] = []
    changed: list[bool] = []
    names = ["a.jsonl", "b.jsonl", "c.jsonl", "d.jsonl", "e.txt"]
    report = similar_documents(names, DocumentOptions(clean="out"), reporter=change)
    assert [str(path) for path in Path("out").rglob("*")] == ["out/a.jsonl"]
    assert Path("out/a.jsonl").read_bytes() == Path("a.jsonl").read_bytes()
    problems = [one for one in found if isinstance(one, Problem)]
    assert [one.path for one in problems] == names[1:]
    assert all(one.message.endswith("; it is missing in out") for one in problems)
    assert report.exit is ExitCode.VANISHED


def test_a_copy_never_replaces_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "a.jsonl", families(3))
    Path("full").mkdir()
    Path("full/x").write_text("mine")
    Path("file").write_text("mine")
    for name, why in (
        ("full", "found one with files"),
        ("file", "found a file"),
        (".", "found one with files"),
    ):
        ended = command("similar", "--text", f"--clean={name}", "a.jsonl")
        assert ended.code == 1 and why in ended.err and ended.err.count("\n") == 1
    made_meanwhile = Path("out", "a.jsonl")

    def make(event: Event, /) -> None:
        if getattr(event, "phase", "") == "write" and not made_meanwhile.exists():
            made_meanwhile.parent.mkdir(exist_ok=True)
            made_meanwhile.write_text("mine")

    with pytest.raises(UsageError, match="expected nothing there"):
        similar_documents("a.jsonl", DocumentOptions(clean="out"), reporter=make)
    assert made_meanwhile.read_text() == "mine"
    os.symlink("full", "link")
    assert command("similar", "--text", "--clean=link", "a.jsonl").code == 1
    assert Path("full/x").read_text() == "mine"
    long = tmp_path / "nothing" / ("n" * 300)
    assert command("similar", "--text", f"--clean={long}", "a.jsonl").code == ExitCode.FILE_IO


def test_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files keep their paths below the directory, and no two get one place."""
    place = tmp_path / "here"
    place.mkdir()
    monkeypatch.chdir(place)
    for name in ("a.txt", "../a.txt", "b.txt"):
        Path(name).write_text(f"text of {name}")
    for number, names in enumerate((["a.txt", "../a.txt"], ["b.txt", str(tmp_path / "a.txt"), "a.txt"])):
        options = DocumentOptions(clean=f"out{number}")
        if number == 0:
            with pytest.raises(UsageError, match=r"a\.txt and a\.txt would get the same place"):
                similar_documents(names, options)
            assert not Path("out0").exists()
        else:
            similar_documents(names, options)
            assert Path(f"out1{tmp_path}/a.txt").read_text() == "text of ../a.txt"
    Path("d").mkdir()
    Path("d/c").write_text("inside")
    Path("../d").write_text("outside")
    with pytest.raises(UsageError, match="would get the same place"):
        similar_documents(["../d", "d"], DocumentOptions(clean="out2"))


def test_excerpts_of_every_kind_of_output(tmp_path: Path) -> None:
    text = " ".join(words(5, 80))
    bad = f"{text} \x1b[31m<script>\u202e\\\n {text[:30]}"
    path = write_jsonl(tmp_path / "a.jsonl", [f"{text} plain {text[:30]}", bad, "alone"])
    page = tmp_path / "p.html"
    ended = command("similar", "--text", "--excerpts", f"--html={page}", path)
    assert ended.code == 0
    assert "  - …" in ended.out and "[plain]" in ended.out
    assert r"[\x1b[31m<script>\u202e\\]" in ended.out
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f\u202e]", ended.out)
    shown = page.read_text()
    assert r"[\x1b[31m&lt;script&gt;\u202e\\]" in shown and "<script>" not in shown
    assert "--excerpts" in shown
    events = [
        json.loads(line)
        for line in command("similar", "--text", "--excerpts", "--json", path).out.splitlines()
    ]
    (group,) = [event for event in events if event["event"] == "group"]
    (difference,) = group["documents"][1]["differences"]
    assert difference["here"] == "\x1b[31m<script>\u202e\\" and difference["like"] == "plain"
    events = [json.loads(line) for line in command("similar", "--text", "--json", path).out.splitlines()]
    (group,) = [event for event in events if event["event"] == "group"]
    assert "differences" not in group["documents"][1]


def test_excerpts_across_files_and_of_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    corpus(tmp_path)
    report = similar_documents("in", DocumentOptions(excerpts=True, threshold=0.5))
    documents = [one for group in report.groups for one in group.documents if one.like not in one.copies]
    assert len(documents) > 10 and all(one.differences for one in documents)
    assert {one.document.path for one in documents} >= {"in/a.jsonl"}
    options = DocumentOptions(excerpts=True, shingle="chars", threshold=0.5)
    write_jsonl(
        tmp_path / "c.jsonl",
        ["漢字仮名交じり文の長い例文です" * 2 + "甲", "漢字仮名交じり文の長い例文です" * 2 + "乙"],
    )
    (group,) = similar_documents("c.jsonl", options).groups
    (difference,) = group.documents[0].differences
    assert (difference.here, difference.like) == ("甲", "乙")


def test_a_changed_document_has_no_excerpt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = write_jsonl(tmp_path / "a.jsonl", families(3))

    def change(event: Event, /) -> None:
        found.append(event)
        if getattr(event, "phase", "") == "excerpts":
            path.write_text(path.read_text().replace("word", "w"))

    found: list[Event] = []
    report = similar_documents("a.jsonl", DocumentOptions(excerpts=True), reporter=change)
    assert not any(one.differences for group in report.groups for one in group.documents)
    (problem,) = [one for one in found if isinstance(one, Problem)]
    assert problem.code is ExitCode.OK and "there are no excerpts of it" in problem.message


def test_a_forged_part_of_a_stage_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(tmp_path / "a.jsonl", families(3))
    write_jsonl(tmp_path / "b.jsonl", ["another text"])
    similar_documents("a.jsonl", DocumentOptions(stage="stage"))
    (part,) = Path("stage").iterdir()
    similar_documents("b.jsonl", part=part, overwrite=True)
    with pytest.raises(RdcError, match=r"^b\.jsonl: expected a file that was searched"):
        similar_documents("a.jsonl", DocumentOptions(stage="stage", clean="out"))


@pytest.mark.parametrize("option", ["--clean=out", "--excerpts"])
@pytest.mark.parametrize("other", ["--slice=1/2", "--cluster=processes:2"])
def test_texts_are_read_again_by_the_run_that_read_them(option: str, other: str, tmp_path: Path) -> None:
    ended = command("similar", "--text", option, other, "-o", tmp_path / "part", tmp_path)
    assert ended.code == 1 and "exclude each other" in ended.err and ended.err.count("\n") == 1
    options = DocumentOptions(clean="out") if "clean" in option else DocumentOptions(excerpts=True)
    with pytest.raises(UsageError, match="needs the texts"):
        merge_documents([tmp_path / "part"], options)
    if not options.clean:
        with pytest.raises(UsageError, match="exclude each other"):
            similar_documents(tmp_path, DocumentOptions(excerpts=True, against="x"))


def test_what_stays_against_an_older_corpus_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    old = [" ".join(words(seed)) for seed in range(3)]
    write_jsonl(tmp_path / "old.jsonl", old)
    similar_documents("old.jsonl", part="old.rdcdocs")
    write_jsonl(tmp_path / "new.jsonl", ["something new", *old[:2], "and more that is new"])
    similar_documents("new.jsonl", DocumentOptions(against="old.rdcdocs", clean="out"))
    lines = Path("new.jsonl").read_text().splitlines()
    assert Path("out/new.jsonl").read_text().splitlines() == [lines[0], lines[3]]
    assert clean_copy.CLEANED_FILE.begins is None
