"""The theorems of Li and Konig, "b-Bit Minwise Hashing" (WWW 2010), and small simulations of its figures.
scripts/soak similarity runs the large ones."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from rdc.similarity import bbit_variance, hamming_variance, storage_factor, xor_pairs_variance
from tests.similarity.trials import (
    WORDS,
    Words,
    accepted,
    bbit_agreement,
    hamming_agreement,
    joined_agreement,
    noise,
)

RESEMBLANCES = [step / 20 for step in range(1, 20)]


@pytest.mark.parametrize("r", [1e-10, 0.01, 0.1, 0.5, 0.9])
def test_fewer_bits_save_the_more_the_higher_the_resemblance(r: float) -> None:
    """Theorem 2: for equal densities B(b1) / B(b2) grows with R where b1 > b2, up to
    (b1 / b2) (1 - A2) / (1 - A1)."""
    for wide, narrow in ((64, 1), (32, 2), (4, 1), (8, 4)):
        factors = [storage_factor(jaccard, r, r, narrow, wide) for jaccard in (*RESEMBLANCES, 0.999999)]
        assert all(one <= other * (1 + 1e-12) for one, other in pairwise(factors))
        a_wide, a_narrow = (r * (1 - r) ** (2**b - 1) / (1 - (1 - r) ** (2**b)) for b in (wide, narrow))
        if r > 1e-6:
            assert factors[-1] == pytest.approx(wide / narrow * (1 - a_narrow) / (1 - a_wide), rel=1e-4)


def test_bits_of_samples_beat_sampled_coordinates_on_sparse_sets() -> None:
    """1-bit samples have the smaller variance the sparser the sets; the gain grows as 1 / r."""
    for jaccard in RESEMBLANCES:
        gains = [
            hamming_variance(jaccard, r, r, 1) / bbit_variance(jaccard, r, r, 1, 1)
            for r in (0.05, 0.005, 0.0005)
        ]
        assert 0.99 < gains[0] < gains[1] < gains[2]
        assert gains[2] / gains[1] == pytest.approx(10, rel=0.1)


def test_joined_bits_save_most_at_the_highest_resemblance() -> None:
    """Two samples make one bit; at R near 1 a pair says twice as much as a sample."""
    assert bbit_variance(0.999, 0, 0, 1, 1) / xor_pairs_variance(0.999, 0, 0, 1) == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words.name)
@pytest.mark.parametrize("bits", [1, 2, 4])
def test_word_pairs_are_estimated_with_the_variance_of_the_formula(words: Words, bits: int) -> None:
    assert bbit_agreement(Random(bits), words, bits, k=20, trials=300).holds(noise(300))


def test_joined_bits_of_word_pairs_have_the_variance_of_the_formula() -> None:
    assert joined_agreement(Random(3), WORDS[0], pairs=250, trials=60).holds(noise(60))


def test_sampled_coordinates_of_word_pairs_have_the_variance_of_the_formula() -> None:
    assert hamming_agreement(Random(5), WORDS[1], 1000, trials=150).holds(noise(150))


def test_two_of_six_supershingles_are_found_as_often_as_accepted() -> None:
    assert abs(accepted(Random(7), 20, 19, trials=400)) <= 3
