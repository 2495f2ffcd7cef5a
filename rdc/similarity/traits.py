"""Traits: nine bytes per file from which the resemblance of two files is estimated without reading them."""

from __future__ import annotations

from rdc.kernel.constants import TRAIT_COUNT
from rdc.lean.checks import check_argument
from rdc.lean.records import dataclass
from rdc.signature.tree import TRAIT_BITS, TRAITS_BYTES
from rdc.similarity.estimate import Estimate, accidents

__all__ = ["Traits", "estimate_of"]

_ACCIDENTS = accidents(TRAIT_BITS)


def estimate_of(matches: int) -> Estimate:
    """The estimate from `matches` equal traits, 0 to 12: J = (64 m/12 - 1)/63."""
    return _ACCIDENTS.estimate(matches, TRAIT_COUNT)


@dataclass(frozen=True, slots=True)
class Traits:
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
        """The number of samples that agree. Unrelated files: 0.19 on average, 4 or more once in 37,000
        pairs."""
        return sum(a == b for a, b in zip(self.samples, other.samples, strict=True))

    def jaccard(self, other: Traits) -> float:
        """The estimated resemblance, (64 m/12 - 1)/63 for m matches. It is unbiased, so no match gives
        -0.016."""
        return self.estimate(other).jaccard

    def estimate(self, other: Traits) -> Estimate:
        """The estimated resemblance with its standard error. The error is about 0.14 in the middle, so it is
        a hint and no measurement."""
        return estimate_of(self.matches(other))
