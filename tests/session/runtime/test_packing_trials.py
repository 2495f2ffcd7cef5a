"""When new files go without compression: what a line and the work of both sides make of a session."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rdc.session.runtime.packing_trials import BETTER, FIRST_RUN_BYTES, TRIED_BYTES, PackingTrials

PART = 1 << 19
"""Bytes of content for which a session asks at a time."""


def sent(rates: tuple[float, float], total: int, *, fast: bool = True) -> tuple[int, float, float]:
    """Send `total` bytes of content at these bytes a second, without compression and with it. Returns the
    bytes that went without it, the seconds in all, and those of the better way."""
    trials, now, plain = PackingTrials(), 0.0, 0
    for _ in range(total // PART):
        trials.count(PART, now, fast=fast)
        plain += PART * trials.plain
        now += PART / rates[not trials.plain]
    best = max(rates) if fast and rates[0] > BETTER * rates[1] else rates[1]
    return plain, now, total / best


def test_what_gets_through_sooner_is_found_out_at_once() -> None:
    total = 1 << 30
    plain, seconds, best = sent((300e6, 90e6), total)
    assert plain > 0.95 * total
    assert seconds < 1.1 * best


def test_a_line_that_gains_by_compression_has_it() -> None:
    total = 1 << 30
    plain, seconds, best = sent((110e6, 300e6), total)
    assert plain <= 5 * TRIED_BYTES
    assert seconds < 1.1 * best


def test_content_that_cannot_be_compressed_is_sent_as_ever() -> None:
    plain, _, _ = sent((500e6, 490e6), 1 << 30)
    assert plain <= 5 * TRIED_BYTES


def test_nothing_is_tried_over_a_slow_line() -> None:
    plain, _, _ = sent((300e6, 90e6), 1 << 28, fast=False)
    assert plain == 0


@given(st.floats(1e6, 1e10), st.floats(1e6, 1e10), st.integers(1, 200))
def test_a_wrong_way_costs_a_bounded_share(plain: float, packed: float, parts: int) -> None:
    """Before each run of the better way, at most one window goes in the other."""
    total = parts * PART
    without, seconds, best = sent((plain, packed), total)
    tried, run, at = 0, FIRST_RUN_BYTES, 0
    while at < total:
        tried, at, run = tried + 1, at + run, 4 * run
    lost = tried * (TRIED_BYTES + PART) / min(plain, packed)
    assert seconds <= BETTER * best + lost
    assert without <= total


def test_a_line_that_becomes_slow_is_compressed_for_again() -> None:
    trials, now = PackingTrials(), 0.0
    ways = []
    for part in range(1000):
        trials.count(PART, now, fast=part < 200)
        ways.append(trials.plain)
        now += PART / (300e6 if trials.plain else 90e6)
    assert any(ways[:200])
    assert not any(ways[-300:])
