"""Reads of several bases come base by base, each with its own offsets and lengths."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from rdc.plan.check_blocks import by_base

numbers = st.integers(0, 1 << 40)


@given(st.lists(st.tuples(st.integers(0, 4), numbers, numbers)))
def test_all_reads_are_there_once_and_in_order(drawn: list[tuple[int, int, int]]) -> None:
    reads = sorted(drawn, key=lambda read: read[0])
    found = list(by_base(array("Q", (number for read in reads for number in read))))
    assert [base for base, _ in found] == sorted({base for base, _, _ in reads})
    assert reads == [
        (base, offset, length)
        for base, rows in found
        for offset, length in zip(rows[0::2], rows[1::2], strict=True)
    ]
