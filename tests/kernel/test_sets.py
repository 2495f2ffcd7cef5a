"""The resemblance of sets: the C form against the definition, and bad columns."""

from __future__ import annotations

import random
from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rdc.kernel import _kernel
from tests.reference import alike as alike_reference
from tests.reference import overlaps as reference
from tests.reference import pairs as pair_reference
from tests.support.share import examples

SETS = st.lists(st.lists(st.integers(0, 80) | st.integers(0, (1 << 32) - 1), max_size=120), max_size=6)


def column(sets: list[list[int]]) -> tuple[array[int], array[int]]:
    values, offsets = array("I"), array("q", [0])
    for one in sets:
        values.extend(one)
        offsets.append(len(values))
    return values, offsets


@settings(max_examples=examples(40))
@given(SETS, st.randoms(use_true_random=False), st.sampled_from([0.0, 1 / 3, 0.5, 2 / 3, 0.8, 1.0]))
def test_c_compares_as_defined(sets: list[list[int]], chosen: random.Random, threshold: float) -> None:
    pairs = array("I", [chosen.randrange(len(sets)) for _ in range(12)] if sets else [])
    values, offsets = column(sets)
    wanted = reference.set_resemblances(values, offsets, pairs, threshold)
    assert _kernel.set_resemblances(values, offsets, pairs, threshold) == wanted


def test_large_sets_at_the_threshold() -> None:
    """Resemblances at, just above and just below the threshold, in sets that are merged in several steps."""
    chosen = random.Random(5)
    whole = chosen.sample(range(1 << 32), 3_000)
    sets = [whole, *[whole[cut:] + whole[:cut][: cut // 9] for cut in (0, 599, 600, 601, 700, 2_999)]]
    pairs = array("I", [number for other in range(len(sets)) for number in (0, other, other, 0, other, 1)])
    values, offsets = column(sets)
    for threshold in (0.0, 2400 / 3000, 0.8, 0.82, 1.0):
        wanted = reference.set_resemblances(values, offsets, pairs, threshold)
        assert _kernel.set_resemblances(values[:], offsets, pairs, threshold) == wanted
    assert 0.0 in array("d", wanted)
    assert 1.0 in array("d", wanted)


@pytest.mark.parametrize("module", [_kernel, reference])
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
def test_bad_columns(module: Any, values: bytes, offsets: object, pairs: object) -> None:
    with pytest.raises(ValueError, match=r"expected|whole|decrease"):
        module.set_resemblances(bytearray(values), offsets, pairs, 0.5)


@pytest.mark.parametrize("module", [_kernel, reference])
@pytest.mark.parametrize("threshold", [-0.1, 1.1, float("nan")])
def test_bad_threshold(module: Any, threshold: float) -> None:
    with pytest.raises(ValueError, match="0 to 1"):
        module.set_resemblances(bytearray(), array("q", [0]), b"", threshold)


@settings(max_examples=examples(40))
@given(st.lists(st.integers(1, 12), max_size=6), st.integers(0, 13), st.integers(0, 40), st.integers(0, 60))
def test_pairs_of_neighbours(sizes: list[int], window: int, first: int, stop: int) -> None:
    members = array("I", random.Random(1).sample(range(1 << 32), sum(sizes)))
    given = members, array("I", sizes), window, first, stop
    wanted = pair_reference.neighbour_pairs(*given)
    assert _kernel.neighbour_pairs(*given) == wanted
    if window == 13 and first == 0 and stop >= len(members):
        assert len(wanted) == 8 * sum(size * (size - 1) // 2 for size in sizes)


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 9) | st.integers(0, 9).map((48).__rlshift__) | st.integers(0, (1 << 64) - 1)))
def test_pairs_in_order(numbers: list[int]) -> None:
    given = array("Q", numbers)
    assert _kernel.sorted_pairs(given) == pair_reference.sorted_pairs(given)
    assert given.tolist() == numbers


@settings(max_examples=examples(40))
@given(st.sets(st.integers(0, 9) | st.integers(0, (1 << 64) - 1)), st.sets(st.integers(0, 12)))
def test_pairs_that_another_column_lacks(pairs: set[int], known: set[int]) -> None:
    columns = array("Q", sorted(pairs)), array("Q", sorted(known))
    assert array("Q", _kernel.missing_pairs(*columns)).tolist() == sorted(pairs - known)
    assert _kernel.missing_pairs(*columns) == pair_reference.missing_pairs(*columns)


@settings(max_examples=examples(40))
@given(st.lists(st.integers(0, 9) | st.integers(0, (1 << 32) - 1)))
def test_numbers_by_rank(numbers: list[int]) -> None:
    given = array("I", numbers)
    different, ranks = _kernel.ranked_numbers(given)
    assert (different, ranks) == pair_reference.ranked_numbers(given)
    assert [array("I", different)[rank] for rank in array("I", ranks)] == numbers


@pytest.mark.parametrize("module", [_kernel, pair_reference])
def test_bad_pairs(module: Any) -> None:
    for members, counts, numbers in (
        (b"123", b"", (1, 0, 1)),
        (b"1234", b"123", (1, 0, 1)),
        (b"1234", array("I", [2]), (1, 0, 1)),
        (b"1234", array("I", [1]), (-1, 0, 1)),
        (b"1234", array("I", [1]), (1, -1, 1)),
        (b"1234", array("I", [1]), (1, 0, -1)),
    ):
        with pytest.raises(ValueError, match=r"expected|whole"):
            module.neighbour_pairs(members, counts, *numbers)
    for columns in ((b"1234", b""), (b"", b"1234")):
        with pytest.raises(ValueError, match="whole"):
            module.missing_pairs(*columns)
    with pytest.raises(ValueError, match="whole"):
        module.sorted_pairs(b"1234")
    with pytest.raises(ValueError, match="whole"):
        module.ranked_numbers(b"123")


@st.composite
def alike_columns(draw: st.DrawFn) -> tuple[bytes, array[int], array[int], array[int]]:
    """Samples that often agree, labels, and groups of members."""
    documents, width = draw(st.integers(0, 12)), draw(st.sampled_from([0, 1, 15, 16, 17, 40, 128, 5000]))
    chosen = random.Random(draw(st.integers(0, 99)))
    agree = draw(st.sampled_from([0.0, 0.5, 0.9, 1.0]))
    samples = bytes(7 if chosen.random() < agree else chosen.randrange(256) for _ in range(documents * width))
    labels = array(
        "I",
        draw(
            st.lists(st.sampled_from([0, 1, 2, alike_reference.SKIP]), min_size=documents, max_size=documents)
        ),
    )
    groups = draw(st.lists(st.integers(0, 9), max_size=4)) if documents else []
    members = array("I", [chosen.randrange(documents) for _ in range(sum(groups))])
    return samples, labels, members, array("I", groups)


@settings(max_examples=examples(60), deadline=None)
@given(alike_columns(), st.sampled_from([1, 2, 16, 100, 128, 4000]), st.integers(0, 20), st.integers(0, 40))
def test_pairs_of_alike_samples(
    columns: tuple[bytes, array[int], array[int], array[int]], least: int, first: int, stop: int
) -> None:
    found = array("Q", _kernel.alike_pairs(*columns, least, first, stop))
    assert sorted(found) == sorted(array("Q", alike_reference.alike_pairs(*columns, least, first, stop)))
    counts = array("Q", _kernel.alike_counts(*columns, least, first, stop))
    assert counts.tobytes() == alike_reference.alike_counts(*columns, least, first, stop)
    assert sum(counts) == len(found)
    assert _kernel.label_pairs(*columns[1:]) == alike_reference.label_pairs(*columns[1:])


def test_alike_samples_of_many_tiles() -> None:
    """More members than a tile, in groups that begin and end anywhere."""
    chosen = random.Random(3)
    documents = 700
    samples = bytes(chosen.choice((1, 1, 1, 2)) for _ in range(documents * 16))
    labels = array("I", [chosen.randrange(40) for _ in range(documents)])
    members, counts = array("I", range(documents)), array("I", [1, 300, 399])
    for first, stop in ((0, documents), (100, 500), (301, 302)):
        found = array("Q", _kernel.alike_pairs(samples, labels, members, counts, 12, first, stop))
        expected = alike_reference.alike_pairs(samples, labels, members, counts, 12, first, stop)
        assert sorted(found) == sorted(array("Q", expected))


@pytest.mark.parametrize("module", [_kernel, alike_reference])
@pytest.mark.parametrize("function", ["alike_pairs", "alike_counts"])
def test_bad_alike_columns(module: Any, function: str) -> None:
    one = array("I", [1])
    good = (b"1234", array("I", [0, 0]), one, one, 1, 0, 1)
    assert getattr(module, function)(*good) is not None
    for at, bad in (
        (0, b"12345"),
        (1, b"123"),
        (1, array("I", [0])),
        (2, b"123"),
        (2, array("I", [2])),
        (3, b"123"),
        (3, array("I", [2])),
        (4, 0),
        (5, -1),
        (6, -1),
    ):
        with pytest.raises(ValueError, match=r"expected|whole"):
            getattr(module, function)(*good[:at], bad, *good[at + 1 :])
    with pytest.raises(ValueError, match="samples"):
        getattr(module, function)(b"1", b"", b"", b"", 1, 0, 1)
