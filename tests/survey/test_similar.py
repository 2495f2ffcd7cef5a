"""Similar files against a comparison of all pairs; folders; floods; files that change."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.catalog.catalog import Catalog
from rdc.catalog.store import NoCatalog
from rdc.chunking import SYNC_PARAMS
from rdc.errors import ExitCode
from rdc.model.similar import Resemblance, SimilarOptions
from rdc.progress import Event, Problem
from rdc.signature.tree import sign
from rdc.survey import similar
from rdc.survey.similar import (
    BOILERPLATE_COPIES,
    ReadFiles,
    Similar,
    find_similar,
    folder_overlaps,
    rank_similar,
    read_files,
    read_traits,
)
from tests.support.share import examples
from tests.support.trees.edited_texts import edited, text


def no_problems(event: Event) -> None:
    assert not isinstance(event, Problem), event


def make(top: Path, files: dict[str, bytes]) -> list[bytes]:
    for name, data in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_bytes(data)
    return [os.fsencode(top)]


def search(paths: list[bytes], *, more_pairs: bool = False) -> tuple[ReadFiles, Similar]:
    read = read_files(paths, SimilarOptions(), no_problems, NoCatalog())
    return read, find_similar(read, SimilarOptions(), no_problems, more_pairs=more_pairs)


def names(found: Similar) -> list[list[str]]:
    return [[os.path.basename(os.fsdecode(file.path_bytes)) for file in group.files] for group in found]


def truth(first: bytes, second: bytes) -> Resemblance:
    """By all windows of 32 bytes, as plain sets."""
    one, other = ({data[at : at + 32] for at in range(len(data) - 31)} for data in (first, second))
    common = len(one & other)
    return Resemblance(common / len(one | other), common / len(one), common / len(other))


def about(real: float, size: int) -> object:
    """What may be shown: the truth where all windows are compared, near it where they are sampled."""
    return pytest.approx(real, abs=1e-9 if size <= 16_384 else 0.02)


@settings(deadline=None, max_examples=examples(15))
@given(st.integers(0, 1 << 30), st.lists(st.tuples(st.integers(0, 2), st.integers(0, 12)), max_size=10))
def test_groups_are_what_all_pairs_give(seed: int, versions: list[tuple[int, int]]) -> None:
    """Versions of three texts of 4 KB to 70 KB."""
    contents = {
        f"f{n}": edited(text(seed + kind, (4_000, 12_000, 70_000)[kind]), seed + n, edits * (1 + 3 * kind))
        for n, (kind, edits) in enumerate(versions)
    }
    with tempfile.TemporaryDirectory(dir="/dev/shm") as made:
        _, found = search(make(Path(made), contents))
        groups = list(found)
    distinct: dict[bytes, str] = {}
    for name, data in sorted(contents.items()):
        distinct.setdefault(data, name)
    connected: list[set[str]] = []
    for data, name in distinct.items():
        near = {name} | {other for one, other in distinct.items() if truth(data, one).jaccard >= 0.8}
        for other in [other for other in connected if other & near]:
            connected.remove(other)
            near |= other
        connected.append(near)
    in_groups = [{os.path.basename(os.fsdecode(file.path_bytes)) for file in group.files} for group in groups]
    # At 0.8 and more, a candidate is missed once in 10,000 pairs. Below, more files may be connected.
    for certain in connected:
        assert len(certain) == 1 or any(certain <= group for group in in_groups)
    for group in groups:
        for file in group.files:
            mine = contents[os.path.basename(os.fsdecode(file.path_bytes))]
            theirs = contents[os.path.basename(os.fsdecode(file.like_bytes))]
            real = truth(mine, theirs)
            assert file.similarity == about(real.jaccard, len(mine))
            assert file.contained == about(real.first_in_second, len(mine))
            assert file.similarity >= 0.5
            assert {os.path.basename(os.fsdecode(copy)) for copy in file.copies_bytes} == {
                name for name, data in contents.items() if data == mine
            } - {os.path.basename(os.fsdecode(file.path_bytes))}


def test_traits_are_those_of_the_signature(tmp_path: Path) -> None:
    files = {"a": text(1, 3_000), "b": text(2, 100_000), "c": text(3, 200_000), "d": bytes(5_000)}
    catalog = Catalog(tmp_path / "catalog")
    read = read_files(make(tmp_path / "top", files), SimilarOptions(), no_problems, catalog)
    shown = [os.path.basename(read.files.shown(row)).decode() for row in read.traits.rows]
    assert shown == list(files)
    for place, name in enumerate(shown):
        assert read.traits.of(place) == sign(files[name], SYNC_PARAMS).traits


def test_large_files_are_compared_in_spans(tmp_path: Path) -> None:
    data = text(7, 600_000)
    paths = make(tmp_path, {"a": data, "b": edited(data, 8, 3), "c": text(9, 600_000)})
    _, found = search(paths)
    assert names(found) == [["a", "b"]]
    [group] = found
    assert group.files[0].similarity == about(truth(data, (tmp_path / "b").read_bytes()).jaccard, len(data))


def test_identical_files_stand_as_one(tmp_path: Path) -> None:
    data = text(1, 8_000)
    near = edited(data, 2, 2)
    _, found = search(make(tmp_path, {"a": data, "b": near, "c": data, "sub/d": near, "e": text(3, 8_000)}))
    [group] = found
    copies = [[os.path.basename(copy) for copy in file.copies_bytes] for file in group.files]
    assert (names(found), copies) == ([["a", "b"]], [[b"c"], [b"d"]])
    assert (found.summary.files, found.summary.grouped, found.summary.candidates) == (3, 2, 1)


# Floods


def test_a_flood_of_similar_files_costs_a_comparison_each(tmp_path: Path) -> None:
    data = text(1, 4_000)
    paths = make(tmp_path, {f"f{n:03}": edited(data, n, 1) for n in range(120)})
    _, found = search(paths)
    assert [len(group) for group in names(found)] == [120]
    assert found.summary.candidates <= 119 + found.summary.false_candidates
    assert found.summary.false_candidates == 0


def test_a_flood_of_files_that_only_seem_similar_is_bounded_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A common part below the threshold: very many candidates, and no group."""
    monkeypatch.setattr(similar, "VAIN_MOST", 4)
    common = text(1, 3_000)
    files = {f"f{n:03}": common + text(1000 + n, 3_500) for n in range(60)}
    _, found = search(make(tmp_path, files))
    assert names(found) == []
    assert found.summary.false_candidates == found.summary.candidates <= 60 * 4
    assert found.summary.left_out > 0


def test_of_too_many_candidates_the_strongest_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(similar, "SIMILAR_PAIRS", 3)
    data = text(1, 8_000)
    files = {f"near{n}": edited(data, n, 1) for n in range(3)}
    files |= {f"far{n}": data[:6_500] + text(50 + n, 1_500) for n in range(6)}
    _, found = search(make(tmp_path, files))
    assert found.summary.left_out > 0
    [group] = names(found)
    assert {"near0", "near1", "near2"} <= set(group)


# Ranking


def test_what_resembles_one_file(tmp_path: Path) -> None:
    data = text(1, 20_000)
    files = {"near": edited(data, 1, 2), "half": data[:14_000] + text(2, 6_000), "other": text(3, 20_000)}
    files |= {"more": data + text(4, 5_000), "copy": data, "self": data}
    paths = make(tmp_path, files)
    sought = read_files([paths[0] + b"/self"], SimilarOptions(), no_problems, NoCatalog())
    options = SimilarOptions(threshold=0.05)
    read = read_files(paths, options, no_problems, NoCatalog())

    def ranked(limit: int) -> list[str]:
        found = rank_similar(sought, read, limit, options, no_problems)
        assert [file.similarity for file in found] == sorted((f.similarity for f in found), reverse=True)
        for file in found:
            name = os.path.basename(file.path_bytes).decode()
            assert file.similarity == about(truth(files[name], data).jaccard, len(data))
        return [os.path.basename(file.path_bytes).decode() for file in found]

    assert ranked(10) == ["copy", "near", "more", "half"]
    assert ranked(2) == ["copy", "near"]
    (tmp_path / "none").write_bytes(bytes(20))
    nothing = read_files([paths[0] + b"/none"], SimilarOptions(min_size=0), no_problems, NoCatalog())
    assert rank_similar(nothing, read, 10, options) == []


# Folders


def test_folders_that_overlap(tmp_path: Path) -> None:
    one = {f"a/sub/f{n}": text(n, 3_000) for n in range(6)}
    two = {f"b/sub/f{n}": edited(text(n, 3_000), n, 1) if n % 2 else text(n, 3_000) for n in range(5)}
    moved = {"c/elsewhere/x": text(0, 3_000), "c/elsewhere/y": text(99, 9_000)}
    paths = make(tmp_path, one | two | moved)
    read, found = search(paths, more_pairs=True)
    overlaps = folder_overlaps(read, found, 0.5)
    [pair] = overlaps.pairs
    assert (pair.first, pair.second) == (paths[0] + b"/a", paths[0] + b"/b")
    assert (pair.first_bytes, pair.second_bytes) == (18_000, sum(len(data) for data in two.values()))
    expected = 9_000 + sum(
        len(one[f"a/sub/f{n}"]) * truth(one[f"a/sub/f{n}"], two[f"b/sub/f{n}"]).first_in_second
        for n in (1, 3)
    )
    assert pair.shared == pytest.approx(expected, abs=2)
    assert pair.overlap == pytest.approx(expected / pair.second_bytes, abs=0.001)
    lower = {
        (os.path.basename(p.first), os.path.basename(p.second))
        for p in folder_overlaps(read, found, 0.1).pairs
    }
    # a/sub with b/sub is left out, since a with b contains it.
    assert lower == {(b"a", b"b"), (b"sub", b"elsewhere")}


def test_boilerplate_says_nothing_about_folders(tmp_path: Path) -> None:
    licence = text(1, 2_000)
    paths = make(tmp_path, {f"d{n}/LICENSE": licence for n in range(BOILERPLATE_COPIES + 1)})
    read, found = search(paths, more_pairs=True)
    overlaps = folder_overlaps(read, found, 0.1)
    assert (overlaps.pairs, overlaps.boilerplate) == ((), 1)


def test_pairs_of_folders_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdc.survey.similar.FOLDER_PAIRS", 2)
    paths = make(tmp_path, {f"d{n}/f": text(1, 2_000) for n in range(4)})
    read, found = search(paths, more_pairs=True)
    overlaps = folder_overlaps(read, found, 0.1)
    assert (len(overlaps.pairs), overlaps.dropped) == (2, 4)


# Files that do not stay


def test_what_vanishes_or_changes_before_it_is_compared_is_named_once(tmp_path: Path) -> None:
    data = text(1, 5_000)
    paths = make(tmp_path, {name: edited(data, ord(name), 1) for name in "abcd"})
    problems: list[tuple[ExitCode, bytes]] = []

    def report(event: Event) -> None:
        if isinstance(event, Problem):
            problems.append((event.code, os.path.basename(event.path_bytes)))

    read = read_files(paths, SimilarOptions(), report, NoCatalog())
    (tmp_path / "a").unlink()
    (tmp_path / "c").write_bytes(data + b"more")
    found = find_similar(read, SimilarOptions(), report)
    assert names(found) == [["b", "d"]]
    assert sorted(problems) == [(ExitCode.VANISHED, b"a"), (ExitCode.VANISHED, b"c")]


def test_what_changes_before_its_traits_are_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = make(tmp_path, {"a": text(1, 5_000), "b": text(1, 200_000), "c": text(1, 6_000)})
    problems: list[bytes] = []

    def report(event: Event) -> None:
        if isinstance(event, Problem):
            problems.append(os.path.basename(event.path_bytes))

    real = read_traits

    def late(*arguments: Any) -> object:
        (tmp_path / "a").unlink()
        os.truncate(tmp_path / "b", 199_999)
        return real(*arguments)

    monkeypatch.setattr(similar, "read_traits", late)
    read = read_files(paths, SimilarOptions(), report, NoCatalog())
    assert sorted(problems) == [b"a", b"b"]
    assert len(read.traits.rows) == 1
