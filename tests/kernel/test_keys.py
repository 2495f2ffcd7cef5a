"""The table of keys finds what was added, in the memory that it promises, whoever chose the keys."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.kernel import KeyTable
from tests.reference import keys as reference

SEED = bytes(range(16))
KEYS = st.lists(st.integers(0, 40).map(lambda number: number.to_bytes(16, "little")), max_size=30)


@given(st.integers(0, 100), st.lists(KEYS, max_size=12), st.integers(0, 1 << 20))
def test_it_equals_the_definition(rows: int, parts: list[list[bytes]], first: int) -> None:
    made, defined = KeyTable(rows, SEED), reference.KeyTable(rows, SEED)
    for part in parts:
        made.add(b"".join(part), first)
        defined.add(b"".join(part), first)
        first += len(part)
    assert len(made) == len(defined)
    asked = [number.to_bytes(16, "little") for number in range(42)]
    for key in asked:
        assert sorted(made.find(key)) == sorted(defined.find(key))
    assert made.missing(b"".join(asked)) == defined.missing(b"".join(asked))


@pytest.mark.parametrize("rows", [0, 200_000], ids=["it grows", "there is room"])
def test_many_keys_take_twelve_bytes_each_at_most(rows: int) -> None:
    drawn = random.Random(1)
    data = drawn.randbytes(16 * 200_000)
    table = KeyTable(rows, drawn.randbytes(16))
    for at in range(0, 200_000, 1000):
        table.add(data[16 * at : 16 * (at + 1000)], at)
    assert table.memory <= (12.5 if not rows else 9.5) * 200_000
    for number in drawn.sample(range(200_000), 2000):
        assert number in table.find(data[16 * number : 16 * (number + 1)])
    assert table.missing(data) == 0
    assert table.missing(drawn.randbytes(16 * 2000)) >= 1990


def test_equal_keys_are_refused_before_they_cost_much() -> None:
    table = KeyTable(0, SEED)
    with pytest.raises(ValueError, match="too many equal keys"):
        table.add(bytes(16 * 100_000), 0)


@pytest.mark.parametrize(
    "call",
    [
        lambda: KeyTable(-1, SEED),
        lambda: KeyTable(1 << 32, SEED),
        lambda: KeyTable(1, b"short"),
        lambda: KeyTable(1, SEED).add(b"short", 0),
        lambda: KeyTable(1, SEED).add(bytes(32), (1 << 32) - 2),
        lambda: KeyTable(1, SEED).add(bytes(16), -1),
        lambda: KeyTable(1, SEED).find(b"short"),
        lambda: KeyTable(1, SEED).missing(b"short"),
    ],
)
def test_wrong_arguments_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=r"keys|key has|seed"):
        call()
