"""Regions: which runs are asked about, where they are looked for, and what that finds of rebuilt code."""

from __future__ import annotations

import random
from array import array
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.chunking import SYNC_PARAMS
from rdc.limits import BLOCKS_PER_MESSAGE, RANGES_PER_MESSAGE
from rdc.plan import search as large_gaps
from rdc.plan.descent import Fetch
from rdc.plan.search import (
    CODE_STEP,
    LARGE_GAP_BYTES,
    UNPLACED,
    BlockQuestion,
    BlockSearch,
    LargeGap,
    LargeGapSearch,
    Step,
    Window,
)
from rdc.signature.tree import sign
from tests.plan.block_answers import Honest, literal_bytes, searched

WINDOW = (Window(0, 0, 1 << 20),)
STEP = Step(128, 1024, 2048)


def rows(numbers: array[int], width: int) -> list[tuple[int, ...]]:
    return [tuple(numbers[i : i + width]) for i in range(0, len(numbers), width)]


def library(seed: int, size: int, shift: int) -> bytes:
    """What looks like code: four bytes in every forty are an address, which is `shift` further on."""
    rng = random.Random(seed)
    made = bytearray(rng.randbytes(size))
    for at in range(0, size - 4, 40):
        made[at : at + 4] = (rng.randrange(1 << 24) + shift).to_bytes(4, "little")
    return bytes(made)


def test_code_with_other_addresses_is_found_between_them() -> None:
    """Of 40 bytes 36 are the old ones, in blocks of 32 at most; no block of 64 is without an address."""
    old = b"".join(library(i, 30_000, 0) + random.Random(i).randbytes(3_000) for i in range(20))
    new = b"".join(library(i, 30_000, 4096 * (i % 3)) + random.Random(i).randbytes(3_000) for i in range(20))
    ends, literals = searched(new, old)
    assert len(new) > LARGE_GAP_BYTES
    # A third did not change; of the rest some blocks of 32 lie between two addresses.
    assert literals < len(new) * 0.66
    assert ends.fingerprint_bytes < len(new) // 20
    # The gaps between what did not change are no large gaps. Such are asked about in two sizes.
    assert ends.rounds == 2


def test_what_was_put_in_moves_what_follows() -> None:
    rng = random.Random(1)
    old = rng.randbytes(600_000)
    new = bytearray()
    for at in range(0, len(old), 900):
        new += old[at : at + 900] + rng.randbytes(at // 900 % 7)
    _, literals = searched(bytes(new), old)
    # A few bytes in each 900, and around them what is left of a block of 32 on either side.
    assert literals < len(new) // 900 * (7 + 2 * 32 + 16)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 9])
def test_the_steps_fit_the_round_trips(rounds: int) -> None:
    assert len(LargeGapSearch(rounds)._steps) == min(rounds, 3)
    rng = random.Random(2)
    old = rng.randbytes(400_000)
    new = b"".join(old[at : at + 700] + b"?" for at in range(0, len(old), 700))
    trees = [sign(old, SYNC_PARAMS)]
    ends = Honest(new, [old])
    parts = (Fetch(b"1234", len(new), 1),)
    found = ends.run(BlockSearch(parts, trees, rounds))
    assert ends.rounds == min(rounds, 3)
    assert (literal_bytes(found) < len(new)) == (rounds > 0)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3, 9])
def test_with_masks_two_steps_are_enough(rounds: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is known once the first questions are."""
    rng = random.Random(2)
    old = rng.randbytes(400_000)
    new = b"".join(old[at : at + 700] + b"?" for at in range(0, len(old), 700))
    search = BlockSearch((Fetch(b"1234", len(new), 1),), [sign(old, SYNC_PARAMS)], rounds)
    sizes: list[int] = []
    questions = search.questions

    def told() -> list[BlockQuestion]:
        found = questions()
        sizes.extend({ask.size for ask in found})
        if len(sizes) == 1:
            search.mask_displacements()
        return found

    monkeypatch.setattr(search, "questions", told)
    ends = Honest(new, [old])
    ends.run(search)
    assert sizes == [512, CODE_STEP.size][: min(rounds, 2)]


def test_runs_end_where_nothing_is_near() -> None:
    large_gap = LargeGap(1000, 50_000, WINDOW, 900, 60_000)
    assert rows(large_gap.runs(STEP, 99), 4) == [
        # Before and behind do not agree about 9,100 bytes, but nearly: both are tried at both ends.
        (1000, 2048, 900, 60_000 - 50_000 + 2048),
        (51_000 - 2048, 2048, 900 + 50_000 - 2048, 60_000),
    ]
    large_gap.add(array("Q", [5000, 500_000, 1000]))
    assert rows(large_gap.runs(STEP, 99), 4) == [
        # Of two minds: each is believed for its half.
        (1000, 2000, 900, UNPLACED),
        (3000, 2000, UNPLACED, 500_000),
        (6000, 2048, 501_000, UNPLACED),
        (51_000 - 2048, 2048, UNPLACED, 60_000),
    ]
    assert len(large_gap.runs(STEP, 1)) >= 4
    assert not large_gap.runs(STEP, 0)


def test_runs_are_bounded() -> None:
    """However many pieces a peer makes of a file."""
    large_gap = LargeGap(0, 1 << 20, WINDOW, 0, UNPLACED)
    large_gap.add(array("Q", [n for at in range(0, 1 << 20, 1024) for n in (at, at, 512)]))
    assert len(rows(large_gap.runs(STEP, 5000), 4)) == 1024
    assert 100 <= len(rows(large_gap.runs(STEP, 100), 4)) <= 101


match_lists = st.lists(
    st.tuples(st.integers(0, 300), st.integers(1, 200), st.one_of(st.integers(0, 5000))), max_size=20
)
steps = st.builds(Step, st.integers(1, 200), st.integers(0, 50), st.integers(1, 400))
unknown = st.one_of(st.integers(0, 9000), st.just(UNPLACED))


@settings(deadline=None)
@given(match_lists, steps, unknown, unknown, st.integers(0, 500))
def test_runs_lie_between_matches_and_name_their_neighbours(
    drawn: list[tuple[int, int, int]], step: Step, before: int, behind: int, rest: int
) -> None:
    at, taken = 100, array("Q")
    for gap, length, base_offset in drawn:
        taken.extend((at + gap, base_offset, length))
        at += gap + length
    large_gap = LargeGap(100, at - 100 + rest, WINDOW, before, behind)
    large_gap.add(taken)
    known = {i for offset, _, length in rows(large_gap.matches, 3) for i in range(offset, offset + length)}
    assert known == {i for offset, _, length in rows(taken, 3) for i in range(offset, offset + length)}
    end = 0
    for offset, length, ahead, back in rows(large_gap.runs(step, 1000), 4):
        assert offset >= max(end, 100)
        assert 0 < length <= 2 * step.ends
        end = offset + length
        assert end <= large_gap.end
        assert known.isdisjoint(range(offset, end))
        assert (ahead, back) != (UNPLACED, UNPLACED)
        assert ahead == UNPLACED or ahead >= 0


@settings(deadline=None)
@given(match_lists)
def test_matches_that_go_on_are_one(drawn: list[tuple[int, int, int]]) -> None:
    large_gap = LargeGap(0, 1 << 20, WINDOW, 0, UNPLACED)
    found, at = array("Q"), 0
    for gap, length, _ in drawn:
        found.extend((at + gap, at + gap + 7, length))
        at += gap + length
    large_gap.add(found[3:6])
    large_gap.add(found[:3] + found[6:])
    joined = rows(large_gap.matches, 3)
    assert sum(length for _, _, length in joined) == sum(length for _, length, _ in drawn)
    assert all(one[0] + one[2] < other[0] for one, other in pairwise(joined))


def test_blocks_that_follow_each_other_are_one_match() -> None:
    large_gap = LargeGap(10, 1 << 20, WINDOW, 0, UNPLACED)
    large_gap.take_offsets(4, array("Q", [8, 12, UNPLACED, 16, 20, 100, UNPLACED]))
    assert rows(large_gap.matches, 3) == [(10, 8, 8), (22, 16, 8), (30, 100, 4)]


def test_questions_about_a_long_region_stay_within_messages() -> None:
    """A large_gap of more blocks and runs than a message may ask for, all fingerprints lies."""
    size = (BLOCKS_PER_MESSAGE + 100) * 512
    base = sign(b"base" * 1000, SYNC_PARAMS)
    search = BlockSearch((Fetch(b"1234", size, 1),), [base], 3)
    first = search.questions()
    assert [len(ask.pairs) for ask in first] == [1, 1]
    assert sum(length for ask in first for _, length in ask.pairs) == size
    for ask in first:
        blocks_asked = sum(-(-length // ask.size) for _, length in ask.pairs)
        search.take(
            bytes(blocks_asked * ask.width),
            lambda *_: (b"", b"", b""),
            # Every other block is found.
            lambda window, size, width, prints: [
                row * 512 if row % 2 else UNPLACED for row in range(len(prints) // width)
            ],
            lambda *_: array("Q"),
        )
    second = search.questions()
    assert len(second) > 1
    for ask in second:
        assert len(ask.pairs) <= RANGES_PER_MESSAGE
        assert sum(-(-length // ask.size) for _, length in ask.pairs) <= BLOCKS_PER_MESSAGE


def test_a_long_gap_is_sliced_and_each_slice_searched_near_its_offset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_gaps, "SLICE_BYTES", 300_000)
    rng = random.Random(4)
    old = rng.randbytes(1_000_000)
    new = b"".join(old[at : at + 3000] + b"!" for at in range(0, len(old), 3000))
    looked: list[int] = []

    class Counting(Honest):
        def find(self, window: Window, size: int, width: int, fingerprints: bytes) -> list[int]:
            looked.append(window.length)
            return super().find(window, size, width, fingerprints)

    ends = Counting(new, [old])
    found = ends.run(BlockSearch((Fetch(b"1234", len(new), 1),), [sign(old, SYNC_PARAMS)], 3))
    assert len(looked) == 4
    assert max(looked) <= 2 * 300_000
    assert literal_bytes(found) < len(new) // 3000 * 200
