"""Cut points, winnowing and traits in plain Python: the definition that every C variant must equal.

    c = 0;  while n - c > max:  c = the RIGHTMOST i in (c+min, c+max] with the smallest rank(i)
    rank(i) = (lead(i), low(i)), of the last 16 and the last 64 bytes before position i

Winnowing is from Schleimer, Wilkerson, Aiken (2003). Its use for cuts and the lead byte are from Manasse, "On
the Efficient Determination of Most Near Neighbors". rdc/signature/FORMAT.md specifies the format.
"""

from __future__ import annotations

import struct
from array import array
from collections import deque

from rdc.kernel.constants import FEW_FEATURES_BELOW, GOLDEN, LOW_WINDOW, TRAIT_COUNT, mix
from rdc.limits import CHUNK_MAX_LIMIT, CHUNK_MIN_LIMIT, CHUNK_RATIO_LIMIT, WINNOW_MAX_LIMIT
from rdc.rabin import byte_table, power_of_x, reflect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


LEAD_WINDOW = 16
"""Bytes that lead() covers: four doublings of one byte."""

QUIET_BYTES = b"\x00\xff \t\n-=*#"
"""Bytes that real files repeat at length. A constant run of one of them should not look like a cut point."""

LEAD_POLYNOMIAL = 0x1F5
LEAD_CONSTANT = 0xE6
"""Chosen among the 16 primitive polynomials of degree 8 and 256 constants. The pair maximizes the smallest
lead over constant runs of QUIET_BYTES (123), and then the sum of these leads."""

LOW_POLYNOMIAL = 0x1_AAE3_F5FB_0075_F2E7
"""The first primitive polynomial 1 << 64 | h << 1 | 1 for N = 0, 1, ... Here h is the first 8 bytes,
big-endian and without their top bit, of SHA-256("rdc cuts v1 N"). Nothing was chosen by hand."""

TRAIT_MULTIPLIERS = (0xDFDB_F662_66B8_0725, 0xF965_FB12_67BC_8179, 0xC7DC_6D47_F2E2_8AEB)
"""The first 8 bytes, big-endian, of SHA-256("rdc traits v1 N"), N = 0, 1, 2, made odd."""

LEAD_FEW = 4
"""The lead below which windows of a short stream are features (FEW_FEATURES_BELOW)."""

_MASK = (1 << 64) - 1


def trait_mix(x: int) -> int:
    """Return the bijection that reduces a sample to a trait: MurmurHash3's 64-bit finaliser (Appleby)."""
    x = (x ^ x >> 33) * 0xFF51_AFD7_ED55_8CCD & _MASK
    x = (x ^ x >> 33) * 0xC4CE_B9FE_1A85_EC53 & _MASK
    return x ^ x >> 33


def reflected_table(polynomial: int, exponent: int) -> tuple[int, ...]:
    """Return b * x^exponent mod polynomial for every byte b. Bytes and results have the kernel's bit
    order."""
    k = polynomial.bit_length() - 1
    table = byte_table(power_of_x(exponent, polynomial), polynomial)
    return tuple(reflect(table[reflect(byte, 8)], k) for byte in range(256))


_LEAD_CARRY = reflected_table(LEAD_POLYNOMIAL, 8)
_LEAD_LEAVING = reflected_table(LEAD_POLYNOMIAL, 8 * LEAD_WINDOW)
_LOW_CARRY = reflected_table(LOW_POLYNOMIAL, 64)
_LOW_LEAVING = reflected_table(LOW_POLYNOMIAL, 8 * LOW_WINDOW)


class _Minima:
    """Candidates for the smallest rank of every later window. Positions and ranks both increase.

    A rank equal to an earlier one beats it (rightmost tie). So it replaces all larger or equal ranks at the
    tail. Each position enters and leaves once, so the work is linear for any ranks.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: deque[tuple[int, int]] = deque()

    def push(self, position: int, rank: int) -> None:
        entries = self._entries
        while entries and entries[-1][1] >= rank:
            entries.pop()
        entries.append((position, rank))

    def first_after(self, position: int) -> int:
        """Return the position of the smallest rank after `position`, and drop all entries up to
        `position`."""
        entries = self._entries
        while entries[0][0] <= position:
            entries.popleft()
        return entries[0][0]


class _Samples:
    """Twelve min-wise samples of a set of uniformly mixed 64-bit features.

    PRF_t(x) = x * m[t // 4] XOR (t % 4) << 62 is one-to-one. The features are a pseudo-random set, so every
    element of a union has the smallest image with the same probability: P(equal samples) = J. Three
    multipliers give independent orders. Within one order, four traits start from the four quarters of the
    range. They sample disjoint parts of any set that is not tiny (Li's one permutation hashing with four
    bins).
    """

    __slots__ = ("_smallest",)

    def __init__(self) -> None:
        self._smallest: list[int] | None = None

    def add(self, feature: int) -> None:
        images = [(feature * TRAIT_MULTIPLIERS[t // 4] & _MASK) ^ (t % 4) << 62 for t in range(TRAIT_COUNT)]
        if self._smallest is None:
            self._smallest = images
        else:
            self._smallest = list(map(min, self._smallest, images))

    def traits(self) -> bytes:
        """Return six bits per sample, trait t in bits 6t to 6t+5, little-endian; b"" without features."""
        if self._smallest is None:
            return b""
        packed = 0
        for t, sample in enumerate(self._smallest):
            packed |= trait_mix(sample + t * GOLDEN & _MASK) >> 58 << 6 * t
        return packed.to_bytes(6 * TRAIT_COUNT // 8, "little")


class Cutter:
    """Finds cut points and traits of one stream, fed in spans of any length."""

    __slots__ = (
        "_cut",
        "_features",
        "_few",
        "_finished",
        "_last",
        "_lead",
        "_low",
        "_max",
        "_min",
        "_minima",
        "length",
    )

    length: int
    """Bytes fed so far."""

    def __init__(self, min_size: int, max_size: int) -> None:
        """Sizes in bytes; ValueError unless 64 <= min < max <= 32 min and max <= 16 MiB."""
        if not (CHUNK_MIN_LIMIT <= min_size < max_size <= min(CHUNK_RATIO_LIMIT * min_size, CHUNK_MAX_LIMIT)):
            raise ValueError(
                f"chunk sizes {min_size} to {max_size}: need {CHUNK_MIN_LIMIT} <= min < max "
                f"<= {CHUNK_RATIO_LIMIT} min, and max <= {CHUNK_MAX_LIMIT}"
            )
        self._min, self._max = min_size, max_size
        self._last = deque([0] * LOW_WINDOW, maxlen=LOW_WINDOW)
        self._lead = self._low = 0
        self._minima = _Minima()
        self._features, self._few = _Samples(), _Samples()
        self._cut = self.length = 0
        self._finished = False

    def feed(self, span: ReadableBuffer, /) -> list[int]:
        """Return the ends (offsets in the whole stream) of the chunks that this span completes."""
        if self._finished:
            raise ValueError("the stream is finished")
        cuts = []
        for byte in memoryview(span).cast("B"):
            if self.length - self._cut == self._max:  # with this byte, n - c > max
                self._cut = self._minima.first_after(self._cut + self._min)
                cuts.append(self._cut)
            self._take(byte)
        return cuts

    def finish(self) -> list[int]:
        """Return the end of the last chunk, or nothing for an empty stream."""
        if self._finished:
            raise ValueError("the stream is finished")
        self._finished = True
        return [self.length] if self.length else []

    def traits(self) -> bytes:
        """Return nine bytes, twelve samples of 6 bits; b"" without features. ValueError before finish."""
        if not self._finished:
            raise ValueError("traits are known when the stream is finished")
        return (self._few if self.length < FEW_FEATURES_BELOW else self._features).traits()

    def _take(self, byte: int) -> None:
        last, lead, low = self._last, self._lead, self._low
        lead = _LEAD_CARRY[lead] ^ byte ^ _LEAD_LEAVING[last[-LEAD_WINDOW]]
        low = low >> 8 ^ _LOW_CARRY[low & 0xFF] ^ byte << 56 ^ _LOW_LEAVING[last[0]]
        last.append(byte)
        self._lead, self._low = lead, low
        self.length += 1
        first, second = lead ^ LEAD_CONSTANT, mix(low)
        self._minima.push(self.length, first << 64 | second)
        if first == 0:
            self._features.add(second)
        if first < LEAD_FEW and self.length < FEW_FEATURES_BELOW:
            self._few.add(second)


def cut_many(
    data: ReadableBuffer, sizes: ReadableBuffer, min_size: int, max_size: int, plain: bool = False, /
) -> tuple[bytes, bytes, bytes]:
    """Cut streams that lie one after another in `data`. `sizes` has the bytes of each as native 64-bit
    numbers.

    Returns three columns: the number of chunks per stream (native 32 bits), the lengths of the chunks (native
    64 bits), and nine bytes of traits per stream. The traits are zeros for a stream without features. With
    `plain`, no features are sampled and all traits are zeros. ValueError as for Cutter, or if the sizes do
    not add up to `data`. Defined by one Cutter per stream.
    """
    Cutter(min_size, max_size)
    with memoryview(sizes).cast("B") as column, memoryview(data).cast("B") as view:
        if len(column) % 8 or sum(column.cast("Q")) != len(view):
            raise ValueError("the sizes, 8 bytes each, add up to another length than the data's")
        counts, lengths, traits, at = array("I"), array("Q"), [], 0
        for size in column.cast("Q"):
            cutter, start = Cutter(min_size, max_size), 0
            ends = cutter.feed(view[at : at + size]) + cutter.finish()
            for end in ends:
                lengths.append(end - start)
                start = end
            counts.append(len(ends))
            traits.append((not plain and cutter.traits()) or bytes(9))
            at += size
    return counts.tobytes(), lengths.tobytes(), b"".join(traits)


class Winnower:
    """Winnowing over any 64-bit ranks: cuts between the records of a signature level."""

    __slots__ = ("_count", "_cut", "_finished", "_max", "_min", "_minima")

    def __init__(self, min_size: int, max_size: int) -> None:
        """Sizes in records; ValueError unless 1 <= min < max <= 4096."""
        if not 1 <= min_size < max_size <= WINNOW_MAX_LIMIT:
            raise ValueError(
                f"node sizes {min_size} to {max_size}: need 1 <= min < max <= {WINNOW_MAX_LIMIT}"
            )
        self._min, self._max = min_size, max_size
        self._minima = _Minima()
        self._cut = self._count = 0
        self._finished = False

    def feed(self, ranks: ReadableBuffer, /) -> list[int]:
        """Return the ends (record counts in the whole stream) that these packed little-endian ranks
        complete."""
        if self._finished:
            raise ValueError("the stream is finished")
        packed = bytes(ranks)
        if len(packed) % 8:
            raise ValueError(f"{len(packed)} bytes are no whole number of 8-byte ranks")
        cuts = []
        for (rank,) in struct.iter_unpack("<Q", packed):
            if self._count - self._cut == self._max:
                self._cut = self._minima.first_after(self._cut + self._min)
                cuts.append(self._cut)
            self._count += 1
            self._minima.push(self._count, rank)
        return cuts

    def finish(self) -> list[int]:
        """Return the end of the last node, or nothing without records."""
        if self._finished:
            raise ValueError("the stream is finished")
        self._finished = True
        return [self._count] if self._count else []
