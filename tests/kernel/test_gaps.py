"""The search for blocks of gaps: C as Python defines it, bad arguments, and what the definition promises."""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from rdc.plan.gap_search import NOWHERE, STRAY_LOOK, Match, Outcome, Span, search_gap
from tests.reference import gaps as pure_gaps
from tests.reference.kernel import block_fingerprints
from tests.support.share import examples

KEY = bytes(range(16))
every_kernel = pytest.mark.parametrize("module", [pure_gaps, _kernel], ids=["pure", "C"])


def packed(*rows: Sequence[int]) -> bytes:
    return array("Q", (number for row in rows for number in row)).tobytes()


@st.composite
def questions(draw: st.DrawFn) -> tuple[Any, ...]:
    """Arguments of `search_gaps`: files edited from one base, of which something is known already."""
    rng = random.Random(draw(st.integers(0, 1 << 30)))
    size, width = draw(st.integers(1, 24)), draw(st.sampled_from([1, 1, 2, 5, 8]))
    # Few letters, and few values of a fingerprint: what repeats, and blocks out of order, are then common.
    base = bytes(rng.randrange(draw(st.sampled_from([2, 3, 256]))) for _ in range(rng.randrange(300)))
    windows, gaps, ranges, matches, fingerprints, offset = b"", b"", b"", b"", b"", 0
    for _ in range(draw(st.integers(0, 4))):
        start = rng.randrange(len(base) + 1)
        window = base[start : start + rng.randrange(250)]
        counts = [0, 0]
        for _ in range(rng.randrange(8)):
            if rng.random() < 0.3 and window:
                length = rng.randint(1, min(40, len(window)))
                base_offset = rng.randint(0, len(window) - length)
                matches += packed((offset, start + base_offset, length))
                counts[1] += 1
            else:
                at = rng.randrange(len(base) + 1)
                block = base[at : at + rng.randrange(120)] + rng.randbytes(rng.choice([0, 0, 30]))
                block = block or b"?"
                length = len(block)
                ranges += packed((offset, length))
                fingerprints += block_fingerprints(KEY, block, size, width)
                counts[0] += 1
            offset += length + rng.choice([0, 0, 5])
        windows += window
        gaps += packed((start, len(window), *counts))
    return KEY, windows, size, width, draw(st.integers(0, 20)), gaps, ranges, matches, fingerprints


@settings(max_examples=examples(500), deadline=None)
@given(questions())
def test_both_say_the_same(asked: tuple[Any, ...]) -> None:
    assert _kernel.search_gaps(*asked) == pure_gaps.search_gaps(*asked)


NUMBERS = st.one_of(
    st.integers(0, 70),
    st.sampled_from(
        [1 << 32, (1 << 32) + 1, 1 << 63, (1 << 63) + 1, (1 << 64) - 2, NOWHERE, 1 << 59, 1 << 60]
    ),
)


@settings(max_examples=examples(500), deadline=None)
@given(questions(), st.data())
def test_numbers_that_do_not_add_up_are_refused_by_both(asked: tuple[Any, ...], data: st.DataObject) -> None:
    """One number of a column is another, or a column is cut short: the same, or ValueError, from both."""
    column = data.draw(st.sampled_from([1, 5, 6, 7, 8]))
    rows = bytearray(asked[column])
    if column in (1, 8) or data.draw(st.booleans()):
        rows = rows[: data.draw(st.integers(0, len(rows)))]
    elif rows:
        at = 8 * data.draw(st.integers(0, len(rows) // 8 - 1))
        rows[at : at + 8] = data.draw(NUMBERS).to_bytes(8, "little")
    changed = (*asked[:column], bytes(rows), *asked[column + 1 :])

    def outcome(module: Any) -> object:
        try:
            return module.search_gaps(*changed)
        except ValueError as error:
            return str(error).split(":")[0]

    assert outcome(_kernel) == outcome(pure_gaps)


@every_kernel
@pytest.mark.parametrize(
    ("gaps", "ranges", "matches", "prints"),
    [
        (bytes(31), b"", b"", 0),
        (b"", bytes(15), b"", 0),
        (b"", b"", bytes(23), 0),
        (packed((0, 101, 0, 0)), b"", b"", 0),
        (packed((0, 99, 0, 0)), b"", b"", 0),
        (packed((NOWHERE, 100, 0, 0)), b"", b"", 0),
        (packed((0, 100, 1, 0)), b"", b"", 0),
        (packed((0, 100, NOWHERE, 0)), packed((0, 4)), b"", 1),
        (packed((0, 100, 1 << 60, 0)), packed((0, 4)), b"", 1),
        (packed((0, 100, 0, 1 << 61)), b"", packed((0, 0, 4)), 0),
        (packed((0, 100, 0, 0)), packed((0, 4)), b"", 1),
        (packed((0, 100, 1, 0)), packed((0, 5)), b"", 1),
        (packed((0, 100, 1, 0)), packed((0, 4)), b"", 2),
        (packed((0, 100, 1, 0)), packed((0, 0)), b"", 0),
        (packed((0, 100, 1, 0)), packed((0, (1 << 32) + 1)), b"", 1),
        (packed((0, 100, 1, 0)), packed((NOWHERE, 4)), b"", 1),
        (packed((0, 100, 2, 0)), packed((8, 4), (0, 4)), b"", 2),
        (packed((0, 100, 2, 0)), packed((0, 8), (4, 4)), b"", 3),
        (packed((0, 100, 0, 1)), b"", packed((0, 97, 4)), 0),
        (packed((50, 100, 0, 1)), b"", packed((0, 49, 4)), 0),
        (packed((0, 100, 0, 1)), b"", packed((0, NOWHERE, 4)), 0),
        (packed((0, 100, 0, 1)), b"", packed((0, 0, 0)), 0),
        (packed((0, 100, 0, 2)), b"", packed((4, 0, 4), (0, 8, 4)), 0),
    ],
)
def test_what_is_out_of_bounds_is_refused(
    module: Any, gaps: bytes, ranges: bytes, matches: bytes, prints: int
) -> None:
    with pytest.raises(ValueError, match="gaps: "):
        module.search_gaps(KEY, bytes(100), 4, 4, 2, gaps, ranges, matches, bytes(4 * prints))


@every_kernel
def test_blocks_that_make_no_sense_are_refused(module: Any) -> None:
    for key, size, width, prints in (
        (KEY[1:], 4, 4, 4),
        (KEY, 0, 4, 4),
        (KEY, 4, 0, 4),
        (KEY, 4, 9, 9),
        (KEY, 4, 4, 5),
    ):
        with pytest.raises(ValueError, match="blocks: a key of 16 bytes"):
            module.search_gaps(key, b"", size, width, 0, b"", b"", b"", bytes(prints))
    with pytest.raises(ValueError, match="gaps: "):
        module.search_gaps(KEY, b"", 4, 4, -1, b"", b"", b"", b"")


def outcome(base: bytes, wanted: bytes, size: int, smaller: int, **known: Sequence[Match]) -> Outcome:
    """Of one gap, all of `wanted`, whose window is all of `base`, by both."""
    matches = known.get("matches", ())
    prints = block_fingerprints(KEY, wanted, size, 8)
    asked = (packed((0, len(base), 1, len(matches))), packed((0, len(wanted))), packed(*matches), prints)
    answers = [m.search_gaps(KEY, base, size, 8, smaller, *asked) for m in (pure_gaps, _kernel)]
    assert answers[0] == answers[1]
    counts, found, left = (array("Q", rows).tolist() for rows in answers[0])
    matches = [Match(*found[i : i + 3]) for i in range(0, len(found), 3)]
    spans = [Span(*left[i : i + 2]) for i in range(0, len(left), 2)]
    assert counts == [len(matches), len(spans)]
    return Outcome(matches, spans)


def test_what_is_found_is_joined_and_what_is_not_is_asked_about_in_smaller_blocks() -> None:
    old = random.Random(1).randbytes(1_000)
    new = old[:300] + b"!" * 200 + old[500:]
    assert outcome(old, new, 100, 64) == Outcome([Match(0, 0, 300), Match(500, 500, 500)], [Span(300, 192)])
    # Of a long run its ends; a rest of less than 16 bytes is not worth a fingerprint.
    new = old[:300] + random.Random(2).randbytes(900) + old[300:]
    assert outcome(old, new, 100, 90) == Outcome(
        [Match(0, 0, 300), Match(1200, 300, 700)], [Span(300, 90), Span(1100, 90)]
    )
    assert outcome(old, new, 100, 0).ranges == []


def test_a_rest_is_looked_for_near_the_end_of_the_window() -> None:
    old = random.Random(3).randbytes(30_000)
    assert outcome(old, old[-150:], 100, 64).matches == [Match(0, 29_850, 150)]
    assert outcome(old, old[:150], 100, 64) == Outcome([Match(0, 0, 100)], [Span(100, 50)])


def test_a_block_alone_and_out_of_order_is_looked_for_between_its_neighbours() -> None:
    rng = random.Random(4)
    common, parts = rng.randbytes(100), [rng.randbytes(6_000) for _ in range(3)]
    old = parts[0] + common + parts[1] + common + parts[2]
    new = parts[1][-200:] + b"?" * 100 + common + b"?" * 100 + parts[2][:200]
    # The first place that has it is before what precedes it.
    assert outcome(old, new, 100, 0).matches[1] == Match(300, 12_100, 100)
    # And with nothing there it was found by chance.
    lost = parts[1][-200:] + b"?" * 100 + parts[0][:100] + b"?" * 100 + parts[2][:200]
    found = outcome(old, lost, 100, 0)
    assert [match.offset for match in found.matches] == [0, 500]


def test_blocks_out_of_order_cost_no_more_than_the_window() -> None:
    """However many there are: the bytes looked through between neighbours, and a call each, stay below it."""
    looked: list[int] = []
    window = Span(0, 40_000)

    def find(span: Span, size: int, prints: bytes) -> list[int]:
        looked.append(span.length)
        return [39_000 - 10 * row for row in range(len(prints) // 8)]

    blocks = 200
    search_gap([window], 20, 8, 0, [Span(0, 20 * blocks)], [Match(9_000, 3_000, 8)], bytes(8 * blocks), find)
    assert len(looked) > 2
    assert sum(looked[1:]) + (len(looked) - 1) * STRAY_LOOK <= window.length
