"""Min-wise samples of sets: the smallest images under random functions, for estimates of resemblance.

Broder, "On the resemblance and containment of documents" (1997): two sets have the same smallest image
under a random one-to-one map with the probability of their Jaccard resemblance |A n B| / |A u B|.

Sets are a column in Arrow's layout: `features`, all u64 features one after another, and `offsets`, i64, one
more than there are sets; set s has the features from offsets[s] to offsets[s + 1]. Any buffer serves, such as
array('Q'), a numpy array of uint64 or an Arrow buffer, and nothing is copied. Bytes are packed numbers in the
byte order of the machine; a buffer whose items are of another type is a TypeError. Features are hashes.
Repeated features count once.
"""

from __future__ import annotations

import math
from array import array
from heapq import nsmallest
from operator import eq

from rdc.kernel import minimum_samples, partition_samples
from rdc.kernel.constants import mix
from rdc.lean.checks import check_argument, check_count, checked_count, checked_seed
from rdc.lean.records import dataclass
from rdc.similarity.arguments import SAMPLES_MOST, Items, check_column, check_whole, numbers_of, spans_of
from rdc.similarity.estimate import Estimate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["EMPTY", "BottomRanks", "Family", "Samples", "bottom_k", "minhash", "one_permutation"]

EMPTY = (1 << 32) - 1
"""The sample of no feature at all."""

_WORD = (1 << 64) - 1


class Family:
    """The functions that a seed stands for, as in the kernel."""

    def __init__(self, seed: int) -> None:
        self._key = mix(seed)
        self._factor = mix(seed ^ self._key) | 1

    def rank(self, feature: int) -> int:
        """The 64 bits by which features are ordered."""
        return (feature ^ feature >> 32 ^ self._key) * self._factor & _WORD

    def function(self, number: int) -> int:
        """The 64 bits of one function."""
        return mix((self._factor + number) & _WORD)


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of many sets. Those of two sets compare only if `k`, seed and method are the same."""

    data: bytes
    """u32, `k` a set."""
    k: int
    filled: bool = True
    """False: bins without a feature have no sample, and estimates leave them out."""

    def __post_init__(self) -> None:
        check_count("Samples", "k", self.k, 1, SAMPLES_MOST)
        check_whole("Samples", self.data, 4 * self.k)

    def __len__(self) -> int:
        """The number of sets."""
        return len(self.data) // (4 * self.k)

    def of(self, row: int) -> array[int]:
        """The samples of one set. Raises IndexError."""
        if not 0 <= row < len(self):
            raise IndexError(f"set {row} of {len(self)}")
        return array("I", self.data[4 * self.k * row : 4 * self.k * (row + 1)])

    def estimate(self, one: int, other: int) -> Estimate:
        """The estimated resemblance of two sets.

        Without filled bins that is the share of equal samples among the bins in which either set has one (Li,
        Owen, Zhang, "One Permutation Hashing", 2012). Two empty sets resemble each other fully.
        """
        a, b, k = self.of(one), self.of(other), self.k
        equal = sum(map(eq, a, b))
        if not self.filled:
            neither = list(zip(a, b, strict=True)).count((EMPTY, EMPTY))
            equal, k = equal - neither, k - neither
        if not k:
            return Estimate(1.0, 0.0)
        share = (equal + 1) / (k + 2)
        return Estimate(equal / k, math.sqrt(share * (1 - share) / k))


def minhash(features: Buffer, offsets: Buffer, k: int = 128, seed: int = 1) -> Samples:
    """Samples by `k` independent functions, 1 to 65,536.

    The variance of an estimate is J (1 - J) / k. Time grows with features times `k`: it suits short sets. All
    samples of an empty set are 2^32 - 1. Raises ValueError for a bad column.

    >>> from array import array
    >>> from rdc.similarity import minhash
    >>> samples = minhash(array("Q", [3, 5, 8, 3, 5, 9]), array("q", [0, 3, 6]), k=256)
    >>> 0.3 < samples.estimate(0, 1).jaccard < 0.7
    True
    """
    count, seed = _checked("minhash", features, offsets, k, seed)
    return Samples(minimum_samples(features, offsets, count, seed), count)


def one_permutation(
    features: Buffer, offsets: Buffer, k: int = 128, seed: int = 1, *, fill: bool = True
) -> Samples:
    """Samples by one product a feature: the smallest feature in each of `k` bins (Li, Owen, Zhang 2012).

    With `fill`, an empty bin takes the smallest image of all features under a function of its own, marked
    as such. So each sample is equal with probability J exactly, whatever the sizes of both sets, and sets
    of all sizes compare. The mean squared error lies below J (1 - J) / k, as bins without replacement vary
    less. Without `fill` sketches of one column merge by their minima. A power of two for `k` is fastest.
    Raises ValueError for a bad column.

    >>> from array import array
    >>> from rdc.similarity import one_permutation
    >>> samples = one_permutation(array("Q", range(2000)), array("q", [0, 1000, 1000, 2000]))
    >>> len(samples), samples.estimate(0, 0).jaccard, samples.estimate(0, 2).jaccard < 0.1
    (3, 1.0, True)
    """
    count, seed = _checked("one_permutation", features, offsets, k, seed)
    check_argument("one_permutation", "fill", fill, bool)
    return Samples(partition_samples(features, offsets, count, seed, fill), count, fill)


@dataclass(frozen=True, slots=True)
class BottomRanks:
    """The smallest hashes of many sets, as a column of sets."""

    ranks: bytes
    """u64, increasing within a set."""
    offsets: bytes
    """i64, one more than sets."""
    k: int

    def __post_init__(self) -> None:
        check_count("BottomRanks", "k", self.k, 1, SAMPLES_MOST)
        check_whole("BottomRanks", self.ranks, 8)
        check_whole("BottomRanks", self.offsets, 8, least=1)

    def __len__(self) -> int:
        """The number of sets."""
        return len(self.offsets) // 8 - 1

    def of(self, row: int) -> array[int]:
        """The ranks of one set. Raises IndexError."""
        if not 0 <= row < len(self):
            raise IndexError(f"set {row} of {len(self)}")
        first, stop = array("q", self.offsets[8 * row : 8 * row + 16])
        return array("Q", self.ranks[8 * first : 8 * stop])

    def estimate(self, one: int, other: int) -> Estimate:
        """The estimated resemblance of two sets, by the union rule of Broder (1997): of the `k` smallest
        ranks of the union, the share that both sets have. It is exact if the union has at most `k`
        features."""
        a, b = set(self.of(one)), set(self.of(other))
        union = sorted(a | b)[: self.k]
        if not union:
            return Estimate(1.0, 0.0)
        shared = len(a.intersection(b, union))
        if len(union) < self.k:
            return Estimate(shared / len(union), 0.0)
        share = (shared + 1) / (self.k + 2)
        return Estimate(shared / self.k, math.sqrt(share * (1 - share) / self.k))


def bottom_k(features: Buffer, offsets: Buffer, k: int = 128, seed: int = 1) -> BottomRanks:
    """The `k` smallest different hashes of each set, or all of them. Raises ValueError for a bad column.

    >>> from array import array
    >>> from rdc.similarity import bottom_k
    >>> bottom_k(array("Q", [3, 5, 8, 3, 5, 9]), array("q", [0, 3, 6]), k=8).estimate(0, 1).jaccard
    0.5
    """
    count, seed = _checked("bottom_k", features, offsets, k, seed)
    family, column = Family(seed), numbers_of("Q", features, "features")
    ranks, ends = array("Q"), array("q", [0])
    for first, stop in spans_of(len(column), offsets):
        ranks.extend(nsmallest(count, {family.rank(feature) for feature in column[first:stop]}))
        ends.append(len(ranks))
    return BottomRanks(ranks.tobytes(), ends.tobytes(), count)


def _checked(function: str, features: Buffer, offsets: Buffer, k: object, seed: object) -> tuple[int, int]:
    """Return the number of samples and the seed. Raises TypeError and ValueError."""
    check_column(function, "features", features, Items.UNSIGNED)
    check_column(function, "offsets", offsets, Items.SIGNED)
    return checked_count(function, "k", k, 1, SAMPLES_MOST), checked_seed(function, seed)
