"""b-bit samples: Li and Konig, "b-Bit Minwise Hashing" (WWW 2010).

`rdc.similarity.traits` has theorem 1. Densities r1 and r2 are the shares of their universe that two sets
hold; 0 for sets of 64-bit hashes, whose universe is endless.
"""

from __future__ import annotations

import math
from array import array

from rdc.kernel import sample_matches
from rdc.lean.checks import COUNT_MOST, check_argument, check_count, checked_count, checked_share
from rdc.lean.records import Record
from rdc.similarity.samples import SAMPLES_MOST, Samples
from rdc.similarity.traits import Accidents, Estimate, accidents

TYPE_CHECKING = False


_ROW_BLOCK = 8
"""Packed sets stand side by side in blocks of this many, so that vectors compare them at once."""


class PackedSamples(Record):
    """Samples of many sets, reduced to a few bits each.

    A sample is reduced to the highest `bits` bits of its product with 0x9E3779B1 modulo 2^32. Sets are
    packed in blocks of 8, the last one filled up with zeros. A block has k/64 words, rounded up. Each word
    has `bits` planes, the lowest bit of the reduced samples first, and each plane has a u64 for each set of
    the block: bit i of word w is of sample 64 w + i.
    """

    data: bytes
    """k * bits / 8 bytes a set, for k a multiple of 64."""
    sets: int
    k: int
    bits: int

    def __post_init__(self) -> None:
        check_count("PackedSamples", "sets", self.sets, 0)
        check_count("PackedSamples", "k", self.k, 1, SAMPLES_MOST)
        check_count("PackedSamples", "bits", self.bits, 1, 16)
        check_argument("PackedSamples", "data", self.data, bytes)

    def __len__(self) -> int:
        """Return the number of sets."""
        return self.sets


def bbit_pack(samples: Samples, bits: int) -> PackedSamples:
    """Reduce samples to `bits` bits, 1 to 16. Raises ValueError for other widths and for unfilled samples.

    >>> from array import array
    >>> from rdc.similarity import bbit_estimate, bbit_matches, bbit_pack, one_permutation
    >>> column = array("Q", range(5000)), array("q", [0, 4000, 5000])
    >>> packed = bbit_pack(one_permutation(*column), 2)
    >>> matches = bbit_matches(packed, 0, packed)
    >>> bbit_estimate(matches[0], packed.k, 2).jaccard
    1.0
    """
    if not samples.filled:
        raise ValueError("samples of empty bins would all agree; one_permutation(..., fill=True) has none")
    bits = checked_count("bbit_pack", "bits", bits, 1, 16)
    sets, words = len(samples), -(-samples.k // 64)
    packed = array("Q", bytes(8 * _ROW_BLOCK * words * bits * -(-sets // _ROW_BLOCK)))
    for row in range(sets):
        block, lane = divmod(row, _ROW_BLOCK)
        reduced = [(sample * 0x9E3779B1 & 0xFFFFFFFF) >> 32 - bits for sample in samples.of(row)]
        for plane in range(bits):
            column = sum([(value >> plane & 1) << j for j, value in enumerate(reduced)])
            for word in range(words):
                at = ((block * words + word) * bits + plane) * _ROW_BLOCK + lane
                packed[at] = column >> 64 * word & 0xFFFF_FFFF_FFFF_FFFF
    return PackedSamples(packed.tobytes(), sets, samples.k, bits)


def bbit_matches(queries: PackedSamples, row: int, packed: PackedSamples) -> array[int]:
    """Return how many samples of set `row` of `queries` agree with those of each set of `packed`, typecode
    'I'.

    Raises ValueError if both differ in `k` or `bits`, IndexError if there is no such set.
    """
    if (queries.k, queries.bits) != (packed.k, packed.bits):
        raise ValueError(
            f"{queries.k} samples of {queries.bits} bits do not compare with {packed.k} of {packed.bits}"
        )
    if not 0 <= checked_count("bbit_matches", "row", row, -COUNT_MOST) < queries.sets:
        raise IndexError(f"set {row} of {queries.sets}")
    return array("I", sample_matches(queries.data, row, packed.data, packed.sets, packed.k, packed.bits))


def bbit_constants(r1: float, r2: float, bits: int) -> Accidents:
    """C1 and C2 of theorem 1. Raises ValueError unless densities are 0 to below 1 and bits 1 to 64."""
    r1 = checked_share("bbit_constants", "r1", r1, below=True)
    r2 = checked_share("bbit_constants", "r2", r2, below=True)
    return accidents(checked_count("bbit_constants", "bits", bits, 1, 64), r1, r2)


def bbit_estimate(matches: int, k: int, bits: int, r1: float = 0.0, r2: float = 0.0) -> Estimate:
    """Return the unbiased estimate of resemblance from `matches` equal samples of `k`: equation (9)."""
    k = checked_count("bbit_estimate", "k", k, 1)
    matches = checked_count("bbit_estimate", "matches", matches, 0, k)
    return bbit_constants(r1, r2, bits).estimate(matches, k)


def bbit_variance(jaccard: float, r1: float, r2: float, bits: int, k: int) -> float:
    """Return the variance of that estimate: equation (11), E (1 - E) / (k (1 - C2)^2)."""
    jaccard = checked_share("bbit_variance", "jaccard", jaccard)
    k = checked_count("bbit_variance", "k", k, 1)
    chance = bbit_constants(r1, r2, bits)
    return chance.standard_error(chance.agreement(jaccard), k) ** 2


def storage_factor(jaccard: float, r1: float, r2: float, bits: int, wide: int = 64) -> float:
    """Return how much less space `bits`-bit samples need than `wide`-bit ones for the same variance: table
    1's ratio B(wide) / B(bits), with B(b) = b * variance * k. Equal sets have no variance, so `jaccard` is
    below 1."""
    jaccard = checked_share("storage_factor", "jaccard", jaccard, below=True)
    bits = checked_count("storage_factor", "bits", bits, 1, 64)
    wide = checked_count("storage_factor", "wide", wide, 1, 64)
    narrow = bits * bbit_variance(jaccard, r1, r2, bits, 1)
    return wide * bbit_variance(jaccard, r1, r2, wide, 1) / narrow if narrow else math.inf


def xor_pairs(packed: PackedSamples) -> PackedSamples:
    """Join samples i and i + k/2 of each set by exclusive or: "b = 1/2", half as many bits.

    bbit_matches() compares them, and xor_pairs_estimate() estimates from k/2 pairs. Raises ValueError unless
    samples have 1 bit and `k` is a multiple of 128, so that whole words are joined.

    >>> from array import array
    >>> from rdc.similarity import bbit_matches, bbit_pack, minhash, xor_pairs
    >>> joined = xor_pairs(bbit_pack(minhash(array("Q", range(99)), array("q", [0, 99])), 1))
    >>> joined.k, list(bbit_matches(joined, 0, joined))
    (64, [64])
    """
    if packed.bits != 1 or packed.k % 128:
        raise ValueError(
            f"{packed.k} samples of {packed.bits} bits: a multiple of 128, of 1 bit, is expected"
        )
    half = packed.k // 2 // 8 * _ROW_BLOCK
    joined = [
        int.from_bytes(packed.data[at : at + half], "little")
        ^ int.from_bytes(packed.data[at + half : at + 2 * half], "little")
        for at in range(0, len(packed.data), 2 * half)
    ]
    data = b"".join([block.to_bytes(half, "little") for block in joined])
    return PackedSamples(data, packed.sets, packed.k // 2, 1)


def xor_pairs_estimate(matches: int, pairs: int, r1: float = 0.0, r2: float = 0.0) -> Estimate:
    """Return the estimate from pairs of 1-bit samples joined by exclusive or, "b = 1/2" of section 5.3.

    `matches`: equal joined bits among `pairs`. Two joined bits are equal with probability E^2 + (1 - E)^2.
    Resemblances near 0 are overestimated, since the square root stops at 0.
    """
    pairs = checked_count("xor_pairs_estimate", "pairs", pairs, 1)
    matches = checked_count("xor_pairs_estimate", "matches", matches, 0, pairs)
    chance = bbit_constants(r1, r2, 1)
    root = math.sqrt(max(2 * matches / pairs - 1, 0.0))
    found = (root + 1 - 2 * chance.c1) / (2 - 2 * chance.c2)
    return Estimate(found, math.sqrt(xor_pairs_variance(min(max(found, 1 / pairs), 1.0), r1, r2, pairs)))


def xor_pairs_variance(jaccard: float, r1: float, r2: float, pairs: int) -> float:
    """Return the variance of xor_pairs_estimate() by the delta method: T (1 - T) / pairs over the square of
    dT/dR.

    Per bit stored it is below that of 1-bit samples where R exceeds 0.5774 = sqrt(1/3), for densities near 0.
    Infinite where joined bits say nothing.
    """
    jaccard = checked_share("xor_pairs_variance", "jaccard", jaccard)
    pairs = checked_count("xor_pairs_variance", "pairs", pairs, 1)
    chance = bbit_constants(r1, r2, 1)
    equal = chance.agreement(jaccard)
    joined = equal * equal + (1 - equal) * (1 - equal)
    slope = 2 * (2 * equal - 1) * (1 - chance.c2)
    return joined * (1 - joined) / (pairs * slope * slope) if slope else math.inf


# Resemblance from the Hamming distance of sampled coordinates, the scheme that section 4 of Li and Konig,
# "b-Bit Minwise Hashing" (WWW 2010), compares with.
#
# Sets are vectors of D bits with the densities r1 and r2. The bits of both at a random coordinate differ with
# probability H = r1 + r2 - 2 s, where s is the density of the intersection. So R = (r1 + r2 - H) / (r1 + r2 +
# H). It suits dense sets: of sparse ones almost all sampled bits are 0.


def hamming_probability(jaccard: float, r1: float, r2: float) -> float:
    """H, the probability that the bits of a coordinate differ: (r1 + r2) (1 - R) / (1 + R)."""
    jaccard = checked_share("hamming_probability", "jaccard", jaccard)
    r1, r2 = _densities("hamming_probability", r1, r2)
    return (r1 + r2) * (1 - jaccard) / (1 + jaccard)


def hamming_estimate(differing: int, k: int, r1: float, r2: float) -> Estimate:
    """Return the estimate of resemblance from `differing` of `k` sampled coordinates.

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
    """Return the variance of that estimate by the delta method: H (1 - H) / k times the square of dR/dH."""
    k = checked_count("hamming_variance", "k", k, 1)
    return _variance(hamming_probability(jaccard, r1, r2), r1, r2, k)


def quantise_density(density: float, bits: int = 8) -> int:
    """Return the code of a density in `bits` bits, 1 to 16: the interval of width 2^-bits that holds it.

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
    """Return the middle of the interval of a code. Raises ValueError for a code of more bits."""
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
