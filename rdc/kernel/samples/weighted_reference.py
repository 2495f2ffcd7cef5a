"""Samples of weighted sets in plain Python: the definition for weighted.c.

Ioffe, "Improved Consistent Sampling, Weighted Minhash and L1 Sketching" (ICDM 2010). For each feature x of
weight w > 0 and each sample j, a generator seeded by x and j gives five uniform numbers u1, u2, v1, v2, beta:

    r = -ln(v1 v2)    c = -ln(u1 u2)    t = floor(ln(w) / r + beta)    a = ln(c) - r (t - beta) - r

The feature with the smallest a wins, and (x, t) is the sample. Two sets have it in common with probability
(sum of smaller weights) / (sum of larger weights). A function of each j reduces it: the same few t recur in
many samples, and equal accidents in all of them would spoil estimates from b bits.

Every machine computes the same: IEEE 754 doubles and only + - * / of them, in the order that is written here.
The logarithm is one of its own, as those of C libraries differ in the last bit.
"""

from __future__ import annotations

import math
from array import array

from rdc.kernel.constants import mix
from rdc.kernel.samples.reference import EMPTY, Family, check_count, numbers, spans_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["logarithm", "weighted_samples"]

ROOT_HALF = 0.7071067811865476
LN2 = 0.6931471805599453
TERMS = 11
HALF = (1 << 32) - 1
_WORD = (1 << 64) - 1


def logarithm(x: float) -> float:
    """The natural logarithm of a finite x > 0, with a relative error below 2^-50.

    x = m 2^e with m from the root of 1/2 to the root of 2; ln m = 2 (s + s^3/3 + s^5/5 + ...) with
    s = (m - 1) / (m + 1). Eleven terms leave an error below 2^-55.
    """
    m, e = math.frexp(x)
    if m < ROOT_HALF:
        m, e = 2.0 * m, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / (2 * TERMS - 1)
    for term in range(TERMS - 1, 0, -1):
        p = p * z + 1.0 / (2 * term - 1)
    return e * LN2 + 2.0 * s * p


def weighted_samples(
    features: ReadableBuffer, offsets: ReadableBuffer, weights: ReadableBuffer, count: int, seed: int, /
) -> bytes:
    """Returns `count` samples a set, u32: the upper half of mix(mix(x + key of j) + t) of the winner.

    `weights`: a double for each feature. A weight of 0 is as good as no feature. A set without features has
    samples of EMPTY. Of a repeated feature the largest weight counts. Of equal a's the first one wins.
    ValueError for a NaN, negative or infinite weight of a set, for weights that are not one a feature, and as
    for minimum_samples().
    """
    check_count(count)
    keys = Family(seed, 0).keys(count)
    loads = numbers("d", weights, "weights")
    column = numbers("Q", features, "features")
    if len(loads) != len(column):
        raise ValueError(f"{len(loads)} weights of {len(column)} features: one a feature is expected")
    samples = array("I")
    for first, stop in spans_of(column, offsets):
        for at in range(first, stop):
            if not 0 <= loads[at] < math.inf:
                raise ValueError(f"weight {at} is {loads[at]}: 0 or more, and finite, is expected")
        present = [(column[at], logarithm(loads[at])) for at in range(first, stop) if loads[at]]
        samples.extend([_sample(present, key) for key in keys])
    return samples.tobytes()


def _sample(present: list[tuple[int, float]], key: int) -> int:
    """The sample of features with the logarithms of their weights by one function."""
    least, sample = math.inf, EMPTY
    for feature, weight in present:
        one = mix((feature + key) & _WORD)
        two = mix(one)
        r = -logarithm(_uniform(one >> 32) * _uniform(one & HALF))
        c = -logarithm(_uniform(two >> 32) * _uniform(two & HALF))
        beta = _uniform(mix(two) >> 32)
        t = float(math.floor(weight / r + beta))
        a = logarithm(c) - r * (t - beta) - r
        if a < least:
            least, sample = a, mix((one + int(t)) & _WORD) >> 32
    return sample


def _uniform(bits: int) -> float:
    """A number between 0 and 1 from 32 random bits, neither of both."""
    return (bits + 0.5) * (1.0 / (1 << 32))
