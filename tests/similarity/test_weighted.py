"""Weighted samples beside Ioffe's formula, and the kernel's variants beside the definition."""

from __future__ import annotations

import math
from array import array
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.similarity import Samples, bbit_estimate, bbit_matches, bbit_pack, minhash, weighted_minhash
from rdc.similarity.samples import logarithm

WEIGHTS = st.floats(0, 1.7e308) | st.sampled_from([0.0, -0.0, 1.0, 5e-324, 2.3e-308, 1e308])
SETS = st.lists(st.lists(st.tuples(st.integers(0, (1 << 64) - 1), WEIGHTS), max_size=8), max_size=4)


def column(sets: list[list[tuple[int, float]]]) -> tuple[array[int], array[int], array[float]]:
    offsets = array("q", [0])
    for one in sets:
        offsets.append(offsets[-1] + len(one))
    pairs = [pair for one in sets for pair in one]
    return array("Q", [feature for feature, _ in pairs]), offsets, array("d", [weight for _, weight in pairs])


@given(SETS, st.integers(1, 20) | st.just(65), st.integers(0, (1 << 64) - 1))
def test_any_finite_weights_have_samples(sets: list[list[tuple[int, float]]], count: int, seed: int) -> None:
    """Also 0, denormal numbers, and the largest. The order of features does not matter."""
    found = weighted_minhash(*column(sets), count, seed)
    other = weighted_minhash(*column([one[::-1] for one in sets]), count, seed)
    assert found == other and len(found) == len(sets)


def test_samples_are_what_they_were() -> None:
    """No machine, compiler or version may change them."""
    found = weighted_minhash(*column([[(11, 0.5), (12, 3.25), (13, 1e9)], [(11, 0.1)]]), k=4, seed=9)
    assert list(array("I", found.data)) == [
        2408212252,
        1500736569,
        579495802,
        2660658374,
        211845169,
        2655383477,
        857222783,
        737967702,
    ]


@given(st.floats(5e-324, 1.7e308) | st.floats(0.5, 2))
def test_the_logarithm_is_near(x: float) -> None:
    assert logarithm(x) == pytest.approx(math.log(x), rel=2.0**-50, abs=0)


@pytest.mark.parametrize("bits", [None, 2])
def test_sets_agree_by_the_smaller_and_the_larger_weights(bits: int | None) -> None:
    random, k, trials = Random(31), 64, 150
    mine = [random.choice((0.0, 0.2, 1.0, 7.5)) for _ in range(12)]
    other = [random.choice((0.0, 0.2, 1.0, 7.5)) if random.random() < 0.3 else weight for weight in mine]
    wanted = sum(map(min, mine, other)) / sum(map(max, mine, other))
    assert 0.2 < wanted < 0.8
    sets = []
    for _ in range(trials):
        names = [random.getrandbits(64) for _ in mine]
        sets += [list(zip(names, weights, strict=True)) for weights in (mine, other)]
    samples = weighted_minhash(*column(sets), k)
    if bits:
        packed = bbit_pack(samples, bits)
        found = [
            bbit_estimate(bbit_matches(packed, row, packed)[row + 1], k, bits).jaccard
            for row in range(0, 2 * trials, 2)
        ]
        expected = (wanted + (1 - wanted) / 2**bits) * (1 - wanted) / (1 - 2.0**-bits) / k
    else:
        found = [samples.estimate(row, row + 1).jaccard for row in range(0, 2 * trials, 2)]
        expected = wanted * (1 - wanted) / k
    errors = [one - wanted for one in found]
    assert abs(fmean(errors)) <= 3 * math.sqrt(expected / trials)
    assert fmean([error * error for error in errors]) == pytest.approx(expected, rel=0.4)


def test_a_feature_wins_as_often_as_it_weighs() -> None:
    """Uniform: a sample is of feature x with probability w(x) / (sum of weights)."""
    weights, k = [1.0, 2.0, 5.0], 4000
    names = [101, 102, 103]
    whole = weighted_minhash(*column([list(zip(names, weights, strict=True))]), k)
    alone = [
        weighted_minhash(*column([[(name, weight)]]), k) for name, weight in zip(names, weights, strict=True)
    ]
    for weight, one in zip(weights, alone, strict=True):
        share = sum(a == b for a, b in zip(whole.of(0), one.of(0), strict=True)) / k
        expected = weight / sum(weights)
        assert abs(share - expected) <= 3.5 * math.sqrt(expected * (1 - expected) / k)


def test_zeros_repetitions_and_empty_sets_are_defined() -> None:
    sets = [[(1, 2.0), (2, 0.0)], [(1, 2.0)], [(1, 2.0), (1, 0.5), (1, 2.0)], [], [(5, 0.0)]]
    samples = weighted_minhash(*column(sets))
    assert samples.of(0) == samples.of(1) == samples.of(2)
    assert samples.of(3) == samples.of(4) == array("I", [0xFFFFFFFF] * 128)


def test_equal_weights_compare_as_plain_sets() -> None:
    one = [(feature, 3.0) for feature in range(100, 160)]
    other = [(feature, 3.0) for feature in range(120, 180)]
    samples = weighted_minhash(*column([one, other]), 2000)
    assert abs(samples.estimate(0, 1).jaccard - 0.5) < 0.05
    assert isinstance(samples, Samples) and samples.k == minhash(array("Q"), array("q", [0]), 2000).k


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0, math.nan], "weight 1 is nan"),
        ([1.0, -0.5], "weight 1 is -0.5"),
        ([math.inf, 1.0], "weight 0 is inf"),
        ([1.0], "1 weights of 2 features"),
    ],
)
def test_weights_that_are_none_are_refused(weights: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        weighted_minhash(array("Q", [1, 2]), array("q", [0, 2]), array("d", weights), 4)
    with pytest.raises(ValueError, match="decrease"):
        weighted_minhash(array("Q", [1]), array("q", [0, 1, 0]), array("d", [1.0]), 4)
    # Weights outside all sets are nobody's.
    assert weighted_minhash(array("Q", [1, 2]), array("q", [0, 1]), array("d", [1.0, math.nan]), 4)
