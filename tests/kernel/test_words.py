"""Tables of numbers as differences of rows: the definition and C, beside what both mean, written out."""

from __future__ import annotations

import struct
from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import words as pure_word_differences

every_kernel = pytest.mark.parametrize("module", [pure_word_differences, _kernel], ids=["pure", "C"])

strides = st.integers(1, 16).map(lambda words: 4 * words)
offsets = st.integers(0, (1 << 64) - 1)
pieces = st.lists(st.tuples(st.binary(max_size=60), offsets), max_size=5)


def places_of(drawn: list[tuple[bytes, int]]) -> array[int]:
    return array("Q", [number for piece, offset in drawn for number in (offset, len(piece))])


def rows_told_apart(piece: bytes, offset: int, stride: int) -> bytes:
    """Each number less the one a stride before, both as they were: not in place, nor in any order."""
    told = bytearray(piece)
    for at in range(len(piece) - 3):
        if (offset + at) % 4 == 0 and at >= stride and (offset + at - stride) % 4 == 0:
            (number,), (above,) = (struct.unpack_from("<I", piece, where) for where in (at, at - stride))
            struct.pack_into("<I", told, at, (number - above) & 0xFFFF_FFFF)
    return bytes(told)


@every_kernel
def test_rows_are_known_by_what_they_add(module: Any) -> None:
    table = struct.pack("<6I", 1000, 70, 1016, 70, 1040, 69)
    content = bytearray(b"xy" + table + b"z")
    where = array("Q", [2, 27])
    module.difference_words(content, where, 8)
    assert content == b"xy" + struct.pack("<4I", 1000, 70, 16, 0) + struct.pack("<Ii", 24, -1) + b"z"
    assert module.nonzero_bytes(content) == 2 + 3 + 1 + 1 + 4 + 1
    module.sum_words(content, where, 8)
    assert content == b"xy" + table + b"z"


@given(st.binary(max_size=3_000), st.integers(0, 300))
def test_bytes_that_are_not_0_are_counted(content: bytes, times: int) -> None:
    many = content * times
    for module in (pure_word_differences, _kernel):
        assert module.nonzero_bytes(many) == len(many) - many.count(0)


@given(pieces, strides)
def test_every_row_is_taken_from_the_one_a_stride_before(drawn: list[tuple[bytes, int]], stride: int) -> None:
    """In its own piece alone. Sums undo it whatever the bytes are, and so the other way round."""
    plain, where = b"".join(piece for piece, _ in drawn), places_of(drawn)
    told = b"".join(rows_told_apart(piece, offset, stride) for piece, offset in drawn)
    for module in (pure_word_differences, _kernel):
        content = bytearray(plain)
        module.difference_words(memoryview(content), where, stride)
        assert content == told
        assert module.nonzero_bytes(content) == sum(byte != 0 for byte in told)
        module.sum_words(content, where, stride)
        assert content == plain
        module.sum_words(content, where, stride)
        module.difference_words(content, where, stride)
        assert content == plain


@every_kernel
def test_what_does_not_add_up_is_refused(module: Any) -> None:
    """Before a byte was changed."""
    where = array("Q", [0, 10])
    for direction in (module.difference_words, module.sum_words):
        content = bytearray(b"abcdefghij")
        for wrong in (
            array("Q", [0, 9]),
            array("Q", [0, 11]),
            array("Q", [0, 8, 0, 1]),
            array("Q", [0, 11, 0, (1 << 64) - 1]),
            array("Q", [0, 5, 0]),
            b"x",
        ):
            with pytest.raises(ValueError, match="word differences"):
                direction(content, wrong, 4)
        for stride in (-8, 0, 2, 10):
            with pytest.raises(ValueError, match="word differences: a stride"):
                direction(content, where, stride)
        assert content == b"abcdefghij"
        with pytest.raises((TypeError, BufferError)):
            direction(bytes(12), array("Q", [0, 12]), 8)
        direction(content, where, 1 << 40)
        direction(bytearray(), array("Q"), 4)
        assert content == b"abcdefghij"
