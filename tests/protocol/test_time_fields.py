"""Times on the wire: distant ones travel beside their stamps, others cost what they cost before."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.model.entries import little_endian
from rdc.model.preserved import END_NS, STAMPED_BYTES, packed_time
from rdc.protocol.wire.fields import Time, column_with_times, column_without_times
from tests.support.times import TIMES


@given(st.lists(TIMES, max_size=20))
def test_a_column_arrives(times: list[int]) -> None:
    packed = [packed_time(time) for time in times]
    column = little_endian(array("q", packed))
    sent = column_with_times(column)
    distant = sum(one != time for one, time in zip(packed, times, strict=True))
    assert len(sent) == len(column) + STAMPED_BYTES * distant
    assert column_without_times(sent, len(times)) == column


@given(TIMES)
def test_a_single_time_arrives(time: int) -> None:
    packed = packed_time(time)
    assert Time().unpack(Time().pack(packed)) == packed
    assert (Time().pack(packed) == time) == (packed == time)


@given(st.lists(TIMES, min_size=1, max_size=6), st.binary(max_size=30), st.integers(0, 200))
def test_damaged_columns_are_refused_or_columns(times: list[int], noise: bytes, at: int) -> None:
    sent = bytearray(column_with_times(little_endian(array("q", [packed_time(time) for time in times]))))
    sent[at : at + len(noise)] = noise
    try:
        column = column_without_times(bytes(sent), len(times))
    except ValueError:
        return
    assert not sent or column_with_times(column) == bytes(sent)


@pytest.mark.parametrize("raw", [b"", bytes(11), bytes(12), bytes(13), END_NS, -(1 << 63), "0", None, 1.0])
def test_what_is_no_time_is_refused(raw: object) -> None:
    with pytest.raises(ValueError):
        Time().unpack(raw)
