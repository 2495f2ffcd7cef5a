"""Groups of samples as one key: supershingles, and banding for a join of near-duplicates.

Broder, Glassman, Manasse, Zweig, "Syntactic clustering of the web" (1997): sets that agree in all samples
of a group are most likely near-duplicates, and equal keys are found by sorting.
"""

from __future__ import annotations

import math
from array import array

from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.lean.checks import check_count, checked_count, checked_share
from rdc.lean.records import dataclass
from rdc.similarity.arguments import SAMPLES_MOST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.similarity.samples import Samples

__all__ = ["Banding", "acceptance", "supershingles"]


def acceptance(p: float, groups: int, size: int, needed: int) -> float:
    """The probability that at least `needed` of `groups` groups agree in all their `size` samples, if each
    sample agrees with probability `p`.

    >>> from rdc.similarity import acceptance
    >>> round(acceptance(0.95, groups=6, size=14, needed=2), 3)
    0.879
    """
    p = checked_share("acceptance", "p", p)
    groups = checked_count("acceptance", "groups", groups, 1, SAMPLES_MOST)
    size = checked_count("acceptance", "size", size, 1, SAMPLES_MOST)
    needed = checked_count("acceptance", "needed", needed, 1, groups)
    q = p**size
    return sum(math.comb(groups, g) * q**g * (1 - q) ** (groups - g) for g in range(needed, groups + 1))


def supershingles(samples: Samples, groups: int, size: int, bits: int = 64) -> array[int]:
    """One key of `bits` bits, 1 to 64, for each of `groups` groups of `size` samples: typecode 'Q',
    `groups` a set.

    Group g has the samples from g * size on. Its key is the start of their BLAKE3 digest, so keys are the
    same on all machines. Raises ValueError if a set has fewer samples, or unfilled ones.
    """
    groups = checked_count("supershingles", "groups", groups, 1, samples.k)
    size = checked_count("supershingles", "size", size, 1, samples.k // groups)
    bits = checked_count("supershingles", "bits", bits, 1, 64)
    if not samples.filled:
        raise ValueError("samples of empty bins would all agree; one_permutation(..., fill=True) has none")
    used, row = 4 * groups * size, 4 * samples.k
    data = samples.data
    if used < row:
        data = b"".join([data[at : at + used] for at in range(0, len(data), row)])
    digests = name_parts(data, array("Q", [4 * size]) * (groups * len(samples)))
    keys = array("Q")
    for at in range(0, len(digests), NAME_BYTES):
        keys.append(int.from_bytes(digests[at : at + 8], "little") >> 64 - bits)
    return keys


@dataclass(frozen=True, slots=True)
class Banding:
    """Near-duplicates as pairs that share the key of at least one of `bands` bands of `rows` samples."""

    bands: int
    rows: int

    def __post_init__(self) -> None:
        check_count("Banding", "bands", self.bands, 1, SAMPLES_MOST)
        check_count("Banding", "rows", self.rows, 1, SAMPLES_MOST)

    @staticmethod
    def plan(threshold: float, k: int, recall: float = 0.99) -> Banding:
        """The longest bands of `k` samples that find a pair of resemblance `threshold` with probability
        `recall`.

        Longer bands mean fewer pairs to look at. Raises ValueError if even single samples find too few.

        >>> from rdc.similarity import Banding
        >>> plan = Banding.plan(0.8, 128)
        >>> plan, round(plan.probability(0.8), 3), round(plan.probability(0.3), 3)
        (Banding(bands=21, rows=6), 0.998, 0.015)
        """
        threshold = checked_share("Banding.plan", "threshold", threshold)
        k = checked_count("Banding.plan", "k", k, 1, SAMPLES_MOST)
        recall = checked_share("Banding.plan", "recall", recall, below=True)
        for rows in range(k, 0, -1):
            plan = Banding(k // rows, rows)
            if plan.probability(threshold) >= recall:
                return plan
        raise ValueError(f"{k} samples find a resemblance of {threshold} in fewer than {recall:.0%} of cases")

    def probability(self, jaccard: float) -> float:
        """The probability that two sets of this resemblance share a band."""
        return acceptance(jaccard, self.bands, self.rows, 1)

    def keys(self, samples: Samples) -> array[int]:
        """The 64-bit keys of all bands: typecode 'Q', `bands` a set. Keys of different bands do not
        compare."""
        return supershingles(samples, self.bands, self.rows)
