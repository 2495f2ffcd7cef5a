"""Estimates: counts beyond the memory are sampled, and the bounds hold as often as stated."""

from __future__ import annotations

import random
from array import array
from pathlib import Path

import pytest

from rdc.library.scans import scan
from rdc.model.scan import ScanOptions
from rdc.survey.count.chunk_counter import (
    SAMPLE_CHUNKS,
    STRATA,
    ChunkCounter,
    CompressionSample,
    Figures,
    expected_shift,
)
from rdc.survey.count.chunk_locations import ChunkLocations, ChunkReferences
from rdc.survey.scan import summary as overlap
from rdc.survey.scan.summary import overlaps
from scripts.soak_survey import chunk_trial, compression_trial, file_trial
from tests.support.running.expected_counts import count


def test_bounds_hold_as_often_as_they_say() -> None:
    """The long form is scripts/soak survey: 300 trials each, at least 93 % within the bounds."""
    for trial in (chunk_trial, file_trial, compression_trial):
        held = sum(trial(seed) for seed in range(30))
        # At a true rate of 95 %, 25 or fewer of 30 happen once in 300 runs. The seeds are fixed.
        assert held >= 26, f"{trial.__name__}: {held} of 30"


def test_a_scan_in_little_memory(tmp_path: Path) -> None:
    drawn = random.Random(12)
    for number in range(40):
        (tmp_path / f"{number}").write_bytes(drawn.randbytes(drawn.randint(1, 900_000)))
        if number % 4 == 0:
            (tmp_path / f"{number} again").write_bytes((tmp_path / f"{number}").read_bytes())
    whole = scan([tmp_path], ScanOptions(compress=False), catalog=None)
    little = scan([tmp_path], ScanOptions(compress=False, memory=40_000), catalog=None)
    for exact, about in zip(whole.levels, little.levels, strict=True):
        assert exact.exact
        assert (about.chunks, about.bytes) == (exact.chunks, exact.bytes)
        assert about.low <= about.unique_bytes <= about.high <= about.bytes
        if about.name != "file":
            assert about.low <= exact.unique_bytes <= about.high
    assert not little.levels[1].exact
    assert little.levels[1].low < little.levels[1].high
    assert whole.levels[0].unique_bytes == count([tmp_path]).level("file").figures[3]


def test_many_copies_do_not_mislead() -> None:
    """One chunk with a million copies, in the sample or not: the estimate counts it once."""
    for seed in range(6):
        drawn = random.Random(seed)
        tally = ChunkCounter(40_000)
        keys = array("Q", [drawn.getrandbits(64) for _ in range(30_000)])
        sizes = array("Q", [4096]) * len(keys)
        tally.add(keys.tobytes(), sizes.tobytes())
        tally.add(*(array("Q", [n]).tobytes() for n in (drawn.getrandbits(64), 4096, 1_000_000)))
        figures = tally.figures()
        assert not figures.exact
        assert abs(figures.unique_bytes / (30_001 * 4096) - 1) < 0.15
        assert figures.bytes == 4096 * 1_030_000


def test_large_files_are_not_left_to_chance() -> None:
    tally = ChunkCounter(16_000, STRATA)
    drawn = random.Random(3)
    for size, many in ((1000, 5000), (1 << 30, 20)):
        keys = array("Q", [drawn.getrandbits(64) for _ in range(many)])
        tally.add(keys.tobytes(), (array("Q", [size]) * many).tobytes())
    figures = tally.figures()
    assert not figures.exact
    assert abs(figures.unique_bytes - (20 << 30) - 5_000_000) < 2_000_000
    assert figures.high - figures.low < 4_000_000


def plenty(seed: int) -> list[tuple[int, bytes]]:
    drawn = random.Random(seed)
    return [(drawn.getrandbits(64), drawn.randbytes(50) * drawn.randint(1, 40)) for _ in range(5000)]


def test_a_compression_sample_is_a_set_and_bounded() -> None:
    chunks = plenty(1)
    samples = []
    for order in (chunks, chunks[::-1], chunks[::2] + chunks[1::2] + chunks[:100]):
        sample = CompressionSample()
        for key, content in order:
            if sample.wanted(array("Q", [key]).tobytes()):
                sample.take(key, content)
        samples.append((sample.shift, sample.sizes))
        assert SAMPLE_CHUNKS / 3 < len(sample.sizes) <= SAMPLE_CHUNKS
    assert samples[0] == samples[1] == samples[2]
    assert expected_shift(5000 * 4096, 4096) == 2
    assert expected_shift(100, 4096) == 0


def test_a_sample_of_everything_has_no_error() -> None:
    sample = CompressionSample()
    for key, content in plenty(2)[:500]:
        sample.take(key, content)
    total = sum(before for before, _ in sample.sizes.values())
    figures = sample.figures(Figures(500, total, 500, total, 0.0, True, 0, (), ()))
    assert figures is not None
    assert figures.low == figures.bytes == figures.high == sum(after for _, after in sample.sizes.values())


@pytest.mark.parametrize("kept", [0, 1])
def test_too_little_for_an_estimate(kept: int) -> None:
    sample = CompressionSample()
    for key, content in plenty(2)[:kept]:
        sample.take(key, content)
    figures = sample.figures(Figures(10, 10_000, 10, 10_000, 0.0, True, 0, (), ()))
    if not kept:
        assert figures is None
    else:
        assert figures is not None
        assert figures.high - figures.low > 5000


def test_overlaps_of_floods_are_estimated(monkeypatch: pytest.MonkeyPatch) -> None:
    """4,000 chunks in the same twelve directories: the figures stay right with fewer meetings counted."""
    locations, references, drawn = ChunkLocations(), ChunkReferences(), random.Random(6)
    above = locations.add_directory(b"/t", -1)
    wide = [
        locations.location(locations.add_directory(b"/t/%d" % number, above), b".x") for number in range(12)
    ]
    for _ in range(4_000):
        key = drawn.getrandbits(64)
        references.add(array("Q", [key] * 12).tobytes(), array("Q", [1_000] * 12).tobytes(), array("I", wide))
    exact = overlaps(locations, references)
    assert {one.shared_bytes for one in exact} == {4_000_000}
    met = 0
    original = overlap._Tree.candidates

    def candidates(tree: overlap._Tree, first: int, second: int) -> tuple[tuple[int, int], ...]:
        nonlocal met
        met += 1
        return original(tree, first, second)

    monkeypatch.setattr(overlap._Tree, "candidates", candidates)
    monkeypatch.setattr(overlap, "MEETINGS", 40_000)
    bounded = overlaps(locations, references)
    assert 10_000 < met < 45_000
    assert references.shift == 0
    assert [(one.first, one.second) for one in bounded] == [(one.first, one.second) for one in exact]
    for one in bounded:
        assert abs(one.shared_bytes - 4_000_000) < 600_000
        assert one.first_bytes == one.second_bytes == one.shared_bytes
