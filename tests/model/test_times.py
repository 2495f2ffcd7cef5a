"""Packed times: 64 bits for every time that a file system can hold."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from rdc.model.preserved import END_NS, FIRST_NS, is_distant, packed_time, packed_times, real_time
from tests.support.project_paths import TOP
from tests.support.times import TIMES


@given(TIMES)
def test_a_time_comes_back(time: int) -> None:
    packed = packed_time(time)
    assert -(1 << 63) < packed < (1 << 63) - 1
    assert real_time(packed) == time
    assert is_distant(packed) == (not FIRST_NS <= time < END_NS)
    assert packed == time or is_distant(packed)


@given(st.lists(TIMES, max_size=5))
def test_many_times(times: list[int]) -> None:
    assert packed_times(times) == [packed_time(time) for time in times]


@given(TIMES, TIMES)
def test_packed_times_are_equal_and_in_order_as_the_times_are(one: int, other: int) -> None:
    a, b = packed_time(one), packed_time(other)
    assert (a == b) == (one == other)
    if not (is_distant(a) and is_distant(b)):
        assert (a < b) == (one < other)


def test_c_has_the_same_bounds() -> None:
    text = (TOP / "rdc/files/base/nanoseconds.h").read_text()
    found = {name: int(value) for name, value in re.findall(r"#define (RDC_\w+) INT64_C\((-?\d+)\)", text)}
    assert found == {"RDC_FIRST_SECOND": FIRST_NS // 10**9, "RDC_END_SECOND": END_NS // 10**9}
