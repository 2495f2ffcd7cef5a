"""Samples of weighted sets: Ioffe, "Improved Consistent Sampling, Weighted Minhash and L1 Sketching" (ICDM
2010).

For each feature x of weight w > 0 and each sample j, a generator seeded by x and j gives five uniform numbers
u1, u2, v1, v2, beta:

    r = -ln(v1 v2)    c = -ln(u1 u2)    t = floor(ln(w) / r + beta)    a = ln(c) - r (t - beta) - r

The feature with the smallest a wins, and (x, t) is the sample. Two sets have it in common with probability
(sum of smaller weights) / (sum of larger weights). A function of each j reduces it to 32 bits: the same few t
recur in many samples, and equal accidents in all of them would spoil estimates from b bits.
"""

from __future__ import annotations

import math
from array import array

from rdc.kernel.constants import mix
from rdc.lean.checks import checked_count, checked_seed
from rdc.similarity.arguments import SAMPLES_MOST, Items, check_column, numbers_of, spans_of
from rdc.similarity.draws import logarithm
from rdc.similarity.samples import EMPTY, Family, Samples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["weighted_minhash"]

_HALF = (1 << 32) - 1
_WORD = (1 << 64) - 1


def weighted_minhash(
    features: Buffer, offsets: Buffer, weights: Buffer, k: int = 128, seed: int = 1
) -> Samples:
    """`k` samples a set, 1 to 65,536, that two sets share with probability (sum of smaller weights) / (sum of
    larger weights).

    `weights`: a double for each feature, 0 or more. A weight of 0 is as good as no feature; of a repeated
    feature the largest weight counts. The samples are the same on every machine. Time grows with features
    times `k`, some ten microseconds for each. A set without features has samples of 2^32 - 1. Raises
    ValueError for a bad column and for a weight that is negative, infinite or no number, and says which.

    >>> from array import array
    >>> from rdc.similarity import weighted_minhash
    >>> column = array("Q", [3, 5, 3, 5]), array("q", [0, 2, 4])
    >>> samples = weighted_minhash(*column, array("d", [1, 1, 1, 3]), k=512)
    >>> 0.4 < samples.estimate(0, 1).jaccard < 0.6
    True
    """
    function = "weighted_minhash"
    check_column(function, "features", features, Items.UNSIGNED)
    check_column(function, "offsets", offsets, Items.SIGNED)
    check_column(function, "weights", weights, Items.DOUBLES)
    count, seed = checked_count(function, "k", k, 1, SAMPLES_MOST), checked_seed(function, seed)
    column, loads = numbers_of("Q", features, "features"), numbers_of("d", weights, "weights")
    if len(loads) != len(column):
        raise ValueError(f"{len(loads)} weights of {len(column)} features: one a feature is expected")
    family = Family(seed)
    keys = [family.function(j) for j in range(count)]
    samples = array("I")
    for first, stop in spans_of(len(column), offsets):
        for at in range(first, stop):
            if not 0 <= loads[at] < math.inf:
                raise ValueError(f"weight {at} is {loads[at]}: 0 or more, and finite, is expected")
        present = [(column[at], logarithm(loads[at])) for at in range(first, stop) if loads[at]]
        samples.extend([_sample(present, key) for key in keys])
    return Samples(samples.tobytes(), count)


def _sample(present: list[tuple[int, float]], key: int) -> int:
    """The sample of features with the logarithms of their weights by one function. Of equal a's the first
    wins."""
    least, sample = math.inf, EMPTY
    for feature, weight in present:
        one = mix((feature + key) & _WORD)
        two = mix(one)
        r = -logarithm(_uniform(one >> 32) * _uniform(one & _HALF))
        c = -logarithm(_uniform(two >> 32) * _uniform(two & _HALF))
        beta = _uniform(mix(two) >> 32)
        t = float(math.floor(weight / r + beta))
        a = logarithm(c) - r * (t - beta) - r
        if a < least:
            least, sample = a, mix((one + int(t)) & _WORD) >> 32
    return sample


def _uniform(bits: int) -> float:
    """A number between 0 and 1 from 32 random bits, neither of both."""
    return (bits + 0.5) * (1.0 / (1 << 32))
