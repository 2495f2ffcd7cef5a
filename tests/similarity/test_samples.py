"""Min-wise samples beside the formulas of their papers: bias within 3 standard errors, variance within
bounds."""

from __future__ import annotations

import doctest
import importlib
import math
from array import array
from itertools import pairwise
from random import Random
from statistics import fmean

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rdc.similarity import (
    Banding,
    Samples,
    acceptance,
    bbit_constants,
    bbit_estimate,
    bbit_matches,
    bbit_pack,
    bbit_variance,
    bottom_k,
    lsh,
    minhash,
    one_permutation,
    storage_factor,
    supershingles,
    xor_pairs_estimate,
    xor_pairs_variance,
)
from tests.similarity.trials import pairs_of


def errors(samples: Samples, jaccard: float) -> list[float]:
    """Errors of the plain estimates, one a pair of sets."""
    found = []
    for row in range(0, len(samples), 2):
        a, b = samples.of(row), samples.of(row + 1)
        found.append(sum(x == y for x, y in zip(a, b, strict=True)) / samples.k - jaccard)
    return found


@pytest.mark.parametrize("union", [10, 30, 150, 1000])
@pytest.mark.parametrize("jaccard", [0.2, 0.5, 0.9])
def test_samples_are_unbiased_and_vary_no_more_than_they_should(union: int, jaccard: float) -> None:
    k, trials = 64, 400
    column = pairs_of(Random(union), trials, round(jaccard * union), union)
    for samples, most in ((minhash(*column, k), 1.2), (one_permutation(*column, k), 1.1)):
        found = errors(samples, jaccard)
        expected = jaccard * (1 - jaccard) / k
        squares = [error * error for error in found]
        assert abs(fmean(found)) <= 3 * math.sqrt(expected / trials)
        assert fmean(squares) <= most * expected


def test_one_scheme_compares_sets_of_all_lengths() -> None:
    """A set and its tenth: filled bins of the small one must not match values of the large one."""
    random, k = Random(3), 128
    large = [random.getrandbits(64) for _ in range(2000)]
    features = array("Q", large + large[:200] + large[:20])
    samples = one_permutation(features, array("q", [0, 2000, 2200, 2220]), k, seed=5)
    for row, truth in ((1, 0.1), (2, 0.01)):
        assert abs(samples.estimate(0, row).jaccard - truth) <= 4 * math.sqrt(truth * (1 - truth) / k) + 1 / k
    assert abs(samples.estimate(1, 2).jaccard - 0.1) <= 4 * math.sqrt(0.09 / k)


def test_unfilled_bins_are_left_out_of_estimates() -> None:
    samples = one_permutation(array("Q", [1, 2, 1, 2]), array("q", [0, 2, 4, 4]), 128, fill=False)
    assert samples.estimate(0, 1).jaccard == 1
    assert samples.estimate(0, 2).jaccard == 0
    assert samples.estimate(2, 2).jaccard == 1
    with pytest.raises(ValueError, match="empty bins"):
        bbit_pack(samples, 2)
    with pytest.raises(ValueError, match="empty bins"):
        supershingles(samples, 2, 4)


@given(st.sets(st.integers(0, 200)), st.sets(st.integers(0, 200)))
def test_bottom_k_of_small_sets_is_exact(one: set[int], other: set[int]) -> None:
    column = array("Q", [*one, *other, *other]), array("q", [0, len(one), len(one) + 2 * len(other)])
    found = bottom_k(*column, k=512)
    wanted = len(one & other) / len(one | other) if one | other else 1.0
    assert found.estimate(0, 1).jaccard == pytest.approx(wanted)
    assert all(a < b for a, b in pairwise(found.of(0)))


def test_bottom_k_is_unbiased() -> None:
    column = pairs_of(Random(7), 300, 400, 1000)
    found = bottom_k(*column, k=100)
    estimates = [found.estimate(row, row + 1).jaccard for row in range(0, len(found), 2)]
    assert abs(fmean(estimates) - 0.4) <= 3 * math.sqrt(0.24 / 100 / 300)


# ---- b bits ----


@pytest.mark.parametrize(
    ("r1", "r2", "jaccard", "one", "wide"),
    [
        (0.0145, 0.0143, 0.925, 15.5, 31.0),  # KONG-HONG
        (0.570, 0.554, 0.771, 20.4, 40.8),  # OF-AND
        (0.062, 0.061, 0.591, 12.4, 24.8),  # UNITED-STATES
        (0.045, 0.043, 0.112, 3.4, 6.8),  # LOW-PAY
        (0.596, 0.035, 0.052, 3.1, 6.2),  # A-TEST
    ],
)
def test_storage_factors_are_those_of_table_1(
    r1: float, r2: float, jaccard: float, one: float, wide: float
) -> None:
    assert storage_factor(jaccard, r1, r2, 1, 32) == pytest.approx(one, abs=0.1)
    assert storage_factor(jaccard, r1, r2, 1, 64) == pytest.approx(wide, abs=0.1)


def test_one_bit_saves_21_times_at_resemblance_one_half() -> None:
    """The paper's figure for densities near 0. Two bits are better than one below 1/3, where 2 (1 + 3 R) /
    3 is less than 1 + R."""
    assert storage_factor(0.5, 0, 0, 1) == pytest.approx(21.33, abs=0.01)
    for jaccard in (0.32, 0.35):
        two_win = storage_factor(jaccard, 0, 0, 2) > storage_factor(jaccard, 0, 0, 1)
        assert two_win == (jaccard < 1 / 3)


def test_joined_pairs_win_above_the_square_root_of_a_third() -> None:
    for jaccard in (0.57, 0.5774, 0.585):
        joined, single = xor_pairs_variance(jaccard, 0, 0, 1), bbit_variance(jaccard, 0, 0, 1, 1)
        assert (joined < single) == (jaccard > math.sqrt(1 / 3))
    assert xor_pairs_variance(0, 0, 0, 1) == math.inf


@pytest.mark.parametrize("bits", [1, 2, 6])
def test_packed_samples_estimate_without_bias_and_with_the_variance_of_the_paper(bits: int) -> None:
    k, trials, jaccard = 64, 600, 0.6
    packed = bbit_pack(minhash(*pairs_of(Random(bits), trials, 120, 200), k), bits)
    found = []
    for row in range(0, len(packed), 2):
        matches = bbit_matches(packed, row, packed)[row + 1]
        found.append(bbit_estimate(matches, k, bits).jaccard - jaccard)
    expected = bbit_variance(jaccard, 0, 0, bits, k)
    assert abs(fmean(found)) <= 3 * math.sqrt(expected / trials)
    assert fmean([error * error for error in found]) == pytest.approx(expected, rel=0.25)


def test_joined_pairs_estimate_what_they_should() -> None:
    random, pairs, trials = Random(11), 400, 300
    for jaccard in (0.5, 0.8):
        equal = bbit_constants(0, 0, 1).agreement(jaccard)
        chance = equal * equal + (1 - equal) ** 2
        found = [
            xor_pairs_estimate(sum(random.random() < chance for _ in range(pairs)), pairs).jaccard - jaccard
            for _ in range(trials)
        ]
        expected = xor_pairs_variance(jaccard, 0, 0, pairs)
        # The square root bends: its bias is of the order of the variance.
        assert abs(fmean(found)) <= 3 * math.sqrt(expected / trials) + expected
        assert fmean([error * error for error in found]) == pytest.approx(expected, rel=0.3)


# ---- groups ----


@pytest.mark.parametrize(
    ("p", "groups", "size", "needed", "wanted"),
    [
        (0.95, 6, 14, 2, 0.879),
        (0.7, 6, 14, 2, 6.8e-4),
        (0.5, 6, 14, 2, 5.6e-8),
        (0.95, 6, 5, 4, 0.866),
        (0.95, 8, 25, 1, 0.926),
    ],
)
def test_acceptance_has_the_figures_of_the_papers(
    p: float, groups: int, size: int, needed: int, wanted: float
) -> None:
    assert acceptance(p, groups, size, needed) == pytest.approx(wanted, rel=0.01)


def test_supershingles_agree_as_often_as_accepted() -> None:
    trials, groups, size = 600, 6, 4
    samples = minhash(*pairs_of(Random(13), trials, 180, 200), 25)
    keys = supershingles(samples, groups, size)
    agreed = 0
    for row in range(0, len(samples), 2):
        a, b = (
            keys[groups * row : groups * row + groups],
            keys[groups * row + groups : groups * row + 2 * groups],
        )
        agreed += sum(x == y for x, y in zip(a, b, strict=True)) >= 2
    wanted = acceptance(0.9, groups, size, 2)
    assert abs(agreed / trials - wanted) <= 3 * math.sqrt(wanted * (1 - wanted) / trials)
    assert all(key < 1 << 16 for key in supershingles(samples, groups, size, 16))


def test_bands_find_what_they_promise() -> None:
    plan = Banding.plan(0.8, 128, 0.95)
    assert plan.probability(0.8) >= 0.95 > Banding(128 // (plan.rows + 1), plan.rows + 1).probability(0.8)
    trials = 300
    samples = minhash(*pairs_of(Random(17), trials, 160, 200))
    keys = plan.keys(samples)
    found = 0
    for row in range(0, 2 * trials, 2):
        a, b = (keys[plan.bands * one : plan.bands * (one + 1)] for one in (row, row + 1))
        found += any(x == y for x, y in zip(a, b, strict=True))
    wanted = plan.probability(0.8)
    assert abs(found / trials - wanted) <= 3 * math.sqrt(wanted * (1 - wanted) / trials) + 1e-9


@given(st.integers(2, 10**9), st.floats(0.3, 0.99), st.floats(0.01, 0.29))
def test_tables_find_a_near_point_often_enough(n: int, p1: float, p2: float) -> None:
    assume(n ** (math.log(p1) / math.log(p2)) / p1 < lsh.FUNCTIONS_MOST)
    plan = lsh.plan(n, p1, p2)
    assert p2**plan.functions <= 1 / n * (1 + 1e-9)
    missed = math.exp(plan.tables * math.log1p(-(p1**plan.functions)))
    assert missed <= 1 / math.e + 1e-9


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: acceptance(1.5, 6, 14, 2),
        lambda: bbit_estimate(5, 4, 1),
        lambda: bbit_constants(1.0, 0, 1),
        lambda: xor_pairs_estimate(5, 4),
        lambda: lsh.plan(10, 0.5, 0.5),
        lambda: Banding.plan(0.01, 4),
        lambda: supershingles(minhash(array("Q", [1]), array("q", [0, 1]), 4), 2, 3),
        lambda: bbit_matches(
            bbit_pack(minhash(array("Q", [1]), array("q", [0, 1]), 4), 1),
            0,
            bbit_pack(minhash(array("Q", [1]), array("q", [0, 1]), 4), 2),
        ),
    ],
)
def test_values_without_a_meaning_are_refused(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError):
        wrong()


@pytest.mark.parametrize("name", ["samples", "bbit", "banding", "lsh", "texts"])
def test_examples_hold(name: str) -> None:
    found = doctest.testmod(importlib.import_module(f"rdc.similarity.{name}"))
    assert found.attempted and not found.failed
