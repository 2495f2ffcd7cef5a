"""What the kernel computes, in plain Python: this file defines the truth, the C forms are fast.

    c = 0;  while n - c > max:  c = the RIGHTMOST i in (c+min, c+max] with the smallest rank(i)
    rank(i) = (lead(i), low(i)), of the last 16 and the last 64 bytes before position i

Winnowing is from Schleimer, Wilkerson, Aiken (2003), its use for cuts and the lead byte from Manasse, "On the
Efficient Determination of Most Near Neighbors". rdc/signature/FORMAT.md has the format in words.
"""

from __future__ import annotations

import struct
from array import array
from collections import deque

from rdc.kernel.constants import (
    FEW_FEATURES_BELOW,
    GOLDEN,
    LEAD_CONSTANT,
    LEAD_FEW,
    LEAD_POLYNOMIAL,
    LEAD_WINDOW,
    LOW_POLYNOMIAL,
    LOW_WINDOW,
    TRAIT_COUNT,
    TRAIT_MULTIPLIERS,
    mix,
    reflected_table,
    trait_mix,
)
from rdc.kernel.pure_blocks import block_fingerprints, match_blocks, match_runs
from rdc.kernel.pure_chosen_rows import put_rows, take_rows
from rdc.kernel.pure_code_blanks import (
    bit_counts,
    blank_targets,
    hide,
    put_targets,
    take_targets,
    target_bits,
)
from rdc.kernel.pure_code_targets import absolute_targets, relative_targets
from rdc.kernel.pure_manifest_nodes import node_columns, node_names
from rdc.kernel.pure_root_messages import root_messages
from rdc.kernel.pure_row_paths import row_paths
from rdc.kernel.pure_similarity import TraitIndex, TraitPairs
from rdc.kernel.pure_siphash import siphash
from rdc.kernel.pure_varints import pack_varints, unpack_varints
from rdc.kernel.pure_word_differences import difference_words, nonzero_bytes, sum_words
from rdc.limits import CHUNK_MAX_LIMIT, CHUNK_MIN_LIMIT, CHUNK_RATIO_LIMIT, WINNOW_MAX_LIMIT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = [
    "Cutter",
    "TraitIndex",
    "TraitPairs",
    "Winnower",
    "absolute_targets",
    "bit_counts",
    "blank_targets",
    "block_fingerprints",
    "cut_many",
    "difference_words",
    "equal_rows",
    "kernel_name",
    "match_blocks",
    "match_runs",
    "name_ranks",
    "node_columns",
    "node_names",
    "nonzero_bytes",
    "hide",
    "pack_varints",
    "put_rows",
    "put_targets",
    "relative_targets",
    "root_messages",
    "row_paths",
    "short_references",
    "sum_words",
    "take_rows",
    "take_targets",
    "target_bits",
    "unpack_varints",
]

_MASK = (1 << 64) - 1

_LEAD_CARRY = reflected_table(LEAD_POLYNOMIAL, 8)
_LEAD_LEAVING = reflected_table(LEAD_POLYNOMIAL, 8 * LEAD_WINDOW)
_LOW_CARRY = reflected_table(LOW_POLYNOMIAL, 64)
_LOW_LEAVING = reflected_table(LOW_POLYNOMIAL, 8 * LOW_WINDOW)


def kernel_name() -> str:
    """The name of this form."""
    return "pure"


class _Minima:
    """Candidates for the smallest rank of every window still to come: positions and ranks both increase.

    A rank as small as an earlier one beats it (rightmost tie), so it replaces all at the tail that are larger
    or equal. Each position enters and leaves once: the work is linear whatever the ranks.
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
        """The position of the smallest rank after `position`; forgets all up to there."""
        entries = self._entries
        while entries[0][0] <= position:
            entries.popleft()
        return entries[0][0]


class _Samples:
    """Twelve min-wise samples of a set of 64-bit features that are uniformly mixed already.

    PRF_t(x) = x * m[t // 4] XOR (t % 4) << 62 is one-to-one, and the features are a pseudo-random set, so
    every element of a union is its smallest image with the same probability: P(equal samples) = J. Three
    multipliers give independent orders; within one, four traits start from the four quarters of the range,
    and so sample disjoint parts of any set that is not tiny (Li's one permutation, with four bins).
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
        """Six bits of each sample, trait t in bits 6t to 6t+5, little-endian; b"" without features."""
        if self._smallest is None:
            return b""
        packed = 0
        for t, sample in enumerate(self._smallest):
            packed |= trait_mix(sample + t * GOLDEN & _MASK) >> 58 << 6 * t
        return packed.to_bytes(6 * TRAIT_COUNT // 8, "little")


class Cutter:
    """Cut points and traits of one stream, fed in spans of any length."""

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
        """Sizes in bytes; ValueError unless 64 <= min < max <= 8 min and max <= 16 MiB."""
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
        """Ends (offsets in the whole stream) of the chunks that this span decides."""
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
        """The end of the last chunk, or nothing for an empty stream."""
        if self._finished:
            raise ValueError("the stream is finished")
        self._finished = True
        return [self.length] if self.length else []

    def traits(self) -> bytes:
        """Nine bytes, twelve samples of 6 bits; b"" without features. ValueError before finish."""
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
    """Cuts streams that lie one behind another in `data`; `sizes`: bytes of each, native 64-bit numbers.

    Returns three columns: native 32-bit numbers of chunks a stream, native 64-bit lengths of the chunks, and
    nine bytes of traits a stream, zeros where it has no feature, and for all with `plain`, which looks for
    none. ValueError as for Cutter, and where the sizes do not add up to `data`.
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
    """The same winnowing over any 64-bit ranks: cuts between the records of a signature level."""

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
        """Ends (record counts in the whole stream) that these ranks, packed little-endian, decide."""
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
        """The end of the last node, or nothing when there were no records."""
        if self._finished:
            raise ValueError("the stream is finished")
        self._finished = True
        return [self._count] if self._count else []


def short_references(key: bytes, records: ReadableBuffer, stride: int, width: int) -> bytes:
    """Keyed short names of digests: the first `width` bytes of SipHash-2-4 of each record's first 32, packed.

    `key` has 16 bytes, `records` is a whole number of `stride` >= 32 bytes, `width` is 1 to 8; or ValueError.
    """
    packed = bytes(records)
    if len(key) != 16 or stride < 32 or not 1 <= width <= 8 or len(packed) % stride:
        raise ValueError(
            f"short references: a key of 16 bytes (found {len(key)}), a width of 1 to 8 ({width}), "
            f"records of >= 32 bytes ({stride}) without a rest ({len(packed)} bytes)"
        )
    return b"".join(
        siphash(key, packed[at : at + 32]).to_bytes(8, "little")[:width]
        for at in range(0, len(packed), stride)
    )


def name_ranks(key: ReadableBuffer, names: ReadableBuffer, /) -> bytes:
    """The SipHash-2-4 under `key` of each name in `names`, packed as little-endian 64-bit numbers.

    `key` has 16 bytes, and each name is followed by NUL, which is not hashed; or ValueError. Where nobody
    else knows the key, nobody can choose names with ranks of his liking.
    """
    secret, blob = bytes(key), bytes(names)
    if len(secret) != 16 or (blob and not blob.endswith(b"\0")):
        raise ValueError(
            f"name ranks: a key of 16 bytes (found {len(secret)}), "
            f"names each followed by NUL ({len(blob)} bytes)"
        )
    return b"".join(siphash(secret, name).to_bytes(8, "little") for name in blob.split(b"\0")[:-1])


def equal_rows(column: ReadableBuffer, width: int, /) -> tuple[bytes, bytes]:
    """Which rows of `column`, `width` bytes each, hold values that occur more than once.

    Two columns of little-endian 32-bit numbers: those rows, ordered by value (as bytes compare), then by row;
    and how many rows each of these values has. ValueError for a column with a rest, or too many rows.
    """
    packed = bytes(column)
    if width < 1 or len(packed) % width or len(packed) // width >= 1 << 32:
        raise ValueError(
            f"equal rows: a column of at most 2^32 - 1 rows of {width} bytes (found {len(packed)} bytes)"
        )
    places: dict[bytes, list[int]] = {}
    for row in range(len(packed) // width):
        places.setdefault(packed[row * width : row * width + width], []).append(row)
    groups = [rows for _, rows in sorted(places.items()) if len(rows) > 1]
    return (
        b"".join(row.to_bytes(4, "little") for rows in groups for row in rows),
        b"".join(len(rows).to_bytes(4, "little") for rows in groups),
    )
