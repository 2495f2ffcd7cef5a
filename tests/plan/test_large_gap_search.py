"""The questions about a file's large_gaps: within the bounds of messages, each byte asked about once."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.plan import search as module
from rdc.plan.search import CODE_STEP, NOWHERE, LargeGap, LargeGapSearch, Step, Window

NEAR = Step(64, 256, 4096)


def no_find(window: Window, size: int, width: int, fingerprints: bytes) -> Sequence[int]:
    raise AssertionError("this step looks near by")


def no_near(base: int, step: Step, width: int, runs: array[int], fingerprints: bytes) -> array[int]:
    raise AssertionError("this step looks everywhere")


def large_gap(*windows: Window, offset: int = 1_000, length: int = 512 * 10 + 100) -> LargeGap:
    return LargeGap(offset, length, windows or (Window(0, 0, 1 << 20),), 0, length)


def test_blocks_everywhere_are_looked_for_once_all_parts_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCKS_PER_MESSAGE", 4)
    windows = (Window(0, 0, 9_000), Window(0, 20_000, 100), Window(0, 50_000, 9_000))
    search = LargeGapSearch(2)
    search.large_gaps = [large_gap(*windows)]
    questions = list(search.questions())
    # Ten whole blocks of 512; what is behind them is too short for one.
    assert [question.request.pairs for question in questions] == [
        [(1_000, 2_048)],
        [(3_048, 2_048)],
        [(5_096, 1_024)],
    ]
    width = questions[0].request.width
    calls: list[tuple[Window, int, int, bytes]] = []

    def find(window: Window, size: int, given_width: int, fingerprints: bytes) -> Sequence[int]:
        calls.append((window, size, given_width, fingerprints))
        # The first window has block 0 and 1, the other one 1 and 2.
        places = [NOWHERE] * 10
        for block in (0, 1) if window is windows[0] else (1, 2):
            places[block] = window.offset + 512 * block
        return places

    answers = [bytes([number]) * (width * count) for number, count in enumerate((4, 4, 2))]
    for question, answer in zip(questions, answers, strict=True):
        assert not calls
        question.take(answer, find, no_near)
    # A window that is shorter than a block holds none.
    assert calls == [(window, 512, width, b"".join(answers)) for window in (windows[0], windows[2])]
    matches = search.large_gaps[0].matches
    assert list(zip(matches[0::3], matches[1::3], matches[2::3], strict=True)) == [
        (1_000, 0, 1_024),
        (2_024, 51_024, 512),
    ]


@pytest.mark.parametrize("rounds", range(-1, 6))
def test_each_step_is_asked_once(rounds: int) -> None:
    search = LargeGapSearch(rounds)
    for step in search._steps:
        search.large_gaps = [large_gap()]
        assert {question.request.size for question in search.questions()} == {step.size}
    assert list(search.questions()) == []


def test_with_masks_one_step_follows_but_not_where_none_was_left() -> None:
    search = LargeGapSearch(3)
    search.large_gaps = [large_gap()]
    list(search.questions())
    search.mask_displacements()
    assert {question.request.size for question in search.questions()} == {CODE_STEP.size}
    assert list(search.questions()) == []
    search.mask_displacements()
    assert list(search.questions()) == []


def test_runs_are_bounded_over_all_large_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "RUNS_MAX", 3)
    asked: list[int] = []

    class Greedy(LargeGap):
        def runs(self, step: Step, most: int) -> array[int]:
            asked.append(most)
            count = max(0, min(most, 2))
            return array("Q", [number for row in range(count) for number in (10_000 * row, 640, 0, 0)])

    search = LargeGapSearch(2)
    search.large_gaps = [Greedy(0, 1 << 20, (Window(0, 0, 1 << 20),), 0, 0) for _ in range(4)]
    list(search.questions())  # everywhere
    questions = list(search.questions())
    assert asked == [3, 1, 0, 0]
    assert sum(len(question.request.pairs) for question in questions) == 3


@given(st.lists(st.integers(1, 900), min_size=1, max_size=40), st.integers(1, 12), st.integers(1, 9))
def test_runs_are_shared_out_among_messages(lengths: list[int], blocks_most: int, ranges_most: int) -> None:
    runs = array(
        "Q", [number for row, length in enumerate(lengths) for number in (row * 1_000, length, 7, 9)]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCKS_PER_MESSAGE", blocks_most)
        patch.setattr(module, "RANGES_PER_MESSAGE", ranges_most)
        near: list[array[int]] = []

        def take(base: int, step: Step, width: int, some: array[int], fingerprints: bytes) -> array[int]:
            near.append(some)
            return array("Q")

        for question in module._nearby(large_gap(), runs, NEAR):
            pairs = question.request.pairs
            blocks = sum(-(-length // NEAR.size) for _, length in pairs)
            # A run that is longer than a message may say goes alone.
            assert len(pairs) == 1 or (blocks <= blocks_most and len(pairs) <= ranges_most)
            question.take(b"", no_find, take)
            assert list(near[-1][0::4]) == [offset for offset, _ in pairs]
            assert list(near[-1][1::4]) == [length for _, length in pairs]
    assert sum(near, array("Q")) == runs
