"""Common elements of sets: the C form against the definition, and bad columns."""

from __future__ import annotations

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel.sets import _sets, reference
from tests.support.share import examples

SETS = st.lists(st.lists(st.integers(0, 80) | st.integers(0, (1 << 32) - 1), max_size=120), max_size=6)


def column(sets: list[list[int]]) -> tuple[array[int], array[int]]:
    values, offsets = array("I"), array("q", [0])
    for one in sets:
        values.extend(one)
        offsets.append(len(values))
    return values, offsets


@settings(max_examples=examples(40))
@given(SETS, st.randoms(use_true_random=False))
def test_c_counts_as_defined(sets: list[list[int]], chosen: random.Random) -> None:
    pairs = array("I", [chosen.randrange(len(sets)) for _ in range(12)] if sets else [])
    given = (*column(sets), pairs)
    assert _sets.set_overlaps(*given) == reference.set_overlaps(*given)


def test_large_sets() -> None:
    chosen = random.Random(5)
    sets = [[chosen.randrange(1 << 32) for _ in range(3_000)] for _ in range(2)]
    sets.append(sets[0][:2_000] + sets[1][:500] * 2)
    given = (*column(sets), array("I", [0, 1, 0, 2, 2, 1, 2, 2]))
    assert _sets.set_overlaps(*given) == reference.set_overlaps(*given)
    assert array("I", _sets.set_overlaps(*given))[:2][1] == len(set(sets[0]) | set(sets[1]))


@pytest.mark.parametrize("module", [_sets, reference])
@pytest.mark.parametrize(
    ("values", "offsets", "pairs"),
    [
        (b"123", array("q", [0]), b""),
        (b"1234", b"1234", b""),
        (b"1234", b"", b""),
        (b"1234", array("q", [0, 2]), b""),
        (b"1234", array("q", [-1, 1]), b""),
        (b"1234", array("q", [1, 0, 1]), b""),
        (b"1234", array("q", [0, 1]), array("I", [0])),
        (b"1234", array("q", [0, 1]), array("I", [0, 1])),
        (b"", array("q", [0]), array("I", [0, 0])),
    ],
)
def test_bad_columns(module: object, values: object, offsets: object, pairs: object) -> None:
    with pytest.raises(ValueError, match=r"expected|whole|decrease"):
        module.set_overlaps(values, offsets, pairs)  # type: ignore[attr-defined]
