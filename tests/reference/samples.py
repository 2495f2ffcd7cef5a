"""Min-wise samples in plain Python: the definition for samples.c and its vector forms.

A set is a run of 64-bit features. Features are hashes already; `rank` spreads them once more by one product:

    rank(x) = (x ^ x >> 32 ^ key) * factor        modulo 2^64, factor odd
    own(j, x) = (rank(x) >> 32) * factors[j]      modulo 2^32, factors[j] odd: function j of the family

A column of sets is two buffers, as in Arrow's layout: all features one after another (u64), and offsets
(i64), one more than there are sets. Set s has the features from offsets[s] to offsets[s + 1]. A sample has
32 bits.
"""

from __future__ import annotations

from array import array

from rdc.kernel.constants import mix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer

__all__ = [
    "COUNT_LIMIT",
    "EMPTY",
    "minimum_samples",
    "partition_samples",
    "sample_matches",
]

EMPTY = (1 << 32) - 1
"""The sample of no feature at all."""

COUNT_LIMIT = 1 << 16
"""Samples a set, at most."""

ROW_BLOCK = 8
"""Packed sets stand side by side in blocks of this many, so that vectors compare them at once."""

_WORD = (1 << 64) - 1
_HALF = (1 << 32) - 1
_TAG = 1 << 31


class Family:
    """The functions that a seed stands for."""

    def __init__(self, seed: int, count: int) -> None:
        self.key = mix(seed)
        self.factor = mix(seed ^ self.key) | 1
        self.factors = [mix((self.factor + j) & _WORD) >> 32 | 1 for j in range(count)]

    def rank(self, feature: int) -> int:
        return (feature ^ feature >> 32 ^ self.key) * self.factor & _WORD


def minimum_samples(features: ReadableBuffer, offsets: ReadableBuffer, count: int, seed: int, /) -> bytes:
    """Returns `count` samples a set: sample j is the smallest value of function j over the set's features.

    All samples of an empty set are EMPTY. The result is u32, `count` a set. ValueError for a `count`
    outside 1 to COUNT_LIMIT, for buffers that are no whole numbers, and for offsets that decrease or exceed
    the features.
    """
    check_count(count)
    family = Family(seed, count)
    samples = array("I")
    for column in _sets(features, offsets):
        high = [family.rank(feature) >> 32 for feature in column]
        samples.extend(min([h * factor & _HALF for h in high], default=EMPTY) for factor in family.factors)
    return samples.tobytes()


def partition_samples(
    features: ReadableBuffer, offsets: ReadableBuffer, count: int, seed: int, fill: bool, /
) -> bytes:
    """Returns `count` samples a set by one permutation (Li, Owen, Zhang 2012).

    rank(x) * count is a number of 64 + log2(count) bits. Its part above 2^64 is the feature's bin, and the
    31 bits below that are its value. Sample j is the smallest value in bin j. An empty bin has the sample
    EMPTY; with `fill` it gets 2^31 + (the smallest of own(j, x) >> 1 over all features x). The bit 2^31
    keeps it apart from a value of bin j, so both sets have to lack features in bin j for an agreement.
    Errors as for minimum_samples().
    """
    check_count(count)
    family = Family(seed, count)
    samples = array("I")
    for column in _sets(features, offsets):
        ranks = [family.rank(feature) for feature in column]
        bins = [EMPTY] * count
        for rank in ranks:
            where, rest = divmod(rank * count, 1 << 64)
            bins[where] = min(bins[where], rest >> 33)
        if fill and ranks:
            for j, factor in enumerate(family.factors):
                if bins[j] == EMPTY:
                    bins[j] = _TAG | min((rank >> 32) * factor & _HALF for rank in ranks) >> 1
        samples.extend(bins)
    return samples.tobytes()


def sample_matches(
    queries: ReadableBuffer, row: int, packed: ReadableBuffer, sets: int, count: int, bits: int, /
) -> bytes:
    """Returns for each of `sets` packed sets how many samples agree with those of set `row` of `queries`,
    u32.

    Both buffers are packed as rdc.similarity.PackedSamples has it, with the same `count` and `bits`.
    ValueError if a buffer has no whole block or is shorter than `row` or `sets` demand.
    """
    check_count(count)
    words = -(-count // 64)
    stride = words * bits * ROW_BLOCK
    one, many = (array("Q", bytes(memoryview(buffer).cast("B"))) for buffer in (queries, packed))
    if len(one) % stride or len(many) % stride:
        raise ValueError(f"packed samples: whole blocks of {8 * stride} bytes are expected")
    if not 0 <= row < len(one) // stride * ROW_BLOCK or not 0 <= sets <= len(many) // stride * ROW_BLOCK:
        raise ValueError(f"row {row} and {sets} sets: the packed samples have fewer")
    found = array("I")
    for other in range(sets):
        differ = 0
        for word in range(words):
            differing = 0
            for plane in range(bits):
                mine = one[row // ROW_BLOCK * stride + (word * bits + plane) * ROW_BLOCK + row % ROW_BLOCK]
                others = many[
                    other // ROW_BLOCK * stride + (word * bits + plane) * ROW_BLOCK + other % ROW_BLOCK
                ]
                differing |= mine ^ others
            differ += differing.bit_count()
        found.append(count - differ)
    return found.tobytes()


def check_count(count: int) -> None:
    if not 1 <= count <= COUNT_LIMIT:
        raise ValueError(f"{count} samples a set: 1 to {COUNT_LIMIT} are expected")


def _sets(features: ReadableBuffer, offsets: ReadableBuffer) -> Iterator[array[int]]:
    """Yields the features of each set."""
    column = numbers("Q", features, "features")
    for first, stop in spans_of(column, offsets):
        yield column[first:stop]


def spans_of(column: array[int], offsets: ReadableBuffer) -> Iterator[tuple[int, int]]:
    """Yields where each set begins and ends in its column."""
    bounds = numbers("q", offsets, "offsets")
    if not bounds or bounds[0] < 0 or bounds[-1] > len(column):
        raise ValueError(f"offsets: one more than sets, from 0 to at most {len(column)}, are expected")
    for i in range(1, len(bounds)):
        if bounds[i] < bounds[i - 1]:
            raise ValueError(f"offsets: {bounds[i]} follows {bounds[i - 1]}; they must not decrease")
    for i in range(1, len(bounds)):
        yield bounds[i - 1], bounds[i]


def numbers(typecode: str, buffer: ReadableBuffer, name: str) -> array[int]:
    content = bytes(memoryview(buffer).cast("B"))
    if len(content) % 8:
        raise ValueError(f"{name}: {len(content)} bytes are no whole 64-bit numbers")
    return array(typecode, content)
