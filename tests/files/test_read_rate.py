"""ReadRate: never faster than its rate, and no slower."""

from __future__ import annotations

import heapq
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.files.depth import BURST_SECONDS, ReadRate


class Sleepers:
    """A clock for callers that take turns, and what each of them let pass."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept = 0.0

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.slept = seconds


@given(
    st.integers(1, 10**9),
    st.lists(st.tuples(st.floats(0, 3), st.integers(0, 1 << 22)), min_size=1, max_size=30),
    st.integers(1, 4),
)
def test_the_bytes_of_any_time_are_bounded(rate: int, takes: list[tuple[float, int]], threads: int) -> None:
    """`takes`: pauses of a caller and what it asks for then. Each caller waits for its own sleeps only."""
    here = Sleepers()
    limit = ReadRate(rate, here.clock, here.sleep)
    waiting = [(0.0, thread) for thread in range(threads)]
    passed: list[tuple[float, int]] = []
    for pause, size in takes:
        ready, thread = heapq.heappop(waiting)
        here.now = max(here.now, ready + pause)
        here.slept = 0.0
        limit.take(size)
        passed.append((here.now + here.slept, size))
        heapq.heappush(waiting, (here.now + here.slept, thread))
    for begin, _ in passed:
        inside = [(at, size) for at, size in passed if at >= begin]
        for end, _ in inside:
            sizes = [size for at, size in inside if at <= end]
            allowed = rate * (end - begin + BURST_SECONDS) * (1 + 1e-6) + 1
            assert sum(sizes) - max(sizes) <= allowed


def test_a_caller_waits_for_what_it_owes_and_no_longer() -> None:
    here = Sleepers()
    limit = ReadRate(1000, here.clock, here.sleep)
    limit.take(5000)
    assert here.slept == 0
    limit.take(1)
    assert here.slept == pytest.approx(5)
    here.now, here.slept = 60.0, 0.0
    limit.take(int(1000 * BURST_SECONDS))
    limit.take(1)
    assert here.slept == 0


def test_threads_share_one_rate() -> None:
    slept: list[float] = []
    limit = ReadRate(1000, lambda: 0.0, slept.append)
    threads = [threading.Thread(target=limit.take, args=(1000,)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(slept) == pytest.approx([0.9, 1.9, 2.9, 3.9, 4.9, 5.9, 6.9], abs=0.11)
