"""The policy of rdc.files.depth, against storage that is a formula."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.files.depth import DEPTH_MOST, WAIT_NANOSECONDS, Depth, RowsSeen

MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Storage:
    """Storage that answers up to `width` calls at a time, each after `wait`. `work` is the caller's."""

    wait: int
    width: int
    work: int = 20_000

    def seen(self, rows: int, depth: int, **refused: int) -> RowsSeen:
        in_flight = min(rows, depth)
        useful = min(in_flight, self.width)
        each = max(self.wait * in_flight // useful, 0)
        own = max(1, rows // in_flight)
        elapsed = max(rows * (self.wait + self.work) // useful, rows * self.work)
        return RowsSeen(
            rows, own, own * each, elapsed, refused.get("descriptor", 0), refused.get("thread", 0)
        )


def run(depth: Depth, storage: Storage, rows: int) -> list[int]:
    """Does so many rows, in calls as large as the depth lets them be; returns the depth of each call."""
    taken = []
    while rows > 0:
        some = min(rows, depth.rows, 256)
        taken.append(depth.now)
        depth.saw(storage.seen(some, depth.now))
        rows -= some
    return taken


@given(st.integers(0, WAIT_NANOSECONDS), st.integers(1, 64), st.integers(1, 5000))
def test_one_call_in_flight_where_none_waits(wait: int, width: int, rows: int) -> None:
    assert set(run(Depth(), Storage(wait, width), rows)) == {1}


@given(st.integers(5 * WAIT_NANOSECONDS, 100 * MS), st.integers(1, 64))
def test_the_depth_grows_to_what_the_storage_bears(wait: int, width: int) -> None:
    depth = Depth()
    taken = run(depth, Storage(wait, width), 20_000)
    assert max(taken) <= DEPTH_MOST
    assert all(later <= 2 * earlier for earlier, later in pairwise(taken))
    useful = min(each for each in (1, 2, 4, 8, 16, 32, 64) if each >= width)
    # The work of the caller bounds the rate, too.
    assert depth.now >= min(useful // 2, 8)
    later = taken[len(taken) // 2 :]
    # A step too far is tried now and then, and taken back.
    assert sum(each <= 2 * useful for each in later) == len(later)
    assert later.count(2 * useful) < len(later) / 2


def test_the_first_decisions_take_few_rows() -> None:
    depth, storage = Depth(), Storage(2 * MS, 64)
    rows = 0
    while depth.now < DEPTH_MOST:
        some = depth.rows
        depth.saw(storage.seen(some, depth.now))
        rows += some
    assert rows <= 16 + 16 + 16 + 32 + 64


def test_storage_that_answers_at_once_again() -> None:
    depth = Depth()
    run(depth, Storage(2 * MS, 64), 5000)
    assert depth.now == DEPTH_MOST
    run(depth, Storage(1000, 64), 2000)
    assert depth.now == 1
    run(depth, Storage(2 * MS, 64), 5000)
    assert depth.now == DEPTH_MOST


@given(st.integers(1, 64), st.integers(0, 10 * MS))
def test_a_fixed_depth_stays(fixed: int, wait: int) -> None:
    assert set(run(Depth(fixed), Storage(wait, 8), 3000)) == {fixed}


@given(st.sampled_from([0, 2, 3, 16, 64]), st.lists(st.integers(0, 3), max_size=20))
def test_no_descriptor_halves_it_for_good(fixed: int, refusals: list[int]) -> None:
    depth, storage = Depth(fixed), Storage(2 * MS, 64)
    most = fixed or DEPTH_MOST
    for rows in refusals:
        before = depth.now
        depth.saw(storage.seen(16, depth.now, descriptor=1))
        if before > 1:
            most = before // 2
        run(depth, storage, 1024 * rows)
        assert 1 <= depth.now <= most


@pytest.mark.parametrize("fixed", [0, 16])
def test_a_refused_thread_means_one_call_at_a_time(fixed: int) -> None:
    depth, storage = Depth(fixed), Storage(2 * MS, 64)
    run(depth, storage, 1000)
    assert depth.now > 1
    depth.saw(storage.seen(16, depth.now, thread=1))
    assert set(run(depth, storage, 5000)) == {1}


@given(st.integers(1, 64), st.integers(0, 64))
def test_a_depth_may_begin_with_more(first: int, fixed: int) -> None:
    """A store of objects is like this. Calls that do not wait still go down to one."""
    depth = Depth(fixed, first)
    assert depth.now == (fixed or min(first, DEPTH_MOST))
    run(depth, Storage(0, 1), 4 * DEPTH_MOST + 16)
    assert depth.now == (fixed or 1)


def test_a_process_may_have_a_bound() -> None:
    script = (
        "from rdc.files.depth import Depth, Depths, bound_depth\n"
        "bound_depth(4)\n"
        "bound_depth(8)\n"
        "for depth in (Depth(64), Depth(), Depth(2), Depths(64).reading, Depths(0, 16).opening):\n"
        "    print(depth.now, depth.most)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n") == ["4 4", "1 4", "2 2", "4 4", "4 4", ""]
