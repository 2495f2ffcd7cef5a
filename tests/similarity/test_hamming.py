"""Estimates from Hamming distances and stored densities beside their formulas."""

from __future__ import annotations

import math
from array import array
from operator import eq
from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdc.similarity import (
    bbit_constants,
    bbit_matches,
    bbit_pack,
    density_of,
    hamming_estimate,
    hamming_probability,
    hamming_variance,
    minhash,
    quantise_density,
    xor_pairs,
    xor_pairs_estimate,
    xor_pairs_variance,
)
from tests.similarity.trials import pairs_of

DENSITIES = st.floats(0.001, 0.999)


@given(DENSITIES, DENSITIES, st.floats(0, 1))
def test_the_estimate_turns_the_probability_round(r1: float, r2: float, jaccard: float) -> None:
    shared = jaccard * (r1 + r2) / (1 + jaccard)
    differ = hamming_probability(jaccard, r1, r2)
    assert differ == pytest.approx(r1 + r2 - 2 * shared)
    k = 1 << 40
    if differ <= 1:
        assert hamming_estimate(round(differ * k), k, r1, r2).jaccard == pytest.approx(jaccard, abs=1e-6)


def test_sampled_coordinates_estimate_with_the_variance_of_the_formula() -> None:
    random, k, trials = Random(23), 300, 2000
    r1, r2, jaccard = 0.4, 0.3, 0.5
    chance = hamming_probability(jaccard, r1, r2)
    found = [
        hamming_estimate(sum(random.random() < chance for _ in range(k)), k, r1, r2).jaccard - jaccard
        for _ in range(trials)
    ]
    expected = hamming_variance(jaccard, r1, r2, k)
    assert abs(fmean(found)) <= 3 * math.sqrt(expected / trials) + expected
    assert fmean([error * error for error in found]) == pytest.approx(expected, rel=0.15)


@given(st.floats(0, 1, exclude_max=True), st.integers(1, 16), st.floats(0, 1))
def test_stored_densities_are_near_and_their_bias_is_bounded(r: float, bits: int, jaccard: float) -> None:
    stored = density_of(quantise_density(r, bits), bits)
    assert abs(stored - r) <= 2.0 ** -(bits + 1)
    true, near = bbit_constants(r, r, 1), bbit_constants(stored, stored, 1)
    bias = (true.agreement(jaccard) - near.c1) / (1 - near.c2) - jaccard
    assert bias == pytest.approx(
        (true.c1 - near.c1 - (true.c2 - near.c2) * jaccard) / (1 - near.c2), abs=1e-9
    )
    assert abs(bias) <= 2.0 ** -(bits + 1) * (1 - jaccard) + 1e-9


@pytest.mark.parametrize("k", [128, 256])
def test_joined_samples_are_the_exclusive_or_of_both_halves(k: int) -> None:
    samples = minhash(*pairs_of(Random(k), 6, 30, 40), k)
    joined = xor_pairs(bbit_pack(samples, 1))
    assert (joined.k, joined.sets, joined.bits) == (k // 2, 12, 1)
    reduced = [[sample * 0x9E3779B1 >> 31 & 1 for sample in samples.of(row)] for row in range(12)]
    bits = [[a ^ b for a, b in zip(row[: k // 2], row[k // 2 :], strict=True)] for row in reduced]
    for row in range(12):
        assert list(bbit_matches(joined, row, joined)) == [sum(map(eq, bits[row], one)) for one in bits]


def test_joined_samples_estimate_what_they_should() -> None:
    trials, jaccard, k = 300, 0.8, 512
    joined = xor_pairs(bbit_pack(minhash(*pairs_of(Random(29), trials, 40, 50), k), 1))
    found = []
    for row in range(0, 2 * trials, 2):
        found.append(xor_pairs_estimate(bbit_matches(joined, row, joined)[row + 1], k // 2).jaccard - jaccard)
    expected = xor_pairs_variance(jaccard, 0, 0, k // 2)
    assert abs(fmean(found)) <= 3 * math.sqrt(expected / trials) + expected
    assert fmean([error * error for error in found]) == pytest.approx(expected, rel=0.3)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: hamming_estimate(5, 4, 0.1, 0.1),
        lambda: hamming_estimate(1, 4, 0, 0),
        lambda: hamming_probability(0.5, 1.5, 0.1),
        lambda: hamming_variance(0.5, 0.1, 0.1, 0),
        lambda: quantise_density(1.0),
        lambda: quantise_density(math.nan),
        lambda: quantise_density(0.5, 17),
        lambda: density_of(16, 4),
        lambda: xor_pairs(bbit_pack(minhash(array("Q", [1]), array("q", [0, 1]), 64), 1)),
        lambda: xor_pairs(bbit_pack(minhash(array("Q", [1]), array("q", [0, 1]), 128), 2)),
    ],
)
def test_values_without_a_meaning_are_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError):
        wrong()
