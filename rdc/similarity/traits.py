"""Traits: nine bytes that say how much two files have in common, without either file."""

from __future__ import annotations

from rdc.kernel.constants import TRAIT_COUNT
from rdc.records import dataclass
from rdc.signature.trait_column import TRAIT_BITS, TRAITS_BYTES
from rdc.similarity.estimate import Estimate, accidents

__all__ = ["Traits", "estimate_of"]

_ACCIDENTS = accidents(TRAIT_BITS)


def estimate_of(matches: int) -> Estimate:
    """What `matches` equal traits, 0 to 12, say: J = (64 m/12 - 1)/63."""
    return _ACCIDENTS.estimate(matches, TRAIT_COUNT)


@dataclass(frozen=True, slots=True)
class Traits:
    """Twelve min-wise samples of six bits each, of the features of one file (rdc/signature/FORMAT.md).

    Each agrees between two files with probability (63 J + 1)/64, where J is the Jaccard resemblance of their
    feature sets: about the part of their content, counted once, that both have. Broder's resemblance with
    Manasse's choice of twelve samples of six bits.
    """

    packed: bytes
    """Nine bytes: trait t in bits 6t to 6t + 5, little-endian. A file without features has none (half
    of those of 44 bytes, one in a hundred of 300): there SignatureTree.traits is b""."""

    def __post_init__(self) -> None:
        if len(self.packed) != TRAITS_BYTES:
            raise ValueError(f"traits are {TRAITS_BYTES} bytes, found {len(self.packed)}")

    def __bytes__(self) -> bytes:
        return self.packed

    @property
    def samples(self) -> tuple[int, ...]:
        """The twelve samples, 0 to 63 each."""
        number = int.from_bytes(self.packed, "little")
        return tuple(number >> TRAIT_BITS * t & 63 for t in range(TRAIT_COUNT))

    def matches(self, other: Traits) -> int:
        """How many of the twelve agree. Unrelated files: 0.19 on average, 4 or more once in 37,000 pairs."""
        return sum(a == b for a, b in zip(self.samples, other.samples, strict=True))

    def jaccard(self, other: Traits) -> float:
        """The estimated resemblance, (64 m/12 - 1)/63 of m matches: unbiased, so -0.016 of none."""
        return self.estimate(other).jaccard

    def estimate(self, other: Traits) -> Estimate:
        """The same with its standard error: about 0.14 in the middle, so a hint and no measurement."""
        return estimate_of(self.matches(other))
