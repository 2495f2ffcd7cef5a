"""Runs of unknown bytes are looked for in as much of a base as memory allows, several parts at a time."""

from __future__ import annotations

import os
from array import array
from typing import Any, cast

import pytest

from rdc.kernel import block_fingerprints, match_runs
from rdc.plan.search import Step
from rdc.session.transfer import compare as gaps_module
from rdc.session.transfer.compare import Gaps

KEY = bytes(range(16))
BASE = os.urandom(600_000)
STEP = Step(64, 256, 4096)
UNPLACED = (1 << 64) - 1


class Held:
    """The part of a SourceFile that this takes."""

    size = len(BASE)

    def __init__(self) -> None:
        self.reads = 0

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        self.reads += 1
        buffer[:] = b"".join(
            BASE[at : at + length] for at, length in zip(rows[0::2], rows[1::2], strict=True)
        )


def near(wanted: bytes, runs: array[int]) -> tuple[array[int], int]:
    """What is found of the runs, and in how many reads."""
    fingerprints = b"".join(
        block_fingerprints(KEY, wanted[offset : offset + length], STEP.size, 8)
        for offset, length in zip(runs[0::4], runs[1::4], strict=True)
    )
    gaps = Gaps(1, KEY, cast(Any, None), cast(Any, None))
    held = Held()
    return gaps._near(cast(Any, held), STEP, 8, runs, fingerprints), held.reads


def test_parts_are_read_together_and_give_what_the_whole_does() -> None:
    starts = range(1_000, 590_000, 30_000)
    wanted = bytearray(BASE)
    runs = array("Q")
    for start in starts:
        wanted[start + 100] ^= 1
        runs.extend((start, 320, start + start % 7, start + 320 + start % 5))
    whole = array("Q", (len(starts), 0, 0, len(BASE)))
    prints = b"".join(block_fingerprints(KEY, wanted[at : at + 320], STEP.size, 8) for at in starts)
    expected = array("Q", match_runs(KEY, BASE, whole, STEP.size, 8, STEP.reach, runs, prints))
    assert len(expected) == 3 * 2 * len(starts)
    assert near(bytes(wanted), runs) == (expected, 1)


def test_batches_are_of_so_many_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = array("Q", (n for at in range(0, 500_000, 50_000) for n in (at, 64, at, UNPLACED)))
    found, reads = near(BASE, runs)
    assert reads == 1
    monkeypatch.setattr(gaps_module, "SPAN_BYTES", 1_300)
    assert near(BASE, runs) == (found, 5)
    assert len(found) == 3 * 10


def test_neighbours_that_are_too_far_apart_take_no_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gaps_module, "SEARCH_BYTES", 100_000)
    wanted = BASE[10_000:10_064] + BASE[500_000:500_064]
    run = array("Q", (0, 128, 10_000, 500_064))
    assert near(wanted, run)[0].tolist() == [0, 10_000, 64]


def test_what_lies_beyond_the_base_is_nowhere() -> None:
    run = array("Q", (0, 128, len(BASE) + 10_000, UNPLACED, 128, 64, len(BASE) - 64, UNPLACED))
    assert near(bytes(128) + BASE[-64:], run)[0].tolist() == [128, len(BASE) - 64, 64]
