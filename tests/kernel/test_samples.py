"""Min-wise samples: every variant beside the definition, and the definition beside what samples mean."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator
from operator import eq
from random import Random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rdc.kernel import _kernel
from rdc.similarity import Samples, bbit_pack
from tests.reference import samples as reference

VARIANTS = _kernel.usable()

features = st.integers(0, (1 << 64) - 1) | st.integers(0, 40)
sets = st.lists(st.lists(features, max_size=70), max_size=9)
counts = st.integers(1, 40) | st.sampled_from([64, 128, 129, 1000])
seeds = st.integers(0, (1 << 64) - 1)


def column(drawn: list[list[int]]) -> tuple[array[int], array[int]]:
    offsets = array("q", [0])
    for one in drawn:
        offsets.append(offsets[-1] + len(one))
    return array("Q", [feature for one in drawn for feature in one]), offsets


@pytest.fixture(params=VARIANTS)
def variant(request: pytest.FixtureRequest) -> Iterator[str]:
    """Each variant that this CPU can run."""
    _kernel.choose(request.param)
    yield request.param
    _kernel.choose(VARIANTS[0])


def test_some_variant_runs(variant: str) -> None:
    assert variant in VARIANTS


@given(sets, counts, seeds)
@example([list(range(5000))], 128, 1)
@example([[7] * 300, []], 3, 0)
def test_variants_equal_the_definition(drawn: list[list[int]], count: int, seed: int) -> None:
    given = column(drawn)
    calls: tuple[Callable[[Any], object], ...] = (
        lambda module: module.minimum_samples(*given, count, seed),
        lambda module: module.partition_samples(*given, count, seed, True),
        lambda module: module.partition_samples(*given, count, seed, False),
    )
    for call in calls:
        wanted = call(reference)
        for name in VARIANTS:
            _kernel.choose(name)
            assert call(_kernel) == wanted
    _kernel.choose(VARIANTS[0])


@given(st.integers(0, 20), counts, st.integers(1, 16), seeds, st.data())
def test_packed_samples_compare_as_defined(
    number: int, count: int, bits: int, seed: int, data: st.DataObject
) -> None:
    random = Random(seed)
    values = [random.getrandbits(32) for _ in range(3)]
    rows = array("I", random.choices(values, k=number * count))
    packed = bbit_pack(Samples(rows.tobytes(), count), bits).data
    if not number:
        return
    row = data.draw(st.integers(0, number - 1))
    wanted = reference.sample_matches(packed, row, packed, number, count, bits)
    for name in VARIANTS:
        _kernel.choose(name)
        assert _kernel.sample_matches(packed, row, packed, number, count, bits) == wanted
    _kernel.choose(VARIANTS[0])
    reduced = [(sample * 0x9E3779B1 & 0xFFFFFFFF) >> 32 - bits for sample in rows]
    mine = reduced[row * count : (row + 1) * count]
    theirs = [reduced[i * count : (i + 1) * count] for i in range(number)]
    assert list(array("I", wanted)) == [sum(map(eq, mine, one)) for one in theirs]


@given(
    st.lists(features, min_size=1, max_size=60), st.lists(features, max_size=60), st.integers(1, 30), seeds
)
def test_the_samples_of_a_union_are_the_smaller_ones(
    one: list[int], other: list[int], count: int, seed: int
) -> None:
    """What merges of parts rest on, for all but filled bins."""
    a, b, both = (
        array("I", reference.minimum_samples(*column([drawn]), count, seed))
        for drawn in (one, other, [*one, *other])
    )
    assert list(both) == list(map(min, a, b))
    a, b, both = (
        array("I", reference.partition_samples(*column([drawn]), count, seed, False))
        for drawn in (one, other, [*one, *other])
    )
    assert list(both) == list(map(min, a, b))


@pytest.mark.parametrize("module", [reference, _kernel], ids=["pure", "C"])
@pytest.mark.parametrize(
    "call",
    [
        lambda module: module.minimum_samples(array("Q"), array("q", [0]), 0, 1),
        lambda module: module.minimum_samples(array("Q"), array("q", [0]), 65_537, 1),
        lambda module: module.partition_samples(array("Q", [1]), array("q", [0, 2]), 4, 1, True),
        lambda module: module.partition_samples(array("Q", [1, 2]), array("q", [0, 2, 1]), 4, 1, True),
        lambda module: module.partition_samples(array("Q", [1]), array("q", [-1, 1]), 4, 1, True),
        lambda module: module.minimum_samples(array("Q", [1]), array("q"), 4, 1),
        lambda module: module.minimum_samples(b"1234567", array("q", [0]), 4, 1),
        lambda module: module.sample_matches(array("Q", [0] * 8), 8, array("Q", [0] * 8), 8, 3, 1),
        lambda module: module.sample_matches(array("Q", [0] * 8), 0, array("Q", [0] * 8), 9, 3, 1),
        lambda module: module.sample_matches(array("Q", [0] * 9), 0, array("Q", [0] * 8), 8, 3, 1),
    ],
)
def test_bad_columns_are_refused(module: Any, call: Callable[[Any], object]) -> None:
    with pytest.raises(ValueError):
        call(module)
