"""The rule against chains, `--link=complete`, against its definition by comparison of all pairs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.documents.find import candidates, complete_link
from rdc.errors import UsageError
from rdc.library.similar import merge_documents, similar_documents
from rdc.model.similar import DocumentOptions
from tests.documents.corpora import (
    edited,
    everything,
    families,
    found_clusters,
    jaccard,
    shingles,
    words,
    write_jsonl,
)
from tests.support.running.syncing import command

COMPLETE = DocumentOptions(threshold=0.5, link="complete")


def chain(seed: int, links: int, step: int = 6, size: int = 60) -> list[str]:
    """Texts of which each resembles the next, and the first and the last have nothing in common."""
    found = words(seed, size + links * step)
    return [" ".join(found[at * step : at * step + size]) for at in range(links)]


def defined_groups(texts: Sequence[str], threshold: float, most: int = 256) -> set[frozenset[int]]:
    """The groups of two or more texts, numbered from 1: each text in order joins the first group that has
    room and only texts that resemble it, and equal texts stay together."""
    groups: list[list[int]] = []
    firsts: dict[str, int] = {}
    copies: dict[int, set[int]] = {}
    for number, text in enumerate(texts, 1):
        first = firsts.setdefault(text, number)
        copies.setdefault(first, set()).add(number)
        if first != number:
            continue
        for group in groups:
            alike = [jaccard(texts[one - 1], text) >= threshold for one in group]
            if len(group) < most and all(alike):
                group.append(number)
                break
        else:
            groups.append([number])
    joined = [frozenset().union(*[copies[one] for one in group]) for group in groups]
    return {group for group in joined if len(group) > 1}


@pytest.mark.parametrize("most", [256, 3])
@pytest.mark.parametrize("threshold", [0.5, 0.8])
def test_groups_are_those_of_the_definition(
    threshold: float, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(complete_link, "LINKED_DOCUMENTS", most)
    texts = (
        families(20) + chain(9, 8) + chain(8, 5)[::-1] + [" ".join(edited(7, 60, 1, at)) for at in range(6)]
    )
    path = write_jsonl(tmp_path / "a.jsonl", texts)
    options = DocumentOptions(threshold=threshold, link="complete")
    report = similar_documents(path, options)
    expected = defined_groups(texts, threshold, most)
    assert found_clusters(report) == expected
    kept = [document.row for document in report.kept]
    dropped = {row for group in expected for row in sorted(group)[1:]}
    assert kept == [row for row in range(1, len(texts) + 1) if row not in dropped]
    assert report.summary.kept == len(kept)
    assert report.summary.groups == len(expected)
    assert report.summary.grouped == sum(map(len, expected))
    assert found_clusters(similar_documents(path, DocumentOptions(threshold=threshold))) != expected


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 20)), max_size=24), st.integers(1, 3))
def test_each_pair_of_a_group_is_similar(picked: list[tuple[int, int]], parts: int) -> None:
    """Whatever is found: no pair in a group is below the threshold, no text is in two groups, and parts of a
    corpus give what the whole gives."""
    import tempfile

    chains = [chain(seed, 21, step=2, size=30) for seed in range(3)]
    texts = [chains[seed][at] for seed, at in picked]
    with tempfile.TemporaryDirectory() as place:
        path = write_jsonl(Path(place, "a.jsonl"), texts)
        report = similar_documents(path, COMPLETE)
        seen: set[int] = set()
        for group in report.groups:
            rows = [one.document.row for one in group.documents]
            for one, other in combinations(rows, 2):
                assert jaccard(texts[one - 1], texts[other - 1]) >= 0.5
            for found in group.documents:
                assert found.like.row in {*rows, *(copy.row for copy in found.copies)} - {found.document.row}
                assert found.resemblance >= 0.5
            assert not seen & set(rows)
            seen |= set(rows)
        names, divided = [], []
        for number in range(parts):
            names.append(Path(place, f"{number}.jsonl"))
            write_jsonl(names[-1], texts[number::parts])
            divided.append(Path(place, f"{number}.rdcdocs"))
            similar_documents(names[-1], part=divided[-1])
        whole = everything(similar_documents(names, COMPLETE))
        assert everything(merge_documents(divided[::-1], COMPLETE)) == whole


def test_a_crowd_is_divided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Documents of one connected component are compared with each other also beyond the window."""
    monkeypatch.setattr(candidates, "WINDOW", 2)
    pages = [" ".join(words(1, 120) + words(100 + at // 2, 40) + [f"page{at}"]) for at in range(40)]
    texts = pages[::2] + pages[1::2]
    report = similar_documents(write_jsonl(tmp_path / "a.jsonl", texts), COMPLETE)
    assert found_clusters(report) == defined_groups(texts, 0.5)
    strict = DocumentOptions(threshold=0.9, link="complete")
    report = similar_documents(write_jsonl(tmp_path / "a.jsonl", texts), strict)
    assert found_clusters(report) == {frozenset({at, at + 20}) for at in range(1, 21)}
    assert len(shingles(texts[0])) > 100


def test_the_option(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "a.jsonl", chain(3, 12))
    one = command("similar", "--text", "--json", path)
    two = command("similar", "--text", "--json", "--link=complete", "--threshold=.8", path)
    loose = command("similar", "--text", "--json", "--link=complete", "--threshold=.5", path)
    counts = [
        [event["count"] for event in map(json.loads, ended.out.splitlines()) if event["event"] == "group"]
        for ended in (one, two, loose)
    ]
    assert counts[0] == [12] and max(counts[1]) < max(counts[2]) < 12
    part = tmp_path / "a.rdcdocs"
    assert command("similar", "--text", "-q", "-o", part, path).code == 0
    merged = command("merge", "--json", "--link=complete", "--threshold=.5", part)
    assert [line for line in merged.out.splitlines() if '"group"' in line] == [
        line for line in loose.out.splitlines() if '"group"' in line
    ]


@pytest.mark.parametrize(
    ("words_", "message"),
    [
        (("--link=average",), "--link=average: single or complete is expected"),
        (("--link=complete", "--against=x"), "--link=complete and --against exclude each other"),
        (("--link=complete", "--slice=1/2", "-o", "x"), "--link and --slice exclude each other"),
    ],
)
def test_wrong_words(words_: tuple[str, ...], message: str, tmp_path: Path) -> None:
    ended = command("similar", "--text", *words_, tmp_path)
    assert ended.code == 1 and message in ended.err and ended.err.count("\n") == 1
    with pytest.raises(UsageError, match="link"):
        similar_documents(tmp_path, DocumentOptions(link="average"))
    with pytest.raises(UsageError, match="against"):
        similar_documents(tmp_path, DocumentOptions(link="complete", against="x"))
