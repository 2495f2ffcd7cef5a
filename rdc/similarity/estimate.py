"""Estimates resemblance from agreeing b-bit samples: Li and Konig, "b-Bit Minwise Hashing" (WWW 2010).

A sample is the smallest image of a set under a random one-to-one map, reduced to b bits. Let R = |A n B| / |A
u B| be the Jaccard resemblance of two sets. Their unreduced samples are equal with probability R. Their
reduced samples agree with probability E = C1 + (1 - C2) R; C1 and C2 account for agreement by accident. Both
are 2^-b for sets that are small compared with their universe, as sets of 64-bit features are. With b = 6: E =
(1 + 63 R)/64.
"""

from __future__ import annotations

import math

from rdc.lean.checks import checked_count, checked_share
from rdc.lean.records import dataclass

__all__ = ["Accidents", "Estimate", "accidents", "probability_of_matches"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated Jaccard resemblance with its standard error."""

    jaccard: float
    """Unbiased: means over many pairs are right. The estimate of a single pair can lie just outside 0 to
    1."""
    standard_error: float


@dataclass(frozen=True, slots=True)
class Accidents:
    """C1 and C2 of the paper: the chances that different samples of two sets agree in their b bits."""

    c1: float
    c2: float

    def __post_init__(self) -> None:
        checked_share("Accidents", "c1", self.c1, below=True)
        checked_share("Accidents", "c2", self.c2, below=True)

    def agreement(self, jaccard: float) -> float:
        """The probability that two reduced samples agree. Raises ValueError for a resemblance outside 0 to
        1."""
        jaccard = checked_share("Accidents.agreement", "jaccard", jaccard)
        return self.c1 + (1 - self.c2) * jaccard

    def standard_error(self, agreement: float, samples: int) -> float:
        """The standard error of an estimate from `samples` samples that each agree with probability
        `agreement`. Raises ValueError for numbers that cannot be."""
        samples = checked_count("Accidents.standard_error", "samples", samples, 1)
        agreement = checked_share("Accidents.standard_error", "agreement", agreement)
        return math.sqrt(agreement * (1 - agreement) / samples) / (1 - self.c2)

    def estimate(self, matches: int, samples: int) -> Estimate:
        """The estimate from `matches` agreeing samples of `samples`.

        Its error is taken at (matches + 1) / (samples + 2), Laplace's rule, so that none or all agreeing
        still leave doubt. Raises ValueError for numbers that cannot be.
        """
        samples = checked_count("Accidents.estimate", "samples", samples, 1)
        matches = checked_count("Accidents.estimate", "matches", matches, 0, samples)
        found = (matches / samples - self.c1) / (1 - self.c2)
        return Estimate(found, self.standard_error((matches + 1) / (samples + 2), samples))


def accidents(bits: int, density1: float = 0.0, density2: float = 0.0) -> Accidents:
    """C1 and C2 for samples of `bits` bits. The densities are the shares of their universe that the two sets
    hold (theorem 1)."""
    a1, a2 = _accident(bits, density1), _accident(bits, density2)
    total = density1 + density2
    share = density1 / total if total else 0.5
    return Accidents(a1 * (1 - share) + a2 * share, a1 * share + a2 * (1 - share))


def _accident(bits: int, density: float) -> float:
    """A of theorem 1; its limit 2^-b at density 0."""
    if not density:
        return 2.0**-bits
    # Of the smallest densities 1 - density is 1, so the powers go by logarithms.
    absent = math.log1p(-density)
    return density * math.exp(absent * (2.0**bits - 1)) / -math.expm1(absent * 2.0**bits)


def probability_of_matches(jaccard: float, least: int, samples: int = 12, bits: int = 6) -> float:
    """The probability that at least `least` of `samples` reduced samples agree. At `jaccard` it is the
    recall; at 0, the share of unrelated files that pass for similar."""
    p = accidents(bits).agreement(jaccard)
    return sum(math.comb(samples, m) * p**m * (1 - p) ** (samples - m) for m in range(least, samples + 1))
