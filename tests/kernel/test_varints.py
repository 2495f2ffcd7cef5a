"""Columns of varints: C beside the definition, and that beside the codec of one."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel import _kernel
from rdc.protocol.wire.fields import encode_varint
from tests.reference import varints as pure

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])

LIMIT = 1 << 63
numbers = st.integers(0, 300) | st.integers(0, LIMIT - 1) | st.integers(0, 62).map(lambda bit: 1 << bit)


@given(st.lists(numbers, max_size=30), st.binary(max_size=3), st.binary(max_size=3))
def test_columns_survive_and_end_where_they_say(column: list[int], before: bytes, behind: bytes) -> None:
    packed = b"".join(map(encode_varint, column))
    for module in (pure, _kernel):
        assert module.pack_varints(array("Q", column)) == packed
        assert module.pack_varints(memoryview(b"x" + array("Q", column).tobytes())[1:]) == packed
        found, end = module.unpack_varints(before + packed + behind, len(before), len(column))
        assert (list(array("Q", found)), end) == (column, len(before) + len(packed))
        for cut in range(len(packed)):
            with pytest.raises(ValueError, match="varints"):
                module.unpack_varints(packed[:cut], 0, len(column))


@given(st.lists(st.sampled_from([0, 1, 0x7F, 0x80, 0x81, 0xFF]), max_size=30).map(bytes), st.integers(0, 4))
def test_any_bytes_are_the_same_numbers_to_both(data: bytes, count: int) -> None:
    def outcome(module: Any) -> Any:
        try:
            return module.unpack_varints(data, 0, count)
        except ValueError:
            return None

    assert outcome(_kernel) == outcome(pure)


@every_kernel
@pytest.mark.parametrize(
    "data",
    [b"", b"\x80", b"\x80\x00", b"\x81\x80\x00", b"\xff" * 9 + b"\x00", b"\xff" * 9, b"\xff" * 9 + b"\x01"],
)
def test_what_is_no_number_is_refused(module: Any, data: bytes) -> None:
    with pytest.raises(ValueError, match="varints"):
        module.unpack_varints(data, 0, 1)
    with pytest.raises(ValueError, match="varints"):
        module.unpack_varints(b"\x05" + data, 0, 2)


@every_kernel
def test_numbers_end_at_63_bits(module: Any) -> None:
    assert module.unpack_varints(b"\xff" * 8 + b"\x7f", 0, 1) == (array("Q", [LIMIT - 1]).tobytes(), 9)
    for refused in (array("Q", [LIMIT]), array("Q", [2 * LIMIT - 1]), b"1234567"):
        with pytest.raises(ValueError, match="varints"):
            module.pack_varints(refused)
    for start, count in ((-1, 1), (3, 1), (0, -1), (0, 3), (1, 2)):
        with pytest.raises(ValueError, match="varints"):
            module.unpack_varints(b"ab", start, count)
    assert module.unpack_varints(b"ab", 2, 0) == (b"", 2)
    assert module.pack_varints(b"") == b""
