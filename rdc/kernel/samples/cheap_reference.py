"""The sampling tricks of Manasse, "On the Efficient Determination of Most Near Neighbors" (2012), chapters
3.2 and 4, in plain Python: they save random bits, and count what they take.

Nothing in rdc calls them. They date from when a random number cost more than a branch. A branch that cannot
be predicted now costs as much as many products in vectors, and the lead byte needs several for each sample.
So the kernel's variants compute every function of every feature.

All of them draw from SplitMix64, seeded by feature and sample, so that equal features draw equal numbers. The
sample of an empty set is None.
"""

from __future__ import annotations

from rdc.kernel.constants import mix
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["CheapSamples", "biased_bit", "lead_byte", "two_bits"]

PREFIXES = 8
_WORD = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class CheapSamples:
    """Samples of one set and the work they took."""

    features: tuple[int | None, ...]
    """The winner of each sample."""
    evaluations: int
    """lead_byte: features that tied with or improved on the smallest byte. two_bits: random bits that were
    read. biased_bit: features whose biased bit was 0."""


def _value(feature: int, sample: int) -> int:
    """The 64 random bits that order the features of a sample."""
    return mix(mix(feature) + mix(sample) & _WORD)


def lead_byte(features: Sequence[int], count: int) -> CheapSamples:
    """One hash of 64 bits gives prefixes of 8 bits for eight samples.

    The long value is computed only for a feature whose prefix ties with or improves on the smallest one: some
    7.12 + n / 256 times a sample for many features.
    """
    leads = [256] * count
    best: list[tuple[int, int] | None] = [None] * count
    evaluations = 0
    for feature in features:
        for block in range(0, count, PREFIXES):
            prefixes = mix(mix(feature) ^ block)
            for at in range(min(PREFIXES, count - block)):
                lead, sample = prefixes >> 8 * at & 0xFF, block + at
                if lead > leads[sample]:
                    continue
                evaluations += 1
                found = _value(feature, sample), feature
                known = best[sample]
                if lead < leads[sample] or known is None or found < known:
                    leads[sample], best[sample] = lead, found
    return CheapSamples(tuple([found and found[1] for found in best]), evaluations)


def two_bits(features: Sequence[int], count: int) -> CheapSamples:
    """Reads the bits of a value from the highest on until they differ from those of the smallest value so
    far: two bits a feature and sample on average."""
    winners: list[int | None] = []
    bits = 0
    for sample in range(count):
        least = winner = None
        for feature in features:
            value = _value(feature, sample)
            if least is None or winner is None:
                least, winner = value, feature
                continue
            same = 64 - (value ^ least).bit_length()
            bits += min(same + 1, 64)
            least, winner = min((least, winner), (value, feature))
        winners.append(winner)
    return CheapSamples(tuple(winners), bits)


def biased_bit(features: Sequence[int], count: int) -> CheapSamples:
    """The first bit is 0 with probability 1/16, and only then are more drawn.

    So a feature is evaluated for count / 16 samples in place of `count`, and its biased bits carry a third of
    a bit each. A sample for which all features have a 1, probability (15/16)^n, takes the rest of all.
    """
    chosen: list[list[int]] = [[] for _ in range(count)]
    evaluations = 0
    for feature in features:
        for sample in _zeros(feature, count):
            evaluations += 1
            chosen[sample].append(feature)
    winners = [
        min(some or features, key=lambda feature: (_value(feature, sample), feature), default=None)
        for sample, some in enumerate(chosen)
    ]
    return CheapSamples(tuple(winners), evaluations)


def _zeros(feature: int, count: int) -> list[int]:
    """The samples in which the biased bit of a feature is 0: one nibble of a draw for each."""
    found, state = [], mix(feature ^ _WORD)
    nibbles: list[int] = []
    for sample in range(count):
        if not nibbles:
            state = mix(state)
            nibbles = [state >> 4 * at & 15 for at in range(16)]
        if not nibbles.pop():
            found.append(sample)
    return found
