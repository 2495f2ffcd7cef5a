"""What a check costs on the wire, in bytes and round trips."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from rdc.checking.records import CheckOptions, Sample
from rdc.model.sync import SyncOptions
from tests.support.running.checking import check_in_turns
from tests.support.running.syncing import Way

FILES = 3000
"""Twelve groups of files that share a reference."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("cost")
    one, other = place / "one", place / "other"
    rng = random.Random(1)
    for directory in range(30):
        (one / f"d{directory}").mkdir(parents=True)
        for number in range(FILES // 30):
            (one / f"d{directory}" / f"name-{number}").write_bytes(rng.randbytes(200))
    shutil.copytree(one, other)
    return one, other


WAYS = pytest.mark.parametrize("way", [Way.PUSH, Way.PULL])


def total(one: Path, other: Path, way: Way, options: CheckOptions | None = None) -> tuple[int, int]:
    done = check_in_turns(one, other, options, way=way).done
    assert done.exit in (0, 1)
    return done.bytes_sent + done.bytes_received, done.round_trips


@WAYS
def test_equal_trees_cost_a_few_hundred_bytes(places: tuple[Path, Path], way: Way) -> None:
    size, round_trips = total(*places, way)
    # Openings, the manifest's root and its top; then a reference of 6 bytes for each 256 files.
    assert size <= 600
    assert round_trips <= 2


@WAYS
def test_one_hidden_change_costs_a_group(places: tuple[Path, Path], way: Way) -> None:
    one, other = places
    path = other / "d17" / "name-41"
    old, content = path.stat(), path.read_bytes()
    path.write_bytes(bytes(len(content)))
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))
    try:
        equal = 600
        size, round_trips = total(one, other, way)
        # The references of 256 files, one by one.
        assert size <= equal + 256 * 6 + 200
        assert round_trips <= 3
    finally:
        path.write_bytes(content)
        os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


def test_a_large_file_is_not_sent(tmp_path: Path) -> None:
    content = random.Random(2).randbytes(5 << 20)
    for name, data in (("one", content), ("other", content[:-1] + b"x")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "large").write_bytes(data)
        os.utime(tmp_path / name / "large", ns=(0, 0))
        os.utime(tmp_path / name, ns=(0, 0))
    checked = check_in_turns(tmp_path / "one", tmp_path / "other")
    assert checked.found == {b"large": {"content"}}
    assert checked.done.bytes_sent + checked.done.bytes_received < 500


def test_a_sample_reads_its_share_and_both_runs_choose_the_same(places: tuple[Path, Path]) -> None:
    sampled = [
        check_in_turns(*places, CheckOptions(SyncOptions(), sample=Sample(0.1, seed)), way=way).done
        for seed, way in ((0, Way.PUSH), (0, Way.PULL), (1, Way.PULL))
    ]
    assert sampled[0].files == FILES
    assert 0.07 * FILES < sampled[0].files_compared < 0.13 * FILES
    assert sampled[0].files_compared == sampled[1].files_compared
    assert sampled[0].files_compared != sampled[2].files_compared
    whole = check_in_turns(*places, CheckOptions(SyncOptions(), sample=Sample(1.0))).done
    assert whole.files_compared == FILES
