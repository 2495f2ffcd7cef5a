"""What a search of documents finds, against comparison of all pairs and known resemblance."""

from __future__ import annotations

from pathlib import Path

import pytest

from rdc.documents.find import candidates, comparison
from rdc.documents.find import candidates as equal_keys
from rdc.documents.parts import open_parts
from rdc.errors import ExitCode, UsageError
from rdc.library.similar import merge_documents, similar_documents
from rdc.model.similar import DocumentOptions
from tests.documents.corpora import (
    defined_clusters,
    edited,
    everything,
    families,
    found_clusters,
    jaccard,
    words,
    write_jsonl,
)


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_clusters_are_those_of_all_pairs(tmp_path: Path, threshold: float) -> None:
    texts = families(40)
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    report = similar_documents(path, DocumentOptions(threshold=threshold))
    assert found_clusters(report) == defined_clusters(texts, threshold)
    kept = [document.row for document in report.kept]
    dropped = {row for group in found_clusters(report) for row in sorted(group)[1:]}
    assert kept == [row for row in range(1, len(texts) + 1) if row not in dropped]
    assert report.exit is ExitCode.OK
    summary = report.summary
    assert (summary.documents, summary.kept) == (len(texts), len(kept))
    assert summary.groups == len(found_clusters(report))
    assert summary.grouped == sum(map(len, found_clusters(report)))
    assert summary.bytes == sum(map(len, texts))


def test_resemblance_is_exact_and_estimated(tmp_path: Path) -> None:
    texts = families(40)
    report = similar_documents(write_jsonl(tmp_path / "a.jsonl", texts), DocumentOptions(threshold=0.5))
    errors = []
    for group in report.groups:
        assert group.label == min(
            (d for one in group.documents for d in (one.document, *one.copies)), key=lambda d: d.row
        )
        for one in group.documents:
            exact = jaccard(texts[one.document.row - 1], texts[one.like.row - 1])
            assert one.resemblance == pytest.approx(exact, abs=1e-9)
            assert one.document.size == len(texts[one.document.row - 1])
            errors.append(one.estimate - exact)
    assert len(errors) > 20
    assert abs(sum(errors) / len(errors)) < 0.05


def test_recall(tmp_path: Path) -> None:
    """Pairs of known resemblance: nearly all at .9 are found, and none below the threshold."""
    texts: list[str] = []
    for seed in range(50):
        texts += [" ".join(words(seed, 100)), " ".join(edited(seed, 100, 1, seed % 9))]
        texts += [" ".join(words(1000 + seed, 100)), " ".join(edited(1000 + seed, 100, 4, seed % 9))]
    truth = {(at + 1, at + 2) for at in range(0, len(texts), 2) if jaccard(texts[at], texts[at + 1]) >= 0.8}
    assert 45 <= len(truth) <= 70
    report = similar_documents(write_jsonl(tmp_path / "a.jsonl", texts))
    found = found_clusters(report)
    assert found <= {frozenset(pair) for pair in truth}
    assert len(found) >= 0.99 * len(truth)


def test_case_and_punctuation_do_not_count(tmp_path: Path) -> None:
    text = " ".join(words(1))
    report = similar_documents(write_jsonl(tmp_path / "a.jsonl", [text, text.upper().replace(" ", ", ")]))
    (group,) = report.groups
    assert [one.resemblance for one in group.documents] == [1.0, 1.0]
    assert report.summary.copies == 0


@pytest.mark.parametrize("workers", [1, 3])
def test_limits_of_memory_change_nothing(
    workers: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same results when pairs wait on disk, keys are sorted by ranges and few shingles are in memory."""
    texts = [" ".join(edited(1, 60, 1, variant)) for variant in range(36)] + families(12)
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    options = DocumentOptions(threshold=0.5, workers=workers)
    before = everything(similar_documents(path, options))
    monkeypatch.setattr(candidates, "PAIRS", 50)
    monkeypatch.setattr(candidates, "_WAITING", 16)
    monkeypatch.setattr(equal_keys, "RANGE_ROWS", 10)
    monkeypatch.setattr(comparison, "OVERLAP_BYTES", 1000)
    assert everything(similar_documents(path, options)) == before


def test_threads_compare_documents_of_more_parts_than_stay_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [" ".join(edited(1, 60, 1, variant)) for variant in range(24)] + families(12)
    parts = []
    for number in range(3):
        path = write_jsonl(tmp_path / f"{number}.jsonl", texts[number::3])
        parts.append(tmp_path / f"{number}.rdcdocs")
        similar_documents(path, part=parts[-1])
    before = everything(merge_documents(parts, DocumentOptions(workers=1)))
    assert before[0]
    monkeypatch.setattr(open_parts, "OPEN_PARTS", 1)
    monkeypatch.setattr(comparison, "OVERLAP_BYTES", 1000)
    assert everything(merge_documents(parts, DocumentOptions(workers=4))) == before


def test_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More documents in a band than the window compares stay one group, with fewer pairs."""
    texts = [" ".join(edited(1, 200, 1, variant)) for variant in range(60)]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    monkeypatch.setattr(candidates, "WINDOW", 4)
    report = similar_documents(path)
    assert found_clusters(report) == {frozenset(range(1, 61))}
    assert report.summary.candidates < 60 * 59 // 2


def test_empty_and_short(tmp_path: Path) -> None:
    """Texts without words are compared for equality; fewer words than a shingle has are one shingle."""
    texts = ["", "...", "", "one two", "One, two!", "one three", "..."]
    report = similar_documents(write_jsonl(tmp_path / "a.jsonl", texts))
    assert found_clusters(report) == {frozenset({1, 3}), frozenset({2, 7}), frozenset({4, 5})}
    assert report.summary.empty == 2
    assert [document.row for document in report.kept] == [1, 2, 4, 6]


def test_nothing(tmp_path: Path) -> None:
    report = similar_documents(write_jsonl(tmp_path / "a.jsonl", []))
    assert everything(report)[:3] == ([], [], [])
    assert report.summary.documents == 0
    assert report.exit is ExitCode.OK


def test_characters(tmp_path: Path) -> None:
    """Without spaces a text is one word, unless characters are counted. Ideographs are words of their own."""
    letters = "".join(words(1))
    chinese = "".join(chr(0x4E00 + number % 3000) for number in range(0, 30_000, 71))
    texts = [letters, letters[:200] + "X" + letters[201:], chinese, chinese[:200] + "更" + chinese[201:]]
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    assert found_clusters(similar_documents(path)) == {frozenset({3, 4})}
    by_characters = similar_documents(path, DocumentOptions(shingle="chars"))
    assert found_clusters(by_characters) == {frozenset({1, 2}), frozenset({3, 4})}


@pytest.mark.parametrize("options", [DocumentOptions(threshold=0.05), DocumentOptions(shingle="lines")])
def test_options_out_of_range(options: DocumentOptions) -> None:
    with pytest.raises(UsageError, match="expected"):
        similar_documents("a", options)
