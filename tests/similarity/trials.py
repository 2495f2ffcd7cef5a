"""Simulated estimates of resemblance: how far they lie from the truth, beside the variance of a formula."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from statistics import fmean

from rdc.similarity import (
    acceptance,
    agreeing_pairs,
    bbit_estimate,
    bbit_variance,
    hamming_estimate,
    hamming_probability,
    hamming_variance,
    minhash,
    supershingles,
    xor_pairs_estimate,
    xor_pairs_variance,
)


@dataclass(frozen=True)
class Words:
    """Two words by the shares of pages that have them, and their resemblance: table 1 of the b-bit paper."""

    name: str
    r1: float
    r2: float
    jaccard: float


WORDS = (
    Words("KONG-HONG", 0.0145, 0.0143, 0.925),
    Words("OF-AND", 0.570, 0.554, 0.771),
    Words("UNITED-STATES", 0.062, 0.061, 0.591),
    Words("LOW-PAY", 0.045, 0.043, 0.112),
    Words("A-TEST", 0.596, 0.035, 0.052),
)


@dataclass(frozen=True)
class Agreement:
    """What simulated errors say of a formula."""

    trials: int
    bias: float
    """In standard errors."""
    variance: float
    """The mean squared error as a share of the formula's variance."""

    def holds(self, tolerance: float) -> bool:
        return abs(self.bias) <= 3 and abs(self.variance - 1) <= tolerance


def agreement(estimate: Callable[[], float], truth: float, variance: float, trials: int) -> Agreement:
    errors = [estimate() - truth for _ in range(trials)]
    bias = fmean(errors) / math.sqrt(variance / trials)
    return Agreement(trials, bias, fmean([error * error for error in errors]) / variance)


def noise(trials: int) -> float:
    """Three standard errors of a simulated variance as a share of it."""
    return 3 * math.sqrt(2 / trials)


def smallest_ranks(random: Random, words: Words) -> tuple[int, int]:
    """The smallest ranks of two sets under a random permutation of an endless universe.

    Each rank is of either set with probability r1 + r2 - s. The first such rank is of both with probability
    R. Otherwise one set waits on, for a rank that is its own with probability r1 or r2.
    """
    shared = words.jaccard * (words.r1 + words.r2) / (1 + words.jaccard)
    union = words.r1 + words.r2 - shared
    first = _waited(random, union)
    whose = random.random() * union
    if whose < shared:
        return first, first
    if whose < words.r1:
        return first, first + 1 + _waited(random, words.r2)
    return first + 1 + _waited(random, words.r1), first


def _waited(random: Random, chance: float) -> int:
    return int(math.log(1 - random.random()) / math.log1p(-chance))


def bbit_agreement(random: Random, words: Words, bits: int, k: int, trials: int) -> Agreement:
    """Theorem 1 and equation (11); figures 2 and 3 of the paper."""
    mask = (1 << bits) - 1

    def estimate() -> float:
        ranks = [smallest_ranks(random, words) for _ in range(k)]
        matches = sum([not (one ^ other) & mask for one, other in ranks])
        return bbit_estimate(matches, k, bits, words.r1, words.r2).jaccard

    expected = bbit_variance(words.jaccard, words.r1, words.r2, bits, k)
    return agreement(estimate, words.jaccard, expected, trials)


def joined_agreement(random: Random, words: Words, pairs: int, trials: int) -> Agreement:
    """Pairs of bits joined by exclusive or; figure 9. The bend of the square root leaves a bias of the order
    of the variance, so many pairs are needed."""

    def estimate() -> float:
        matches = 0
        for _ in range(pairs):
            (a, b), (c, d) = smallest_ranks(random, words), smallest_ranks(random, words)
            matches += not (a ^ b ^ c ^ d) & 1
        return xor_pairs_estimate(matches, pairs, words.r1, words.r2).jaccard

    expected = xor_pairs_variance(words.jaccard, words.r1, words.r2, pairs)
    return agreement(estimate, words.jaccard, expected, trials)


def hamming_agreement(random: Random, words: Words, k: int, trials: int) -> Agreement:
    """Sampled coordinates; figure 6."""
    differ = hamming_probability(words.jaccard, words.r1, words.r2)

    def estimate() -> float:
        at, differing = _waited(random, differ), 0
        while at < k:
            at, differing = at + 1 + _waited(random, differ), differing + 1
        return hamming_estimate(differing, k, words.r1, words.r2).jaccard

    expected = hamming_variance(words.jaccard, words.r1, words.r2, k)
    return agreement(estimate, words.jaccard, expected, trials)


def accepted(random: Random, union: int, shared: int, trials: int) -> float:
    """How far the share of pairs with two of six supershingles of 14 samples is from acceptance(), in
    standard errors."""
    samples = minhash(*pairs_of(random, trials, shared, union), 84)
    found = sum(1 for _ in agreeing_pairs(supershingles(samples, 6, 14), 6, 2))
    wanted = acceptance(shared / union, 6, 14, 2)
    return (found / trials - wanted) / math.sqrt(wanted * (1 - wanted) / trials)


def pairs_of(random: Random, trials: int, shared: int, union: int) -> tuple[array[int], array[int]]:
    """`trials` pairs of sets; the two of a pair have `shared` of `union` features in common."""
    features, offsets = array("Q"), array("q", [0])
    rest = (union - shared) // 2
    for _ in range(trials):
        common = [random.getrandbits(64) for _ in range(shared)]
        for alone in (rest, union - shared - rest):
            features.extend(common + [random.getrandbits(64) for _ in range(alone)])
            offsets.append(len(features))
    return features, offsets
