"""Samples of weighted sets: Ioffe, "Improved Consistent Sampling, Weighted Minhash and L1 Sketching" (ICDM
2010)."""

from __future__ import annotations

from rdc.checks import checked_count, checked_seed
from rdc.kernel.sampling import weighted_samples
from rdc.similarity.arguments import SAMPLES_MOST, Items, check_column
from rdc.similarity.samples import Samples

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["weighted_minhash"]


def weighted_minhash(
    features: Buffer, offsets: Buffer, weights: Buffer, k: int = 128, seed: int = 1
) -> Samples:
    """`k` samples a set, 1 to 65,536, that two sets share with probability (sum of smaller weights) / (sum of
    larger weights).

    `weights`: a double for each feature, 0 or more. A weight of 0 is as good as no feature; of a repeated
    feature the largest weight counts. The samples are the same on every machine. Time grows with features
    times `k`. A set without features has samples of 2^32 - 1. Raises ValueError for a bad column and for a
    weight that is negative, infinite or no number, and says which.

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
    return Samples(weighted_samples(features, offsets, weights, count, seed), count)
