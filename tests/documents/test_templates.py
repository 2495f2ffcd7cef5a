"""Documents that share a template: they crowd the bands, and a near-duplicate may be anywhere among them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from rdc.documents.find import candidates, comparison
from rdc.documents.find import candidates as crowded_bands
from rdc.documents.find import candidates as equal_keys
from rdc.library.similar import merge_documents, similar_documents
from rdc.model.similar import DocumentOptions, DocumentReport
from tests.documents.corpora import everything, found_clusters, jaccard, words, write_jsonl


def pages(count: int, template: int, own: int, changed: int) -> list[str]:
    """Pages with a common template and words of their own; the second half are near-duplicates of the first,
    in the same order, with some of those words changed."""
    shared = [f"template{at}" for at in range(template)]
    first = [[f"own{page}x{at}" for at in range(own)] for page in range(count)]
    second = [
        [*own_words[: own - changed], *(f"new{page}x{at}" for at in range(changed))]
        for page, own_words in enumerate(first)
    ]
    return [" ".join(shared + own_words) for own_words in first + second]


def pairs_found(report: DocumentReport, count: int) -> int:
    """How many pages are in a group with their near-duplicate alone."""
    groups = found_clusters(report)
    return sum(frozenset({page, page + count}) in groups for page in range(1, count + 1))


@pytest.mark.parametrize(
    ("count", "template", "own", "changed", "threshold"),
    [
        # Any two pages are just below the threshold, or well below it; near-duplicates are just above it.
        (150, 400, 56, 40, 0.8),
        (150, 150, 46, 18, 0.8),
        (120, 90, 46, 4, 0.9),
        (120, 60, 80, 30, 0.5),
    ],
)
def test_near_duplicates_are_found_wherever_they_are(
    tmp_path: Path, count: int, template: int, own: int, changed: int, threshold: float
) -> None:
    texts = pages(count, template, own, changed)
    assert jaccard(texts[0], texts[1]) < threshold <= jaccard(texts[0], texts[count])
    report = similar_documents(write_jsonl(tmp_path / "a.jsonl", texts), DocumentOptions(threshold=threshold))
    # 0.998 of pairs at 0.8 and more above it.
    assert pairs_found(report, count) >= count - 2
    assert report.summary.pairs == report.summary.groups == pairs_found(report, count)
    assert report.summary.left_out == 0


def test_an_older_corpus(tmp_path: Path) -> None:
    texts = pages(150, 400, 56, 40)
    similar_documents(write_jsonl(tmp_path / "old.jsonl", texts[:150]), part=tmp_path / "old.rdcdocs")
    options = DocumentOptions(against=str(tmp_path / "old.rdcdocs"))
    report = similar_documents(write_jsonl(tmp_path / "new.jsonl", texts[150:]), options)
    matches = list(report.matches)
    assert len(matches) >= 148
    assert all(one.document.row == one.like.row for one in matches)
    assert len(list(report.kept)) == 150 - len(matches)
    assert report.summary.left_out == 0


def bounded(monkeypatch: pytest.MonkeyPatch, *, examined: int, compared: int, levels: int) -> None:
    """Have the search look at few pairs a level."""
    for name, value in (("EXAMINED", 0), ("EXAMINED_LEAST", examined), ("COMPARED", 0)):
        monkeypatch.setattr(crowded_bands, name, value)
    monkeypatch.setattr(crowded_bands, "COMPARED_LEAST", compared)
    monkeypatch.setattr(crowded_bands, "CROWD_LEVELS", levels)


def test_what_is_not_looked_at_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 150
    path = write_jsonl(tmp_path / "a.jsonl", pages(count, 400, 56, 40))
    bounded(monkeypatch, examined=0, compared=1 << 30, levels=3)
    report = similar_documents(path)
    assert report.summary.left_out == report.summary.pairs_left_out > 0
    assert pairs_found(report, count) < 0.95 * count
    found = []
    for levels in (1, 2, 3):
        bounded(monkeypatch, examined=50_000, compared=1 << 30, levels=levels)
        report = similar_documents(path)
        found.append(pairs_found(report, count))
        assert report.summary.pairs_left_out > 0
    # Each level finds more.
    assert found == sorted(found)
    assert found[0] < found[2]


def test_documents_that_share_several_bands_are_found_by_a_later_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The groups of documents that share one band are too large, those that share three are not."""
    count = 300
    path = write_jsonl(tmp_path / "a.jsonl", pages(count, 150, 46, 16))
    found = []
    for levels in (1, 3):
        bounded(monkeypatch, examined=60_000, compared=1 << 30, levels=levels)
        report = similar_documents(path)
        assert report.summary.pairs_left_out > 0
        found.append(pairs_found(report, count))
    assert found[0] <= found[1]
    assert found[1] >= count - 2


def test_the_most_alike_are_compared_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 150
    path = write_jsonl(tmp_path / "a.jsonl", pages(count, 400, 56, 20))
    bounded(monkeypatch, examined=1 << 30, compared=20_000, levels=3)
    report = similar_documents(path)
    assert report.summary.pairs_left_out > 0
    assert pairs_found(report, count) >= 0.97 * count
    bounded(monkeypatch, examined=1 << 30, compared=1, levels=3)
    fewer = similar_documents(path).summary
    assert fewer.candidates < report.summary.candidates
    assert fewer.pairs_left_out > report.summary.pairs_left_out


@pytest.mark.parametrize("examined", [1 << 30, 20_000, 0])
@pytest.mark.parametrize("compared", [1 << 30, 3_000])
def test_parts_threads_and_memory_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, examined: int, compared: int
) -> None:
    texts = pages(100, 150, 46, 16)
    bounded(monkeypatch, examined=examined, compared=compared, levels=3)
    whole = everything(similar_documents(write_jsonl(tmp_path / "a.jsonl", texts)))
    chosen = random.Random(examined + compared)
    numbered = [{"id": at, "text": text} for at, text in enumerate(texts)]
    parts = []
    for number in range(3):
        # The rows stay where they were, so names are the same.
        rows = [one["text"] if chosen.randrange(3) == number else None for one in numbered]
        for one, row in zip(numbered, rows, strict=True):
            if row is not None:
                one["text"] = None
        last = [
            one["text"] if number == 2 and row is None else row
            for one, row in zip(numbered, rows, strict=True)
        ]
        write_jsonl(tmp_path / "a.jsonl", last)
        parts.append(tmp_path / f"{number}.rdcdocs")
        similar_documents(tmp_path / "a.jsonl", part=parts[-1])
    chosen.shuffle(parts)
    monkeypatch.setattr(candidates, "PAIRS", 700)
    monkeypatch.setattr(candidates, "_WAITING", 100)
    monkeypatch.setattr(equal_keys, "RANGE_ROWS", 30)
    monkeypatch.setattr(comparison, "OVERLAP_BYTES", 30_000)
    monkeypatch.setattr(crowded_bands, "TASK_PAIRS", 500)
    monkeypatch.setattr(crowded_bands, "TASK_MEMBERS", 50)
    for workers in (1, 3):
        merged = merge_documents(parts, DocumentOptions(workers=workers))
        found, expected = everything(merged), whole
        assert found[:3] == expected[:3]
        for field in ("groups", "grouped", "candidates", "pairs", "kept", "pairs_left_out"):
            assert getattr(found[3], field) == getattr(expected[3], field), field


def test_families_are_not_compared_beyond_the_window(tmp_path: Path) -> None:
    """Documents that are one group by then need no further comparison, however many they are."""
    texts = [" ".join([*words(1, 100), f"page{number}"]) for number in range(3_000)]
    summary = similar_documents(write_jsonl(tmp_path / "a.jsonl", texts)).summary
    assert (summary.groups, summary.grouped, summary.left_out) == (1, 3_000, 0)
    assert summary.candidates <= 3_000 * 32 * 21
