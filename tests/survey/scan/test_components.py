"""Small components of a scan: holes, the read budget, and connected sets."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.files.root.root import Root
from rdc.limits import SIZE_LIMIT
from rdc.model.scan import ScanOptions
from rdc.progress import Problem, silent
from rdc.similarity.index import UnionFind
from rdc.survey.count.counters import NO_HOLES, Holes
from rdc.survey.scan.found_files import Found, Run
from rdc.survey.scan.scanner import ReadBudget
from rdc.survey.walk import walk_paths
from rdc.survey.walk.file_columns import Directory
from rdc.survey.walk.walk_paths import UniqueWalk
from rdc.tree.filters import FilterList

# Holes as cuts of [0, 40): every other range between two cuts is a hole, so that holes never touch.
CUTS = st.lists(st.integers(0, 40), unique=True, max_size=10).map(sorted)


def holes_of(cuts: list[int]) -> tuple[Holes, set[int]]:
    """The holes, and every byte inside one."""
    ranges = list(zip(cuts[::2], cuts[1::2], strict=False))
    return Holes(ranges), {at for start, end in ranges for at in range(start, end)}


@given(CUTS, st.integers(0, 45), st.integers(1, 10))
def test_what_holes_cover_and_leave(cuts: list[int], start: int, length: int) -> None:
    holes, hollow = holes_of(cuts)
    assert bool(holes) == (len(cuts) > 1)
    assert holes.cover(start, start + length) == (set(range(start, start + length)) <= hollow)
    assert holes.total(start) == len([at for at in hollow if at < start])
    content = bytes(range(start, start + length))
    assert holes.data(content, start) == bytes(at for at in content if at not in hollow)


@given(CUTS, st.integers(0, 45), st.integers(1, 6), st.integers(0, 12))
def test_chunks_of_a_run_that_lie_in_holes(cuts: list[int], start: int, length: int, count: int) -> None:
    holes, _ = holes_of(cuts)
    begins = [start + number * length for number in range(count)]
    assert holes.covered(start, length, count) == sum(holes.cover(at, at + length) for at in begins)


def test_no_holes() -> None:
    assert not NO_HOLES
    assert not NO_HOLES.cover(0, 1)
    assert NO_HOLES.total(SIZE_LIMIT) == 0


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=20))
def test_connected_is_what_pairs_connect(pairs: list[tuple[int, int]]) -> None:
    sets = UnionFind()
    plain = [{number} for number in range(13)]
    for first, second in pairs:
        one, other = (next(group for group in plain if number in group) for number in (first, second))
        assert sets.join(first, second) == (one is not other)
        if one is not other:
            plain.remove(other)
            one |= other
    assert [sets.top(number) for number in range(13)] == [
        min(next(group for group in plain if number in group)) for number in range(13)
    ]


def runs(*sizes: int) -> list[Run]:
    """One file per run, with these sizes."""
    found = Found()
    found.sizes = array("Q", sizes)
    directory = Directory(Root.open(b"/"), b"", b"/")
    return [Run(found, directory, [b"%d" % row], row, row + 1) for row in range(len(sizes))]


def budget(options: ScanOptions, stops_at: float = 1e9) -> tuple[ReadBudget, list[float]]:
    """A budget on a clock that the caller sets. A stop is requested from `stops_at` on."""
    now = [100.0]
    return ReadBudget(options, lambda: now[0] >= stops_at, lambda: now[0]), now


@pytest.mark.parametrize(
    ("sample", "taken"),
    [
        (0.1, [10]),
        (0.2, [10, 10]),
        (0.21, [10, 10, 10]),
        (0.99, [10] * 10),
        (1.0, [10] * 10),
        (None, [10] * 10),
    ],
)
def test_a_sample_ends_behind_the_file_that_completes_it(sample: float | None, taken: list[int]) -> None:
    reads, _ = budget(ScanOptions(sample=sample))
    reads.expect(100)
    files = [run.bytes for run in reads.wanted(runs(*[10] * 10))]
    assert files == taken
    assert reads.reason == ("sample" if len(taken) < 10 else "")
    # Files of a complete sample that still wait are read.
    assert not reads.over
    assert not reads.stopped()
    assert reads.total == (100 if sample in (None, 1.0) else round(100 * (sample or 0)))
    assert reads.of_a_part == (sample is not None)


def test_a_sample_has_a_file_at_least() -> None:
    reads, _ = budget(ScanOptions(sample=0.001))
    reads.expect(1_000)
    assert len(list(reads.wanted(runs(0, 0, 500, 500)))) == 3  # empty ones complete nothing


def test_the_end_of_time_stops_at_once() -> None:
    reads, now = budget(ScanOptions(seconds=5))
    assert reads.of_a_part
    wanted = reads.wanted(runs(1, 1, 1, 1))
    next(wanted)
    now[0] = 104.9
    next(wanted)
    assert not reads.stopped()
    now[0] = 105.0
    assert list(wanted) == []
    assert reads.over
    assert reads.reason == "time"


@pytest.mark.parametrize("options", [ScanOptions(), ScanOptions(sample=0.5), ScanOptions(seconds=3)])
def test_whoever_interrupts_is_heard_before_the_clock(options: ScanOptions) -> None:
    reads, now = budget(options, stops_at=103)
    reads.expect(2)
    assert [run.start for run in reads.wanted(runs(1, 1))] == ([0] if options.sample else [0, 1])
    now[0] = 103
    assert not reads.over  # nobody has asked yet
    assert reads.stopped()
    assert reads.reason == "interrupted"
    now[0] = 0
    assert reads.stopped()  # and it stays so


def test_a_directory_comes_once_and_is_named_where_it_is_met_again(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    told: list[bytes] = []
    walk = UniqueWalk(FilterList(()), silent, one_file_system=False, met_again=told.append)

    def walked(name: str) -> list[bytes]:
        return [
            found.path
            for found in walk.below(Root.open(os.fsencode(tmp_path / name), label=os.fsencode(name)))
        ]

    assert walked("a/b") == [b""]
    assert told == []
    assert walked("a") == [b""]
    assert told == [b"a/b"]
    assert walked("a") == []
    assert told == [b"a/b", b"a"]


def test_equal_inodes_of_two_devices_are_two_directories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entered: list[bool] = []

    class Walk:
        """Simulates a tree in which a mounted file system has an inode with the same number."""

        def __init__(self, root: Root, filters: object, report: object, descend: Any) -> None:
            self.descend = descend

        def __iter__(self) -> Iterator[object]:
            top = os.stat(tmp_path)
            for device, inode in ((top.st_dev, 77), (top.st_dev + 1, 77), (top.st_dev + 1, 78)):
                entered.append(self.descend(device, inode))
            return iter(())

    monkeypatch.setattr(walk_paths, "measuring_walk", Walk)
    for one_file_system, expected in ((False, [True, True, True]), (True, [True, False, False])):
        entered.clear()
        walk = UniqueWalk(FilterList(()), silent, one_file_system=one_file_system)
        assert list(walk.below(Root.open(os.fsencode(tmp_path)))) == []
        assert entered == expected


def test_what_cannot_be_read_is_named_as_a_person_reaches_it(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    problems: list[object] = []
    walk = UniqueWalk(FilterList(()), problems.append, one_file_system=False)
    paths = []
    for found in walk.below(Root.open(os.fsencode(tmp_path), label=b"shown")):
        paths.append(found.path)
        (tmp_path / "a").rename(tmp_path / "c")
    assert paths == [b""]
    (problem,) = problems
    assert isinstance(problem, Problem)
    assert problem.path_bytes == b"shown/a"


def test_a_walk_that_is_stopped_enters_nothing(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    asked: list[bool] = []

    def stopped() -> bool:
        asked.append(True)
        return len(asked) > 1

    walk = UniqueWalk(FilterList(()), silent, one_file_system=False, stopped=stopped)
    assert [found.path for found in walk.below(Root.open(os.fsencode(tmp_path)))] == [b""]
    assert list(walk.below(Root.open(os.fsencode(tmp_path / "a")))) == []
