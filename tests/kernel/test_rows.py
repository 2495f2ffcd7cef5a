"""Chosen rows of a column: C takes and puts what the definition in Python does."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import rows as pure

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])
WIDTHS = [1, 2, 3, 4, 8, 32, 33]


@every_kernel
def test_rows_in_any_order_and_twice(module: Any) -> None:
    column = bytearray(b"aabbccdd")
    assert module.take_rows(column, 2, array("Q", [3, 0, 3])) == b"ddaadd"
    assert module.take_rows(column, 2, b"") == b""
    module.put_rows(column, 2, array("Q", [1, 3, 1]), b"xxyyzz")
    assert column == b"aazzccyy"
    numbers = array("q", [7, -8, 9])
    module.put_rows(numbers, 8, array("Q", [2]), array("q", [-1]))
    assert list(numbers) == [7, -8, -1]


@every_kernel
def test_what_does_not_fit_is_refused(module: Any) -> None:
    column, rows = bytearray(6), array("Q", [0])
    for width, chosen in (
        (0, rows),
        (-1, rows),
        (4, rows),
        (2, b"1234567"),
        (2, array("Q", [3])),
        (2, array("Q", [0, 1 << 63])),
    ):
        with pytest.raises(ValueError, match="chosen rows: a column"):
            module.take_rows(column, width, chosen)
        with pytest.raises(ValueError, match="chosen rows: a column"):
            module.put_rows(column, width, chosen, b"xx")
    for values in (b"", b"x", b"xxx", b"xxxx"):
        with pytest.raises(ValueError, match="chosen rows: a column"):
            module.put_rows(column, 2, rows, values)
    assert column == bytes(6)


@given(st.data(), st.sampled_from(WIDTHS), st.integers(1, 20))
def test_both_agree(data: st.DataObject, width: int, count: int) -> None:
    column = data.draw(st.binary(min_size=width * count, max_size=width * count))
    rows = array("Q", data.draw(st.lists(st.integers(0, count - 1), max_size=30)))
    taken = pure.take_rows(column, width, rows)
    assert _kernel.take_rows(column, width, rows) == taken
    values = data.draw(st.binary(min_size=len(taken), max_size=len(taken)))
    mine, other = bytearray(column), bytearray(column)
    pure.put_rows(mine, width, rows, values)
    _kernel.put_rows(other, width, rows, values)
    assert mine == other
