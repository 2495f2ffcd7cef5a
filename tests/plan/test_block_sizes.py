"""The block sizes of a search: what they are expected to cost, and when one round trip replaces two."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdc.chunking import ChunkParams
from rdc.plan.search import (
    EDIT_SPACING,
    LADDERS,
    LITERAL_SHARE,
    ONE_SIZES,
    PRINT_BYTES,
    SPARE_BYTES,
    BlockSearch,
    Window,
    expected_bytes,
    sizes_for,
)
from rdc.signature.tree import sign
from tests.plan.block_answers import Honest, literal_bytes, recipe

TWO_SIZES = LADDERS[-1]


def counted_bytes(length: int, edits: Sequence[int], sizes: Sequence[int]) -> float:
    """Count the fingerprints and literals of one gap with one-byte edits at these offsets: the definition."""
    asked, prints = [(0, length)], 0
    for size in sizes:
        blocks = [(at, min(at + size, stop)) for start, stop in asked for at in range(start, stop, size)]
        prints += len(blocks)
        asked = [(start, stop) for start, stop in blocks if any(start <= edit < stop for edit in edits)]
    return PRINT_BYTES * prints + LITERAL_SHARE * sum(stop - start for start, stop in asked)


@given(st.integers(1, 16), st.sampled_from([*((size,) for size in ONE_SIZES), TWO_SIZES]))
def test_the_expected_bytes_are_those_of_edits_far_apart(spaces: int, sizes: tuple[int, ...]) -> None:
    length = spaces * EDIT_SPACING
    edits = [length * at // (spaces + 1) for at in range(1, spaces + 2)]
    edits[-1] = length - 1
    expected = expected_bytes(length, 1, sizes)
    assert counted_bytes(length, edits, sizes) == pytest.approx(expected, rel=0.02, abs=40 * len(edits))


@given(st.integers(0, 1 << 30), st.integers(0, 1 << 16), st.integers(-1, 5), st.floats(0, 1e6))
@example(1 << 30, 1, 2, 0.0)
@example(0, 0, 2, 0.0)
def test_one_round_trip_costs_at_most_the_spare_bytes_more_than_two(
    unknown: int, gaps: int, rounds: int, spare: float
) -> None:
    chosen = sizes_for(unknown, gaps, rounds, spare)
    assert len(chosen.sizes) == max(0, min(rounds, len(chosen.sizes)))
    if rounds < 2:
        assert (chosen.sizes, chosen.spent) == (LADDERS[max(0, rounds)], 0)
        return
    single = min(expected_bytes(unknown, gaps, (size,)) for size in ONE_SIZES)
    double = expected_bytes(unknown, gaps, TWO_SIZES)
    assert expected_bytes(unknown, gaps, chosen.sizes) == (single if single - double <= spare else double)
    assert chosen.spent == (max(0.0, single - double) if len(chosen.sizes) == 1 else 0)
    assert chosen.spent <= spare


def test_a_large_file_with_few_edits_is_searched_in_one_round_trip_while_there_are_spare_bytes() -> None:
    rng = random.Random(12)
    base = rng.randbytes(1 << 20)
    target = bytearray(base)
    for at in range(90_000, 1 << 20, 130_000):
        target[at : at + 40] = rng.randbytes(45)
    trees = [sign(base, ChunkParams.for_mean(16384))]
    before = recipe(sign(bytes(target), ChunkParams.for_mean(16384)), trees)
    found = {}
    for spare in (0, SPARE_BYTES):
        ends = Honest(bytes(target), [base])
        search = BlockSearch(before, trees, 6, spare)
        cost = LITERAL_SHARE * literal_bytes(ends.run(search)) + ends.fingerprint_bytes
        found[spare] = ends.rounds, cost, search.spent
    (two, less, nothing), (one, more, spent) = found[0], found[SPARE_BYTES]
    assert (two, one, nothing) == (2, 1, 0)
    assert less < more <= less + 1.5 * spent <= less + 1.5 * SPARE_BYTES


def test_the_files_of_a_session_share_the_spare_bytes() -> None:
    spare, sizes = float(SPARE_BYTES), []
    for _ in range(20):
        chosen = sizes_for(150_000, 9, 6, spare)
        spare -= chosen.spent
        sizes.append(len(chosen.sizes))
    assert spare >= 0
    assert sizes[0] == 1 and sizes[-1] == 2 and sizes == sorted(sizes)


@pytest.mark.parametrize("compresses", [True, False])
def test_content_that_does_not_compress_takes_no_spare_bytes(compresses: bool) -> None:
    rng = random.Random(13)
    base = rng.randbytes(1 << 20)
    target = bytearray(base)
    for at in range(90_000, 1 << 20, 130_000):
        target[at : at + 40] = rng.randbytes(45)
    trees = [sign(base, ChunkParams.for_mean(16384))]
    before = recipe(sign(bytes(target), ChunkParams.for_mean(16384)), trees)
    looked: list[Window] = []

    def look(window: Window) -> bool:
        looked.append(window)
        return compresses

    search = BlockSearch(before, trees, 6, SPARE_BYTES, look)
    assert (len(looked), search.spent > 0) == (1, compresses)
    assert {ask.size for ask in search.questions()} <= ({*ONE_SIZES} if compresses else {*TWO_SIZES})
