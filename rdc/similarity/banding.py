"""Groups of samples as one key: supershingles, and banding for a join of near-duplicates.

Broder, Glassman, Manasse, Zweig, "Syntactic clustering of the web" (1997): sets that agree in all samples
of a group are most likely near-duplicates, and equal keys are found by sorting.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from itertools import combinations
from math import comb

from rdc.kernel.blake3_many import NAME_BYTES, name_parts
from rdc.lean.checks import check_argument, check_count, checked_count, checked_share
from rdc.lean.records import Record
from rdc.lean.typed import NamedTuple
from rdc.similarity.index import UnionFind
from rdc.similarity.samples import SAMPLES_MOST, Items, Samples, check_column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


def acceptance(p: float, groups: int, size: int, needed: int) -> float:
    """Return the probability that at least `needed` of `groups` groups agree in all their `size` samples, if
    each sample agrees with probability `p`.

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
    """Return one key of `bits` bits, 1 to 64, for each of `groups` groups of `size` samples: typecode 'Q',
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


class Banding(Record):
    """Near-duplicates as pairs that share the key of at least one of `bands` bands of `rows` samples."""

    bands: int
    rows: int

    def __post_init__(self) -> None:
        check_count("Banding", "bands", self.bands, 1, SAMPLES_MOST)
        check_count("Banding", "rows", self.rows, 1, SAMPLES_MOST)

    @staticmethod
    def plan(threshold: float, k: int, recall: float = 0.99) -> Banding:
        """Return the longest bands of `k` samples that find a pair of resemblance `threshold` with
        probability `recall`.

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
        """Return the probability that two sets of this resemblance share a band."""
        return acceptance(jaccard, self.bands, self.rows, 1)

    def keys(self, samples: Samples) -> array[int]:
        """Return the 64-bit keys of all bands: typecode 'Q', `bands` a set. Keys of different bands do not
        compare."""
        return supershingles(samples, self.bands, self.rows)


# Pairs of sets that agree in several of their keys: Broder, Glassman, Manasse, Zweig (1997).
#
# Sets that agree in two of six supershingles agree in the keys of one of 15 tables, one table for each pair
# of groups. Four of six need 15 tables as well, and one of eight needs 8.

TABLES_MOST = 1 << 16
"""Combinations of groups. Each is a table of all sets."""


class KeyPair(NamedTuple):
    """Two sets by their rows, the smaller row first."""

    first: int
    second: int


def agreeing_pairs(
    keys: array[int], groups: int, needed: int, *, spanning: bool = False
) -> Iterator[KeyPair]:
    """Yield each pair of sets that agree in at least `needed` of `groups` keys once, in no order to rely on.

    `keys`: `groups` a set, as supershingles() and Banding.keys() give them. One table at a time is in memory.
    A thousand equal sets make half a million pairs. With `spanning` each set of equal keys comes in a pair
    with the first one only: the clusters stay the same, and pairs may come twice. Raises ValueError if the
    keys are no whole sets.

    >>> from array import array
    >>> from rdc.similarity import agreeing_pairs
    >>> keys = array("Q", [1, 2, 3,  1, 2, 9,  7, 2, 9])
    >>> sorted(agreeing_pairs(keys, groups=3, needed=2))
    [KeyPair(first=0, second=1), KeyPair(first=1, second=2)]
    """
    check_column("agreeing_pairs", "keys", keys, Items.UNSIGNED)
    check_argument("agreeing_pairs", "spanning", spanning, bool)
    groups = checked_count("agreeing_pairs", "groups", groups, 1, SAMPLES_MOST)
    needed = checked_count("agreeing_pairs", "needed", needed, 1, groups)
    if isinstance(keys, (bytes, bytearray)) or len(keys) % groups:
        raise ValueError(f"agreeing_pairs.keys: expected {groups} keys for each set, found {len(keys)} keys")
    tables = comb(groups, needed)
    if tables > TABLES_MOST:
        raise ValueError(
            f"agreeing_pairs.needed: expected at most {TABLES_MOST} tables, found {tables} for {needed} of"
            f" {groups} keys"
        )
    return _pairs(keys, groups, needed, spanning)


def _pairs(keys: array[int], groups: int, needed: int, spanning: bool) -> Iterator[KeyPair]:
    for table in combinations(range(groups), needed):
        for rows in _buckets(keys, groups, table):
            if spanning:
                yield from [KeyPair(rows[0], row) for row in rows[1:]]
                continue
            for first, second in combinations(rows, 2):
                # A pair that several tables hold comes from the first of them.
                if _first_agreeing(keys, groups, needed, first, second) == table:
                    yield KeyPair(first, second)


def _buckets(keys: array[int], groups: int, table: Sequence[int]) -> Iterator[list[int]]:
    """Return the rows that are equal in all columns of the table, where there are two or more."""
    columns = [keys[group::groups] for group in table]
    found: dict[tuple[int, ...], int | list[int]] = {}
    for row, key in enumerate(zip(*columns, strict=True)):
        there = found.setdefault(key, row)
        if isinstance(there, list):
            there.append(row)
        elif there != row:
            found[key] = [there, row]
    return (rows for rows in found.values() if isinstance(rows, list))


def _first_agreeing(keys: array[int], groups: int, needed: int, first: int, second: int) -> tuple[int, ...]:
    one, other = keys[first * groups : (first + 1) * groups], keys[second * groups : (second + 1) * groups]
    agreeing = [group for group in range(groups) if one[group] == other[group]]
    return tuple(agreeing[:needed])


# Clusters: the connected components of pairs, each named by its smallest member.


class Clusters(Record):
    """Members of pairs and the cluster of each. Equal pairs in any order give equal bytes."""

    members: array[int]
    """All numbers of the pairs in increasing order, typecode 'Q'."""
    labels: array[int]
    """The smallest number of each member's cluster, typecode 'Q'."""

    def __len__(self) -> int:
        """Return the number of clusters."""
        return sum([member == label for member, label in zip(self.members, self.labels, strict=True)])

    def __iter__(self) -> Iterator[array[int]]:
        """Return the members of each cluster in increasing order. Clusters come in the order of their
        labels."""
        groups: dict[int, array[int]] = {}
        for member, label in zip(self.members, self.labels, strict=True):
            groups.setdefault(label, array("Q")).append(member)
        return iter(groups.values())

    def label(self, number: int) -> int:
        """Return the smallest number of its cluster; a number of no pair is a cluster of its own."""
        at = bisect_left(self.members, number)
        known = at < len(self.members) and self.members[at] == number
        return self.labels[at] if known else number


def clusters(pairs: Iterable[tuple[int, int]]) -> Clusters:
    """Connect the two numbers of each pair, 0 to 2^64 - 1.

    Neither order nor repetition of pairs counts, so clusters of parts and of the whole agree. Takes about 200
    bytes a number. Raises ValueError for other numbers.

    >>> from rdc.similarity import clusters
    >>> found = clusters([(7, 3), (9, 8), (3, 5)])
    >>> [list(cluster) for cluster in found], found.label(7)
    ([[3, 5, 7], [8, 9]], 3)
    """
    sets = UnionFind()
    numbers: set[int] = set()
    for first, second in pairs:
        sets.join(first, second)
        numbers.update((first, second))
    try:
        members = array("Q", sorted(numbers))
    except (OverflowError, TypeError) as problem:
        raise ValueError(f"members of pairs: numbers from 0 to 2^64 - 1 are expected ({problem})") from None
    return Clusters(members, array("Q", map(sets.top, members)))
