"""Equal rows of a column: C finds what the definition in Python finds."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import kernel as pure
from tests.support.share import examples

every_kernel = pytest.mark.parametrize("module", [pure, _kernel], ids=["pure", "C"])


def numbers(packed: bytes) -> list[int]:
    return [int.from_bytes(packed[at : at + 4], "little") for at in range(0, len(packed), 4)]


@every_kernel
def test_rows_by_value_then_by_number(module: Any) -> None:
    assert module.equal_rows(b"", 8) == (b"", b"")
    rows, sizes = module.equal_rows(b"bbaaccbbddaabb", 2)
    assert (numbers(rows), numbers(sizes)) == ([1, 5, 0, 3, 6], [2, 3])
    # Nine bytes: what the first eight leave open, the last decides.
    rows, sizes = module.equal_rows(memoryview(b"12345678y12345678x12345678y"), 9)
    assert (numbers(rows), numbers(sizes)) == ([0, 2], [2])
    rows, sizes = module.equal_rows(array("Q", [7, 7, 0, 1 << 63, 7]), 8)
    assert (numbers(rows), numbers(sizes)) == ([0, 1, 4], [3])


@every_kernel
def test_what_is_no_column_is_refused(module: Any) -> None:
    for column, width in ((b"abc", 2), (b"abc", 0), (b"", -1)):
        with pytest.raises(ValueError, match="equal rows: a column"):
            module.equal_rows(column, width)


@settings(deadline=None, max_examples=examples(50))
@given(st.data(), st.integers(1, 40), st.integers(0, 300), st.integers(1, 400))
def test_both_agree(data: st.DataObject, width: int, count: int, kinds: int) -> None:
    """Few values, many values, values that differ in their last byte only."""
    pick = data.draw(st.randoms(use_true_random=False))
    prefix = pick.randbytes(width)
    values = [pick.choice([prefix[:-1] + pick.randbytes(1), pick.randbytes(width)]) for _ in range(kinds)]
    column = b"".join(pick.choice(values) for _ in range(count))
    assert _kernel.equal_rows(column, width) == pure.equal_rows(column, width)


def test_many_rows_in_runs_and_backwards() -> None:
    rising = list(range(50_000))
    for rows in (rising, rising[::-1], [row % 7 for row in rising], [0] * 50_000):
        column = array("Q", rows).tobytes()
        assert _kernel.equal_rows(column, 8) == pure.equal_rows(column, 8)
