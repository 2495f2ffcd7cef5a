"""Traits: nine bytes per file from which the resemblance of two files is estimated without reading them."""

from __future__ import annotations

import math

from rdc.kernel import Cutter
from rdc.kernel.constants import FEW_FEATURES_BELOW, TRAIT_COUNT
from rdc.lean.checks import check_argument, checked_count, checked_share
from rdc.lean.records import Record
from rdc.limits import CHUNK_MIN_LIMIT
from rdc.signature.tree import TRAIT_BITS, TRAITS_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer


# Estimates resemblance from agreeing b-bit samples: Li and Konig, "b-Bit Minwise Hashing" (WWW 2010).
#
# A sample is the smallest image of a set under a random one-to-one map, reduced to b bits. Let R = |A n B| /
# |A u B| be the Jaccard resemblance of two sets. Their unreduced samples are equal with probability R. Their
# reduced samples agree with probability E = C1 + (1 - C2) R; C1 and C2 account for agreement by accident.
# Both are 2^-b for sets that are small compared with their universe, as sets of 64-bit features are. With b =
# 6: E = (1 + 63 R)/64.


class Estimate(Record):
    """An estimated Jaccard resemblance with its standard error."""

    jaccard: float
    """Unbiased: means over many pairs are right. The estimate of a single pair can lie just outside 0 to
    1."""
    standard_error: float


class Accidents(Record):
    """C1 and C2 of the paper: the chances that different samples of two sets agree in their b bits."""

    c1: float
    c2: float

    def __post_init__(self) -> None:
        checked_share("Accidents", "c1", self.c1, below=True)
        checked_share("Accidents", "c2", self.c2, below=True)

    def agreement(self, jaccard: float) -> float:
        """Return the probability that two reduced samples agree. Raises ValueError for a resemblance outside
        0 to 1."""
        jaccard = checked_share("Accidents.agreement", "jaccard", jaccard)
        return self.c1 + (1 - self.c2) * jaccard

    def standard_error(self, agreement: float, samples: int) -> float:
        """Return the standard error of an estimate from `samples` samples that each agree with probability
        `agreement`. Raises ValueError for numbers that cannot be."""
        samples = checked_count("Accidents.standard_error", "samples", samples, 1)
        agreement = checked_share("Accidents.standard_error", "agreement", agreement)
        return math.sqrt(agreement * (1 - agreement) / samples) / (1 - self.c2)

    def estimate(self, matches: int, samples: int) -> Estimate:
        """Return the estimate from `matches` agreeing samples of `samples`.

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
    """Return a of theorem 1; its limit 2^-b at density 0."""
    if not density:
        return 2.0**-bits
    # For the smallest densities, 1 - density is rounded to 1, so the powers are computed by logarithms.
    absent = math.log1p(-density)
    return density * math.exp(absent * (2.0**bits - 1)) / -math.expm1(absent * 2.0**bits)


def probability_of_matches(jaccard: float, least: int, samples: int = 12, bits: int = 6) -> float:
    """Return the probability that at least `least` of `samples` reduced samples agree. At `jaccard` it is the
    recall; at 0, the share of unrelated files that pass for similar."""
    p = accidents(bits).agreement(jaccard)
    return sum(math.comb(samples, m) * p**m * (1 - p) ** (samples - m) for m in range(least, samples + 1))


_ACCIDENTS = accidents(TRAIT_BITS)


def estimate_of(matches: int) -> Estimate:
    """Return the estimate from `matches` equal traits, 0 to 12: J = (64 m/12 - 1)/63."""
    return _ACCIDENTS.estimate(matches, TRAIT_COUNT)


class Traits(Record):
    """Twelve min-wise samples, six bits each, of one file's features (rdc/signature/FORMAT.md).

    Each sample agrees between two files with probability (63 J + 1)/64. J is the Jaccard resemblance of their
    feature sets: about the share of their distinct content that both have. The resemblance is Broder's;
    twelve samples of six bits are Manasse's choice.

        >>> import rdc
        >>> rdc.Traits(bytes(9)).matches(rdc.Traits(bytes(9)))
        12
    """

    packed: bytes
    """Nine bytes: trait t is in bits 6t to 6t + 5, little-endian. A file without features has no traits,
    and its SignatureTree.traits is b"". That is half of the files of 44 bytes and one in a hundred of 300
    bytes."""

    def __post_init__(self) -> None:
        if type(self.packed) is not bytes:  # a call for each of a million files would cost more
            check_argument("Traits", "packed", self.packed, bytes)
        if len(self.packed) != TRAITS_BYTES:
            raise ValueError(f"traits are {TRAITS_BYTES} bytes, found {len(self.packed)}")

    def __bytes__(self) -> bytes:
        return self.packed

    @property
    def samples(self) -> tuple[int, ...]:
        """The twelve samples, each 0 to 63."""
        number = int.from_bytes(self.packed, "little")
        return tuple(number >> TRAIT_BITS * t & 63 for t in range(TRAIT_COUNT))

    def matches(self, other: Traits) -> int:
        """Return the number of samples that agree. Unrelated files: 0.19 on average, 4 or more once in 37,000
        pairs."""
        return sum(a == b for a, b in zip(self.samples, other.samples, strict=True))

    def jaccard(self, other: Traits) -> float:
        """Return the estimated resemblance, (64 m/12 - 1)/63 for m matches. It is unbiased, so no match gives
        -0.016."""
        return self.estimate(other).jaccard

    def estimate(self, other: Traits) -> Estimate:
        """Return the estimated resemblance with its standard error. The error is about 0.14 in the middle, so
        it is a hint and no measurement."""
        return estimate_of(self.matches(other))


_ZEROS = bytes(FEW_FEATURES_BELOW)


def coarse_traits(data: Buffer) -> bytes:
    """Return the traits made of the features that a stream of 64 KiB or more would have: nine bytes, or b""
    without any.

    A smaller file samples four times as many features. So a file of 60 KiB and its next version of 66 KiB
    would share few traits. Zeros after the data make it a large stream. A window of zeros alone is no feature
    (its lead is 123 or more). The zeros can add a feature only in the 15 windows across the end, which
    happens in one of 17 files.
    """
    with memoryview(data).cast("B") as view:
        cutter = Cutter(CHUNK_MIN_LIMIT, 2 * CHUNK_MIN_LIMIT)
        cutter.feed(view)
        cutter.feed(_ZEROS[len(view) :])
        cutter.finish()
        return cutter.traits()
