"""Slices of a search: their parts merged are one search, to the byte. What is missing or differs is named."""

from __future__ import annotations

import heapq
import io
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.documents.parts import part_file
from rdc.documents.parts.part_file import FoundRange, encode_range
from rdc.documents.read import file_kinds, json_lines
from rdc.documents.read.file_kinds import FileRange, ranges_of
from rdc.documents.read.file_units import list_units
from rdc.documents.read.json_lines import line_spans
from rdc.documents.read.text_batch import RangeOutcome, RowProblems
from rdc.errors import ExitCode, RdcError, UsageError
from rdc.library.similar import document_slice, merge_documents, similar_documents
from rdc.limits import RANGE_BYTES
from rdc.model.scan import ScanSlice
from rdc.model.similar import DocumentOptions
from rdc.progress import Event, Problem
from tests.documents.corpora import everything, families, write_jsonl
from tests.documents.sliced_corpus import LOOSE, sliced, write_corpus
from tests.support.share import examples


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Small files are divided as large ones are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(file_kinds, "RANGE_BYTES", 1000)
    write_corpus(tmp_path / "tree")
    return tmp_path / "tree"


def messages(events: list[Event]) -> list[str]:
    return sorted([event.message for event in events if isinstance(event, Problem)])


@pytest.mark.parametrize("of", [1, 2, 7, 50])
def test_slices_give_the_results_of_one_search(tree: Path, of: int) -> None:
    searched: list[Event] = []
    whole = everything(
        similar_documents(["tree", "gone"], LOOSE, part="whole.rdcdocs", reporter=searched.append)
    )
    parts = sliced(["tree", "gone"], of)
    for seed in range(2):
        random.Random(seed).shuffle(parts)
        found: list[Event] = []
        assert (
            everything(merge_documents(parts, LOOSE, part="merged.rdcdocs", reporter=found.append)) == whole
        )
        assert Path("merged.rdcdocs").read_bytes() == Path("whole.rdcdocs").read_bytes()
        assert messages(found) == messages(searched)
    assert len(messages(searched)) > 15


def test_the_work_is_shared(tree: Path) -> None:
    """Each slice reads about as much of one large file, and each file of a directory is on its own."""
    Path("large.jsonl").write_bytes((tree / "rows.jsonl").read_bytes() * 20)
    counts = [document_slice("large.jsonl", ScanSlice(number, 6), "p") for number in range(1, 7)]
    documents = [count.documents for count in counts]
    assert sum(documents) == similar_documents("large.jsonl").summary.documents
    assert max(documents) < 1.2 * min(documents)
    assert sum([count.left_out for count in counts]) == similar_documents("large.jsonl").summary.left_out
    os.mkdir("flat")
    for number in range(300):
        Path(f"flat/{number}.txt").write_text(f"text {number}")
    shares = [document_slice("flat", ScanSlice(number, 3), "p").documents for number in range(1, 4)]
    assert sum(shares) == 300
    assert min(shares) > 70


@settings(max_examples=examples(300))
@given(
    lines=st.lists(st.integers(0, 12), max_size=12),
    is_ended=st.booleans(),
    of=st.integers(1, 9),
    most=st.integers(1, 20),
)
def test_ranges_have_each_line_once(lines: list[int], is_ended: bool, of: int, most: int) -> None:
    content = b"\n".join([b"%c" % (97 + at) * size for at, size in enumerate(lines)]) + b"\n" * is_ended
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_lines, "READ_BYTES", most)
        found = [list(line_spans(io.BytesIO(content), *bounds(at, of, len(content)))) for at in range(of)]
    joined = [b"".join(spans) for spans in found]
    assert b"".join(joined) == content
    assert all(not one or one.endswith(b"\n") for one in joined[:-1] if one != content[-len(one) :])
    starts = [len(b"".join(joined[:at])) for at in range(of)]
    for at, one in enumerate(joined):
        start, end = bounds(at, of, len(content))
        assert not one or start <= starts[at] < end
    assert all(len(span) <= most for spans in found for span in spans)


def bounds(number: int, of: int, size: int) -> tuple[int, int]:
    range_ = FileRange.of_file(number, of, size)
    return range_.start, range_.end


def test_what_is_divided() -> None:
    """Packed files, plain ones and small ones are not."""
    most = RANGE_BYTES
    assert [ranges_of(name, 10 * most, 4) for name in (b"a.jsonl", b"a.ndjson", b"a.parquet")] == [4, 4, 4]
    assert [ranges_of(name, 10 * most, 4) for name in (b"a.jsonl.gz", b"a.jsonl.zst", b"a.txt")] == [1, 1, 1]
    assert [ranges_of(b"a.jsonl", size, 100) for size in (0, 2 * most - 1, 2 * most, 7 * most)] == [
        1,
        1,
        2,
        7,
    ]


def test_slices_that_do_not_belong_together_are_refused_by_name(tree: Path) -> None:
    one, two, three = sliced(["tree"], 3)
    with pytest.raises(
        UsageError, match=r"^slice 2/3 is missing; search it with the options of 1-of-3\.rdcdocs"
    ):
        merge_documents([one, three])
    with pytest.raises(UsageError, match=r"^3-of-3\.rdcdocs: slice 3/3 is also in 3-of-3\.rdcdocs"):
        merge_documents([one, three, two, three])
    os.mkdir("other")
    for options, paths, what in (
        (DocumentOptions(field="body"), ["tree"], "--field differs"),
        (DocumentOptions(one_file_system=True), ["tree"], "-x differs"),
        (LOOSE, ["other"], "PATH differs"),
        (LOOSE, ["./tree"], "PATH differs"),
    ):
        document_slice(paths, ScanSlice(2, 3), "odd.rdcdocs", options)
        with pytest.raises(
            UsageError, match=rf"^odd\.rdcdocs: made with other parameters.*{what}.*search again"
        ):
            merge_documents([one, "odd.rdcdocs", three])
    document_slice("tree", ScanSlice(2, 3), "odd.rdcdocs", DocumentOptions(shingle="chars"))
    with pytest.raises(UsageError, match=r"odd\.rdcdocs: shingles of chars"):
        merge_documents([one, "odd.rdcdocs", three])
    document_slice("tree", ScanSlice(2, 4), "odd.rdcdocs")
    with pytest.raises(UsageError, match=r"odd\.rdcdocs: slice 2/4, but 1-of-3\.rdcdocs is slice 1/3"):
        merge_documents([one, "odd.rdcdocs", three])
    similar_documents("tree", part="whole.rdcdocs")
    with pytest.raises(UsageError, match=r"2-of-3\.rdcdocs: slice 2/3, but whole\.rdcdocs is a whole search"):
        merge_documents(["whole.rdcdocs", two])
    with pytest.raises(
        UsageError, match=r"2-of-3\.rdcdocs: slice 2/3 of an older corpus; merge its slices first"
    ):
        similar_documents("tree", DocumentOptions(against=two))
    os.rename("tree", "moved")
    os.mkdir("tree")
    document_slice("tree", ScanSlice(2, 3), "odd.rdcdocs")
    with pytest.raises(UsageError, match=r"odd\.rdcdocs: slice 2/3 read another tree than 1-of-3"):
        merge_documents([one, "odd.rdcdocs", three])


def test_a_file_that_grows_between_slices_is_left_out_and_named(tree: Path) -> None:
    parts = sliced(["tree"], 3)
    with (tree / "rows.jsonl").open("a") as file:
        file.write("\n" + (tree / "rows.jsonl").read_text() * 2)
    document_slice("tree", ScanSlice(2, 3), parts[1], LOOSE)
    found: list[Event] = []
    report = merge_documents(parts, LOOSE, reporter=found.append)
    assert report.exit is ExitCode.PARTIAL
    assert any(
        "rows.jsonl: expected one file in all slices, found others, and left it out" in m
        for m in messages(found)
    )
    assert any("the tree changed between the slices" in message for message in messages(found))
    assert not any(one.path_bytes == b"tree/rows.jsonl" for one in report.kept)
    similar = [one for group in report.groups for one in group.documents]
    assert any(copy.path_bytes == b"tree/rows.parquet" for one in similar for copy in one.copies)


def test_a_file_that_changes_while_it_is_read(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has another size than the walk found: no range of it is read."""
    listed = list_units

    def grown(*arguments: Any) -> Any:
        units = listed(*arguments)
        with (tree / "rows.jsonl").open("a") as file:
            file.write("\nmore")
        return units

    monkeypatch.setattr("rdc.documents.slice_part.list_units", grown)
    found: list[Event] = []
    count = document_slice("tree/rows.jsonl", ScanSlice(1, 1), "one.rdcdocs")
    assert count.documents > 40  # a file that is not divided is read as it is
    count = document_slice("tree/rows.jsonl", ScanSlice(1, 2), "one.rdcdocs", reporter=found.append)
    assert (count.documents, count.left_out, count.exit) == (0, 1, ExitCode.PARTIAL)
    assert "bytes as listed, found" in messages(found)[0]


def test_rows_behind_a_range_that_ended_early_have_no_numbers(tree: Path) -> None:
    """As in one search, what cannot be read ends the file."""
    parts = sliced(["tree/rows.jsonl"], 4)
    slices = [slice_of(part) for part in parts]
    second = next(part for part, at in zip(parts, slices, strict=True) if at.range.number == 1)
    replace_range(
        second, RangeOutcome(b"tree/rows.jsonl", slices[parts.index(second)].range, 3, False, failed(), None)
    )
    found: list[Event] = []
    report = merge_documents(parts, LOOSE, reporter=found.append)
    first = slices[[one.range.number for one in slices].index(0)]
    assert max(one.row for one in report.kept) <= first.lines + 3
    assert f"tree/rows.jsonl: row {first.lines + 4}: cannot read on: broken" in messages(found)


def failed() -> RowProblems:
    problems = RowProblems(b"tree/rows.jsonl")
    problems.note("cannot read on: broken", 4)
    problems.count = 1
    return problems


def slice_of(part: str) -> RangeOutcome:
    with open(part, "rb") as stream:
        return part_file.read_part(stream, part, 0).ranges[0].outcome


def replace_range(part: str, outcome: RangeOutcome, blocks: int = 0) -> None:
    """Replaces the one range and its blocks."""
    content = Path(part).read_bytes()
    head = content[: content.index(b"BLOK")]
    spans = [head, *part_file.encode_section(b"RANG", [encode_range(FoundRange(outcome, blocks))])]
    Path(part).write_bytes(b"".join([*spans, *part_file.part_end([], 0)]))


def test_forged_ranges_are_named(tree: Path) -> None:
    one, two = sliced(["tree/rows.jsonl"], 2)
    content = Path(one).read_bytes()
    block = content[content.index(b"BLOK") : content.index(b"RANG")]
    head, outcome = content[: content.index(b"BLOK")], slice_of(one)
    path, range_, problems = outcome.path, outcome.range, outcome.problems
    for forged, blocks, what in (
        (
            RangeOutcome(b"other", FileRange.of_file(0, 1, range_.size), outcome.lines, True, problems, None),
            1,
            "forged: expected rows of other",
        ),
        (RangeOutcome(path, range_, 1, True, problems, None), 1, "forged: expected rows of tree/rows"),
        (
            RangeOutcome(path, range_, range_.size, True, problems, None),
            1,
            "expected a range, found ValueError",
        ),
        (outcome, 2, "a range of at most 1 blocks"),
    ):
        spans = [head, block, *part_file.encode_section(b"RANG", [encode_range(FoundRange(forged, blocks))])]
        Path(one).write_bytes(b"".join([*spans, *part_file.part_end([], 0)]))
        with pytest.raises(RdcError, match=rf"^{one}: .*{what}") as caught:
            merge_documents([one, two])
        assert "\n" not in str(caught.value)


def test_parts_that_interleave_are_merged_with_few_windows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks wait until their first document is due."""
    monkeypatch.chdir(tmp_path)
    from rdc.documents.read import unit_reader

    monkeypatch.setattr(unit_reader, "BATCH_DOCUMENTS", 3)
    os.mkdir("flat")
    for number, text in enumerate(families(60)):
        Path(f"flat/{number:03}.txt").write_text(text)
    most = 0
    push = heapq.heappush

    def counted(heap: list[Any], item: Any) -> None:
        nonlocal most
        push(heap, item)
        most = max(most, len(heap))

    parts = sliced(["flat"], 4)
    monkeypatch.setattr(heapq, "heappush", counted)
    merged = everything(merge_documents(parts, LOOSE))
    monkeypatch.undo()
    os.chdir(tmp_path)
    assert merged == everything(similar_documents("flat", LOOSE))
    assert 2 <= most <= 5


def test_a_slice_takes_no_memory_for_files_of_others(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    listed = list_units

    def noted(*arguments: Any) -> Any:
        units = listed(*arguments)
        found.append(len(units.files))
        return units

    monkeypatch.setattr("rdc.documents.slice_part.list_units", noted)
    sliced(["tree"], 50)
    assert max(found) < 15
    assert sum(found) > 30


def test_files_given_by_themselves(tree: Path) -> None:
    names: Iterator[str] = (f"tree/{name}" for name in ("rows.jsonl", "rows.parquet", "packed.jsonl.gz"))
    paths = [*names, "tree/deep", "tree/deep/short.jsonl", "tree/deep/short.jsonl"]
    whole = everything(similar_documents(paths, LOOSE))
    assert everything(merge_documents(sliced(paths, 5), LOOSE)) == whole


def test_a_slice_of_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(Path("one.jsonl"), ["a text"])
    assert merge_documents(sliced(["one.jsonl"], 9)).summary.documents == 1
    with pytest.raises(UsageError, match="slices are numbered from 1"):
        ScanSlice(0, 3)
    with pytest.raises(TypeError, match="slice"):
        document_slice("one.jsonl", 1, "p")  # type: ignore[arg-type] # this is the question
