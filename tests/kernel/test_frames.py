"""The rows of a pack's directory: C takes those that the definition in Python takes, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference.frames import DELTA, PACKED, STORED, WIDTHS, frames_are_sound
from tests.support.share import examples

MOST = (1000, 16, 4096)
DECIDERS = pytest.mark.parametrize("sound", [frames_are_sound, _kernel.frames_are_sound], ids=["pure", "C"])
Row = list[int]
"""Kind, stored bytes, bytes, chunks, generation, depth and bases of a frame."""


def packed(column: list[int], width: int) -> bytes:
    return b"".join([number.to_bytes(width, "little") for number in column])


def columns(rows: list[Row], lengths: list[int]) -> tuple[bytes, ...]:
    frames = [[row[at] for row in rows] for at in range(len(WIDTHS))]
    return (*map(packed, frames, WIDTHS), packed(lengths, 4))


def judge(sound: Any, rows: list[Row], lengths: list[int]) -> bool:
    bases, stored = sum([row[6] for row in rows]), sum([row[1] for row in rows])
    found = sound(columns(rows, lengths), bases, stored, MOST)
    assert isinstance(found, bool)
    return found


ROWS = [[STORED, 7, 7, 2, 0, 0, 0], [PACKED, 9, 1000, 1, 0, 0, 0], [DELTA, 1, 3, 3, 65535, 16, 4096]]
LENGTHS = [3, 4, 1000, 1, 1, 1]


@DECIDERS
def test_sound_frames_are_taken(sound: Any) -> None:
    assert judge(sound, ROWS, LENGTHS)
    assert judge(sound, [], [])


@DECIDERS
def test_each_rule_refuses_alone(sound: Any) -> None:
    changes = (
        (0, 0, 3),  # a kind that there is not
        (0, 0, DELTA),  # a delta without bases
        (0, 1, 8),  # stored bytes of a frame that is not compressed
        (1, 1, 0),  # no stored bytes
        (1, 1, 1001),
        (1, 2, 1001),
        (1, 2, 999),  # chunks longer than their frame
        (1, 3, 2),  # a chunk of the next frame
        (2, 3, 4),  # a chunk that there is not
        (2, 3, (1 << 32) - 1),
        (1, 4, 1),  # a generation, a depth and bases of what is no delta
        (1, 5, 1),
        (1, 6, 1),
        (2, 4, 0),
        (2, 5, 17),
        (2, 6, 4097),
    )
    for row, column, value in changes:
        rows = [list(one) for one in ROWS]
        rows[row][column] = value
        assert not judge(sound, rows, LENGTHS), (row, column, value)
    assert not judge(sound, ROWS, [*LENGTHS, 1])
    assert not judge(sound, ROWS, LENGTHS[:-1])
    assert not judge(sound, ROWS, [0, 7, *LENGTHS[2:]])
    # 2^32 + 7 bytes in two chunks: a sum of 32 bits would be 7.
    assert not judge(sound, ROWS, [(1 << 32) - 1, 8, *LENGTHS[2:]])


@DECIDERS
def test_sums_have_to_agree(sound: Any) -> None:
    found = columns(ROWS, LENGTHS)
    assert sound(found, 4096, 17, MOST)
    for bases, stored in ((4095, 17), (4097, 17), (4096, 16), (4096, 18), (0, 17), (4096, 1 << 63)):
        assert not sound(found, bases, stored, MOST)


@DECIDERS
def test_what_are_no_columns_is_refused(sound: Any) -> None:
    found = columns(ROWS, LENGTHS)
    for number in range(len(found)):
        with pytest.raises(ValueError, match="columns"):
            sound((*found[:number], found[number] + b"x", *found[number + 1 :]), 4096, 17, MOST)


small = st.integers(0, 4)
frame = st.tuples(st.integers(0, 3), small, small, small, small, small, small).map(list)


@settings(deadline=None, max_examples=examples(300))
@given(st.lists(frame, max_size=4), st.lists(st.integers(0, 3), max_size=8))
def test_both_agree(rows: list[Row], lengths: list[int]) -> None:
    assert judge(_kernel.frames_are_sound, rows, lengths) == judge(frames_are_sound, rows, lengths)


@settings(deadline=None, max_examples=examples(200))
@given(st.data())
def test_both_agree_on_what_is_nearly_sound(data: st.DataObject) -> None:
    rows, lengths = [], []
    for kind in data.draw(st.lists(st.sampled_from((STORED, PACKED, DELTA)), min_size=1, max_size=5)):
        own = data.draw(st.lists(st.integers(1, 300), min_size=1, max_size=3))
        is_delta = int(kind == DELTA)
        size = sum(own)
        rows.append([kind, size if kind == STORED else 5, size, len(own), is_delta, is_delta, is_delta])
        lengths += own
    if data.draw(st.booleans()):
        row, column = data.draw(st.integers(0, len(rows) - 1)), data.draw(st.integers(0, 6))
        limit = (1 << 8 * WIDTHS[column]) - 1
        changed = rows[row][column] + data.draw(st.sampled_from((-1, 1, limit)))
        rows[row][column] = min(max(0, changed), limit)
    assert judge(_kernel.frames_are_sound, rows, lengths) == judge(frames_are_sound, rows, lengths)
