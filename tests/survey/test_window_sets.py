"""Sets of windows: what is sampled, in how many spans content may come, bounds, and what is cached."""

from __future__ import annotations

import os
import random
from array import array
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.catalog.store import NoCatalog
from rdc.model.similar import Resemblance, SimilarOptions
from rdc.progress import silent
from rdc.survey import similar
from rdc.survey.similar import (
    NO_SKETCH,
    Sketches,
    WindowSet,
    WindowSets,
    least_agreeing,
    read_files,
    resemblance,
    window_set,
)
from tests.reference import windows as window_reference


def content(seed: int, size: int) -> bytes:
    return random.Random(seed).randbytes(size)


def hashes_of(data: bytes) -> set[int]:
    return set(array("Q", window_reference.window_hashes(data, (1 << 64) - 1)))


def made(*hashes: int, shift: int = 0) -> WindowSet:
    return WindowSet(array("Q", sorted(hashes)).tobytes(), shift)


@settings(deadline=None, max_examples=40)
@given(st.binary(max_size=300), st.lists(st.integers(0, 300), max_size=6))
def test_spans_make_the_same_set(data: bytes, cuts: list[int]) -> None:
    ends = sorted([min(cut, len(data)) for cut in cuts] + [0, len(data)])
    spans = [data[start:end] for start, end in pairwise(ends)]
    found = window_set(spans, len(data))
    assert set(memoryview(found.hashes).cast("Q")) == hashes_of(data)
    assert found == window_set([data], len(data))


def test_holes_change_nothing(tmp_path: Path) -> None:
    """Neither the set of windows nor, with holes of any size, the time."""
    data = content(1, 70_000)
    written, hollow = tmp_path / "written", tmp_path / "hollow"
    written.write_bytes(bytes(100_000) + data + bytes(200_000) + data[::-1] + bytes(100_000))
    for size in (10**5, 10**12):
        with hollow.open("wb") as file:
            for at, some in ((size, data), (3 * size + 70_000, data[::-1])):
                os.pwrite(file.fileno(), some, at)
            file.truncate(4 * size + 140_000)
        read = read_files([os.fsencode(tmp_path)], SimilarOptions(), silent, NoCatalog())
        found = WindowSets(silent).compare(read.files, 0, 1)
        assert found == Resemblance(1.0, 1.0, 1.0)


def test_windows_are_sampled_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(similar, "SAMPLED_WINDOWS", 256)
    data = content(1, 3_000)
    every = hashes_of(data)
    assert [window_set([data], size).shift for size in (0, 1, 256, 257, 512, 513, 3_000)] == [
        0,
        0,
        0,
        1,
        1,
        2,
        4,
    ]
    found = window_set([data], len(data))
    assert set(memoryview(found.hashes).cast("Q")) == {number for number in every if number < 1 << 60}
    assert set(found.upto(6)) == {number for number in every if number < 1 << 58}


def test_a_set_is_bounded_whatever_the_content(monkeypatch: pytest.MonkeyPatch) -> None:
    """All windows of a large file lie below the limit of its size here."""
    monkeypatch.setattr(similar, "FEW_WINDOWS", 100)
    data = content(2, 2_000)
    every = sorted(hashes_of(data))
    for gathered in (50, 1 << 18):
        monkeypatch.setattr(similar, "GATHERED_WINDOWS", gathered)
        found = window_set([data[:900], data[900:]], len(data))
        assert list(memoryview(found.hashes).cast("Q")) == [n for n in every if n < 1 << 64 - found.shift]
        assert sum(n < 1 << 65 - found.shift for n in every) > 100 >= len(found.upto(0))


def test_resemblance_of_sets() -> None:
    one, other = made(1, 2, 3, 9), made(2, 3, 4)
    assert resemblance(one, other) == Resemblance(2 / 5, 2 / 4, 2 / 3)
    assert resemblance(made(), made()) == Resemblance(1.0, 1.0, 1.0)
    assert resemblance(made(), one) == Resemblance(0.0, 1.0, 0.0)
    # Only what the larger shift samples counts.
    wide = made(1, 2, 3 << 62)
    assert resemblance(wide, made(1, shift=2)) == Resemblance(1 / 2, 1 / 2, 1.0)


def test_a_sketch_of_a_set_is_that_of_the_content() -> None:
    for size in (0, 31, 32, 40, 1_000, 20_000):
        data = content(size, size)
        assert window_set([data], size).sketch() == window_reference.window_sketch(data)


def test_agreeing_samples_of_similar_files() -> None:
    assert [least_agreeing(threshold) for threshold in (0.05, 0.5, 0.8, 1.0)] == [0, 10, 20, 32]


def test_large_files_get_their_sketches_when_they_are_needed(tmp_path: Path) -> None:
    data = content(3, 200_000)
    for name, start in (("a", 0), ("b", 2_000), ("c", 199_000)):
        (tmp_path / name).write_bytes(data[start:] + content(start, start))
    read = read_files([os.fsencode(tmp_path)], SimilarOptions(), silent, NoCatalog())
    assert read.traits.sketches == 3 * NO_SKETCH
    sets = WindowSets(silent)
    sketches = Sketches(read.files, read.traits, sets, 0.5)
    assert [sketches.differ(*pair) for pair in ((0, 1), (0, 2), (1, 2))] == [False, True, True]
    assert sets.bytes_read == 600_000


def test_a_set_is_read_once_and_those_used_last_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abc":
        (tmp_path / name).write_bytes(content(ord(name), 5_000))
    read = read_files([os.fsencode(tmp_path)], SimilarOptions(), silent, NoCatalog())
    sets = WindowSets(silent)
    for _ in range(3):
        sets.compare(read.files, 0, 1)
        sets.compare(read.files, 1, 2)
    assert sets.bytes_read == 15_000
    monkeypatch.setattr(similar, "CACHED_WINDOWS", 1)
    sets = WindowSets(silent)
    for second in (1, 1, 2, 2, 1):
        sets.compare(read.files, 0, second)
    assert sets.bytes_read == 5_000 * 4
