"""The choice of ways: what it costs at most if the rate is wrong, that it follows the rate, and its
windows."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.model.sync import SyncOptions
from rdc.plan.ways import (
    DELTA_FILE,
    EFFORTS,
    FIRST_WINDOW,
    NET_LEAST,
    NO_LINE,
    STAY,
    UNKNOWN,
    WHOLE_BYTES,
    WINDOW_GROWTH,
    WINDOW_SECONDS,
    Line,
    Packing,
    Windows,
    best_packing,
    line_of,
    prefers_whole,
    seconds_of,
    whole_byte,
    whole_up_to,
)
from tests.support.project_paths import TOP

rates = st.floats(1e3, 1e11)
trips = st.floats(0, 2)
some_sizes = st.lists(st.integers(0, 1 << 14) | st.integers(0, 1 << 32), max_size=20)

WRONG = 1.5
"""Factor by which a measured rate may be wrong."""


def least(sizes: list[int], line: Line) -> float:
    """Seconds of the best choice, by a look at each: the ways differ only in how many of the longest files
    come by delta."""
    return min(seconds_of(sizes, line, most) for most in (*sizes, 0, float("inf")))


@given(some_sizes, rates, trips, st.floats(1 / WRONG, WRONG))
def test_a_wrong_rate_costs_at_most_half_as_much_again(
    sizes: list[int], rate: float, trip: float, wrong: float
) -> None:
    line = Line(rate, trip)
    chosen = whole_up_to(sizes, Line(rate * wrong, trip))
    slack = WHOLE_BYTES * whole_byte(rate) * len(sizes)  # the shortest come whole in any case
    assert seconds_of(sizes, line, chosen) <= WRONG * least(sizes, line) + slack + 1e-9


@given(some_sizes, rates, trips)
def test_with_the_right_rate_nothing_is_better(sizes: list[int], rate: float, trip: float) -> None:
    line = Line(rate, trip)
    slack = WHOLE_BYTES * whole_byte(rate) * len(sizes)
    best = least(sizes, line)
    assert seconds_of(sizes, line, whole_up_to(sizes, line)) <= best * (1 + 1e-9) + slack + 1e-9


@given(some_sizes, rates, st.floats(1, 1000), trips, st.booleans())
def test_on_a_faster_line_no_file_turns_to_a_delta(
    sizes: list[int], rate: float, faster: float, trip: float, whole: bool
) -> None:
    slow, fast = (whole_up_to(sizes, Line(each, trip), whole=whole) for each in (rate, rate * faster))
    assert slow <= fast
    assert prefers_whole(Line(rate)) <= prefers_whole(Line(rate * faster))


@given(some_sizes, rates, trips)
def test_what_comes_whole_stays_so_for_a_rate_a_little_lower(
    sizes: list[int], rate: float, trip: float
) -> None:
    now, before = (whole_up_to(sizes, Line(each, trip), whole=each < rate) for each in (rate, rate / 1.1))
    assert before >= now


@given(some_sizes, trips)
def test_at_an_unknown_rate_only_the_shortest_come_whole(sizes: list[int], trip: float) -> None:
    assert whole_up_to(sizes, Line(0, trip)) == WHOLE_BYTES
    assert not prefers_whole(UNKNOWN)


def test_without_a_line_all_come_whole_and_unpacked() -> None:
    assert whole_up_to([1 << 40], NO_LINE) == float("inf")
    assert best_packing(NO_LINE.rate) is Packing.NONE


def test_packing_follows_the_rate() -> None:
    found = [best_packing(10.0**power) for power in range(3, 12)]
    assert sorted(found) == found
    assert set(found) == set(Packing)


def test_round_trips_weigh_against_few_bytes() -> None:
    sizes, slow = [100_000], 2e6
    assert whole_up_to(sizes, Line(slow)) < sizes[0] < whole_up_to(sizes, Line(slow, 0.1))
    assert whole_up_to([1 << 30], Line(slow, 0.1)) < 1 << 30


@pytest.mark.parametrize(
    ("options", "here", "line"),
    [
        (SyncOptions(), True, NO_LINE),
        (SyncOptions(), False, UNKNOWN),
        (SyncOptions(line=5000), True, Line(5000)),
        (SyncOptions(bandwidth=4000), False, Line(4000)),
        (SyncOptions(line=5000, bandwidth=4000), False, Line(4000)),
        (SyncOptions(fewest_bytes=True, bandwidth=4000), True, None),
        (SyncOptions(whole_file=True), True, None),
        (SyncOptions(dry_run=True), True, None),
        (SyncOptions(append=True), True, None),
    ],
)
def test_what_options_say_of_the_line(options: SyncOptions, here: bool, line: Line | None) -> None:
    assert line_of(options, here=here) == line


def test_the_manual_has_the_table_of_choices() -> None:
    page = (TOP / "docs" / "howto" / "slow-line.md").read_text()
    names = {Packing.AS_EVER: "as usual", Packing.QUICK: "quick", Packing.NONE: "none"}
    rows = []
    for mbit in (10, 100, 300, 400, 500, 1000, 8000, 0):
        rate = mbit * 1e6 / 8 if mbit else NO_LINE.rate
        most = whole_up_to([1 << 40], Line(rate))
        rows.append(
            f"| {f'{mbit:,} Mbit/s' if mbit else 'both on this machine'} |"
            f" {'any' if most == float('inf') else f'{most / 1000:.0f} KB'} | {names[best_packing(rate)]} |"
        )
    assert "\n".join(rows) in page


# Windows, on lines that are made up: a window takes the time of its bytes.

SHARE = 0.25


def carried(
    sizes: list[int], rates_of: list[float], stalls: Mapping[int, float] = MappingProxyType({})
) -> tuple[float, float, int]:
    """Send files of these sizes, the shortest first, over a line whose n-th window has the n-th rate, the
    last one for all others. `stalls`: seconds by which a window takes longer. Return the seconds, those of
    the best way at each rate, and how many files came by delta."""
    windows, left, seconds, best, deltas = Windows(), sorted(sizes), 0.0, 0.0, 0
    for number in range(1000):
        rate = rates_of[min(number, len(rates_of) - 1)]
        line, most = Line(rate), windows.whole_up_to(left, 0.0)
        by_delta = [size for size in left if size > most]
        seconds, best = seconds + seconds_of(by_delta, line, 0), best + least(by_delta, line)
        left = [size for size in left if size <= most]
        deltas += len(by_delta)
        window, room, packing = list[int](), windows.room, windows.packing
        while left and sum(window) < room and not (windows.is_strict and sum(window) + left[0] > room):
            window.append(left.pop(0))
        if not window:
            seconds, best = seconds + seconds_of(left, line, 0), best + least(left, line)
            return seconds, best, deltas + len(left)
        content = sum(window)
        share = 1.0 if packing is Packing.NONE else SHARE
        took = content * share / rate + content * (1.7e-9 if packing is Packing.NONE else 3.3e-9)
        seconds, best = seconds + took, best + least(window, line)
        stall = stalls.get(number, 0.0)
        seconds, best = seconds + stall, best + stall
        windows.ended(content, int(content * share), took + stall + WINDOW_SECONDS, packing)
    raise AssertionError("windows without an end")


@given(st.lists(st.integers(1 << 10, 1 << 17), min_size=1, max_size=400), rates)
def test_a_line_that_nobody_knows_costs_little_more_than_one_that_is_known(
    sizes: list[int], rate: float
) -> None:
    """Beyond the first two windows, which find the rate out, at most twice as much."""
    seconds, best, _ = carried(sizes, [rate])
    first = 3 * (FIRST_WINDOW + max(sizes)) + FIRST_WINDOW
    assert seconds <= 2 * best + first * SHARE / rate + min(first / rate, first / 12e6) + first * 5e-9


@given(
    st.lists(st.integers(1 << 10, 1 << 17), min_size=1, max_size=400),
    st.lists(rates, min_size=1, max_size=6),
)
def test_a_line_that_changes_its_rate_costs_what_was_sent_before_at_most(
    sizes: list[int], changing: list[float]
) -> None:
    windows_bytes = min(sum(sizes), FIRST_WINDOW * WINDOW_GROWTH ** len(changing))
    seconds, best, _ = carried(sizes, changing)
    slowest = min(changing)
    most = windows_bytes + 2 * max(sizes) + FIRST_WINDOW + FIRST_WINDOW * len(changing)
    assert seconds <= 2 * best + most / slowest + most * 5e-9 + DELTA_FILE * len(sizes)


@given(
    st.lists(st.integers(1 << 10, 1 << 16), min_size=1, max_size=400),
    st.floats(1.25e8, 1e11),
    st.sets(st.integers(0, 16)).map(lambda found: {one for one in found if one - 1 not in found}),
    st.floats(0, 1e4),
)
def test_stalls_do_not_turn_a_fast_line_to_deltas(
    sizes: list[int], rate: float, windows: set[int], stall: float
) -> None:
    """Unless two windows stall one after the other."""
    _, _, deltas = carried(sizes, [rate], dict.fromkeys(windows, stall))
    assert not deltas


def test_a_line_that_is_slow_from_the_start_gets_one_short_window_more() -> None:
    windows = Windows()
    windows.ended(FIRST_WINDOW, FIRST_WINDOW // 4, 0.1, Packing.AS_EVER)
    assert windows.is_strict
    assert (windows.room, windows.whole_up_to([1 << 30], 0.0)) == (FIRST_WINDOW, float("inf"))
    windows.ended(FIRST_WINDOW, FIRST_WINDOW // 4, 0.05, Packing.AS_EVER)
    assert not windows.is_strict
    assert windows.whole_up_to([1 << 30], 0.0) < 1 << 20


@given(st.floats(1e5, 1e9), st.sampled_from(Packing), st.booleans())
def test_the_fixed_time_of_a_short_window_is_no_property_of_the_line(
    rate: float, packing: Packing, model: bool
) -> None:
    """If the window takes what the model says, the rate is right, up to a bound; a quicker window tells at
    most three times its rate."""
    windows, sent = Windows(), FIRST_WINDOW // 4
    own = WINDOW_SECONDS + FIRST_WINDOW * min(e.seconds for e in EFFORTS if e.packing is packing)
    seconds = sent / rate + (own if model else 0.0)
    windows.ended(FIRST_WINDOW, sent, seconds, packing)
    if not model:
        assert rate * (1 - 1e-9) <= windows.rate <= rate / NET_LEAST * (1 + 1e-9)
    elif sent / rate >= NET_LEAST * seconds:
        assert windows.rate == pytest.approx(rate)
    else:
        assert sent / seconds <= windows.rate <= rate


@pytest.mark.parametrize("seconds", [0.0, -3.0, float("nan")])
def test_a_clock_that_jumps_is_ignored(seconds: float) -> None:
    windows = Windows()
    windows.ended(FIRST_WINDOW, FIRST_WINDOW, seconds, Packing.AS_EVER)
    assert windows.rate == 0
    assert windows.room == FIRST_WINDOW * WINDOW_GROWTH


def test_a_fast_line_is_tried_once_without_compression() -> None:
    windows = Windows()
    windows.ended(FIRST_WINDOW, FIRST_WINDOW // 4, 0.002, Packing.AS_EVER)
    assert windows.tries_plain
    assert [windows.packing] == [Packing.NONE]
    assert windows.room == FIRST_WINDOW
    windows.ended(FIRST_WINDOW, FIRST_WINDOW, 0.0021, Packing.NONE)
    assert [windows.packing] == [Packing.QUICK]  # it brought less content a second
    windows.ended(FIRST_WINDOW, FIRST_WINDOW // 4, 0.0005, Packing.QUICK)
    assert [windows.packing] != [Packing.NONE]


def test_hysteresis_is_no_more_than_what_it_says() -> None:
    turns = [rate for rate in range(1_000_000, 200_000_000, 1_000_000) if prefers_whole(Line(rate))]
    assert whole_up_to([1 << 30], Line(turns[0]), whole=True) == float("inf")
    assert whole_up_to([1 << 30], Line(turns[0] / STAY / 2), whole=True) < 1 << 30
