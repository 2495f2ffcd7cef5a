"""Resemblance from the Hamming distance of sampled coordinates, the scheme that section 4 of Li and Konig,
"b-Bit Minwise Hashing" (WWW 2010), compares with.

Sets are vectors of D bits with the densities r1 and r2. The bits of both at a random coordinate differ with
probability H = r1 + r2 - 2 s, where s is the density of the intersection. So R = (r1 + r2 - H) / (r1 + r2 +
H). It suits dense sets: of sparse ones almost all sampled bits are 0.
"""

from __future__ import annotations

import math

from rdc.lean.checks import checked_count, checked_share
from rdc.similarity.estimate import Estimate

__all__ = ["density_of", "hamming_estimate", "hamming_probability", "hamming_variance", "quantise_density"]


def hamming_probability(jaccard: float, r1: float, r2: float) -> float:
    """H, the probability that the bits of a coordinate differ: (r1 + r2) (1 - R) / (1 + R)."""
    jaccard = checked_share("hamming_probability", "jaccard", jaccard)
    r1, r2 = _densities("hamming_probability", r1, r2)
    return (r1 + r2) * (1 - jaccard) / (1 + jaccard)


def hamming_estimate(differing: int, k: int, r1: float, r2: float) -> Estimate:
    """The estimate of resemblance from `differing` of `k` sampled coordinates.

    Its bias is of the order of its variance, as R is a bent function of H. Raises ValueError for counts and
    densities that cannot be.

    >>> from rdc.similarity import hamming_estimate
    >>> round(hamming_estimate(200, k=1000, r1=0.3, r2=0.3).jaccard, 3)
    0.5
    """
    r1, r2 = _densities("hamming_estimate", r1, r2)
    k = checked_count("hamming_estimate", "k", k, 1)
    differing = checked_count("hamming_estimate", "differing", differing, 0, k)
    share = differing / k
    found = (r1 + r2 - share) / (r1 + r2 + share)
    # Laplace's rule, so that no differing coordinate still leaves doubt.
    return Estimate(found, math.sqrt(_variance((differing + 1) / (k + 2), r1, r2, k)))


def hamming_variance(jaccard: float, r1: float, r2: float, k: int) -> float:
    """The variance of that estimate by the delta method: H (1 - H) / k times the square of dR/dH."""
    k = checked_count("hamming_variance", "k", k, 1)
    return _variance(hamming_probability(jaccard, r1, r2), r1, r2, k)


def quantise_density(density: float, bits: int = 8) -> int:
    """The code of a density in `bits` bits, 1 to 16: the interval of width 2^-bits that holds it.

    `density_of` is at most 2^-(bits + 1) off. An estimate by C1' and C2' from such densities has the bias
    ((C1 - C1') - (C2 - C2') R) / (1 - C2'); with 1-bit samples that is at most 2^-(bits + 1) (1 - R), where
    both densities are equal. Raises ValueError for densities outside 0 to below 1.

    >>> from rdc.similarity import density_of, quantise_density
    >>> quantise_density(0.3, 4), density_of(4, 4)
    (4, 0.28125)
    """
    density = checked_share("quantise_density", "density", density, below=True)
    bits = checked_count("quantise_density", "bits", bits, 1, 16)
    return int(density * (1 << bits))


def density_of(code: int, bits: int = 8) -> float:
    """The middle of the interval of a code. Raises ValueError for a code of more bits."""
    bits = checked_count("density_of", "bits", bits, 1, 16)
    code = checked_count("density_of", "code", code, 0, (1 << bits) - 1)
    return (code + 0.5) / (1 << bits)


def _variance(differ: float, r1: float, r2: float, k: int) -> float:
    slope = 2 * (r1 + r2) / (r1 + r2 + differ) ** 2
    return differ * (1 - differ) / k * slope * slope


def _densities(function: str, r1: object, r2: object) -> tuple[float, float]:
    found = checked_share(function, "r1", r1), checked_share(function, "r2", r2)
    if not any(found):
        raise ValueError(f"{function}.r1, r2: expected numbers from 0 to 1, not both 0, found {r1} and {r2}")
    return found
