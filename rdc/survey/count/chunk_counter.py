"""The counts of the chunks of one level: exact while they fit in memory, with 95 % bounds
beyond, and how far zstd would shrink them.
"""

from __future__ import annotations

import math
from array import array
from functools import cached_property

from rdc.kernel import ChunkTable, select_chunks
from rdc.lean.records import Record
from rdc.model.scan import Bin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from typing_extensions import Buffer
    from zstandard import ZstdCompressor


# ChunkCounter: counts the chunks of one level, exactly while they fit in memory, with 95 % bounds beyond.

Z95 = 1.959964
"""Two-sided 95 % quantile of the normal distribution. The sum over a sample of thousands is nearly normal."""

STRATA = (1 << 16, 1 << 20, 1 << 24)
"""Upper ends in bytes of the strata of the file level. In one stratum, a large file weighs at most as much as
16 small ones, so sampling costs little precision; SURVEY.md has the variance."""


class Figures(Record):
    """Counts of a ChunkCounter: exact, or estimates from a sample."""

    chunks: int
    bytes: int
    unique_chunks: int
    unique_bytes: int
    deviation: float
    """Standard deviation of unique_bytes; 0 if it is exact."""
    exact: bool
    groups: int
    """Unique chunks that occur at least twice and are not empty."""
    sizes: tuple[Bin, ...]
    copies: tuple[Bin, ...]

    @property
    def low(self) -> int:
        return max(0, math.floor(self.unique_bytes - Z95 * self.deviation))

    @property
    def high(self) -> int:
        """Upper 95 % bound; at most all bytes."""
        return max(self.unique_bytes, min(self.bytes, math.ceil(self.unique_bytes + Z95 * self.deviation)))


class ChunkCounter:
    """Counts the chunks of one level by 64-bit keys and sizes. `strata` splits them by size."""

    def __init__(self, memory: int, strata: tuple[int, ...] = ()) -> None:
        """`memory`: bytes that all tables together may take. A table that reaches its share samples half as
        many keys."""
        self._ends = strata
        self.tables = tuple(ChunkTable(memory // (len(strata) + 1)) for _ in range(len(strata) + 1))
        self._unseen = [(0, 0)] * len(self.tables)

    def add(self, keys: bytes, sizes: bytes, counts: bytes | None = None) -> None:
        """Add columns of native 64-bit numbers, as rdc.kernel takes them."""
        if not self._ends:
            table = self.tables[0]
            if counts is None:
                table.add(keys, sizes)
            else:
                table.add(keys, sizes, counts)
            return
        if counts is None and len(sizes) and max(memoryview(sizes).cast("Q")) < self._ends[0]:
            self.tables[0].add(keys, sizes)  # in most trees all files are small
            return
        times = array("Q", [1]) * (len(keys) // 8) if counts is None else array("Q", counts)
        for key, size, count in zip(array("Q", keys), array("Q", sizes), times, strict=True):
            number = sum(size >= end for end in self._ends)
            self.tables[number].add(array("Q", [key]), array("Q", [size]), array("Q", [count]))

    def add_unseen(self, number: int, chunks: int, total: int) -> None:
        """Count chunks of table `number` that the sample of another counter left out. Only their sums are
        known. `total` is what the rows of that sample lack of all bytes. It is negative if they have more,
        each with the most bytes of any copy."""
        before = self._unseen[number]
        self._unseen[number] = (before[0] + chunks, before[1] + total)

    def totals(self, number: int) -> tuple[int, int]:
        """Return the number and bytes of the chunks that were added to table `number`."""
        unseen, table = self._unseen[number], self.tables[number]
        return table.chunks + unseen[0], table.bytes + unseen[1]

    @property
    def chunks(self) -> int:
        return sum(self.totals(number)[0] for number in range(len(self.tables)))

    @property
    def total_bytes(self) -> int:
        return sum(self.totals(number)[1] for number in range(len(self.tables)))

    @property
    def memory(self) -> int:
        return sum(table.memory for table in self.tables)

    def figures(self) -> Figures:
        """Estimate by Horvitz and Thompson. Each unique chunk of a table is sampled with probability p =
        2^-shift. So the sum of the sampled sizes / p is all unique bytes on average, with variance
        sum(size^2) (1 - p) / p^2 over the sample."""
        unique_chunks = unique_bytes = groups = 0
        variance = 0.0
        sizes, copies = _Histogram(), _Histogram()
        for table in self.tables:
            weight = 1 << table.shift
            sampled, sampled_bytes, squares, twice, _, largest, most, by_size, by_copies = table.summary()
            unique_chunks += sampled * weight
            unique_bytes += sampled_bytes * weight
            groups += twice * weight
            variance += squares * (weight * weight - weight)
            sizes.add(by_size, largest, weight)
            copies.add(by_copies, most, weight)
        exact = all(table.shift == 0 for table in self.tables)
        total = self.total_bytes
        return Figures(
            chunks=self.chunks,
            bytes=total,
            unique_chunks=min(unique_chunks, self.chunks),
            unique_bytes=min(unique_bytes, total),
            deviation=math.sqrt(variance),
            exact=exact,
            groups=groups,
            sizes=sizes.bins(),
            copies=copies.bins(),
        )

    def entries(self, number: int) -> Iterator[tuple[bytes, bytes, bytes]]:
        """Yield the keys, sizes and counts of one table's chunks, sorted by key, some thousands at a time."""
        position = 0
        while True:
            keys, sizes, counts, position = self.tables[number].entries(position, 65_536)
            if not keys:
                return
            yield keys, sizes, counts


class _Histogram:
    """Bins by the bit length of a measure, summed over tables."""

    def __init__(self) -> None:
        self._bins: dict[int, tuple[int, int]] = {}
        self._largest = 0

    def add(self, bins: list[tuple[int, int, int]], largest: int, weight: int) -> None:
        self._largest = max(self._largest, largest)
        for bits, chunks, size in bins:
            before = self._bins.get(bits, (0, 0))
            self._bins[bits] = (before[0] + chunks * weight, before[1] + size * weight)

    def bins(self) -> tuple[Bin, ...]:
        return tuple(
            Bin(min((1 << bits) - 1, self._largest), *self._bins[bits]) for bits in sorted(self._bins)
        )


# CompressionSample: estimates how far zstd would shrink unique chunks, from a random thousand of them.

SAMPLE_CHUNKS = 1024
"""Most chunks in the sample; at least half as many are used if there are enough. zstd shrinks chunks by very
different factors; a thousand chunks give the mean to about one per cent."""

SAMPLE_BYTES = 16 << 20
"""Bytes above which fewer chunks are sampled, though not fewer than a quarter. zstd takes 50 ms for them."""


def sample_size(mean: int) -> int:
    """Return the number of chunks sampled if they have `mean` bytes on average."""
    return max(SAMPLE_CHUNKS // 4, min(SAMPLE_CHUNKS, SAMPLE_BYTES // mean))


ZSTD_LEVEL = 3
"""The default of zstd and of stores that deduplicate."""

SALT = 0x7A73_7464_0000_0001
"""Makes this selection independent of the sample of the tables."""


class CompressedFigures(Record):
    bytes: int
    low: int
    high: int
    """95 % bounds."""


def expected_shift(total: int, mean: int) -> int:
    """Return the shift at which one chunk in 2^shift gives about sample_size(mean) of the chunks of `total`
    bytes."""
    return max(0, (total // mean // sample_size(mean)).bit_length() - 1)


class CompressionSample:
    """A sample of the unique chunks of one level. Keys decide: it is the same in whatever order chunks come.

    The sample is halved whenever it grows beyond its limit. Holes are no content: of what the files of one
    content have at a key, the copy with the most bytes counts, and of several such the one that shrinks less.
    """

    def __init__(self, shift: int = 0, most: int = SAMPLE_CHUNKS) -> None:
        """`most`: the largest number of chunks in the sample."""
        self.shift = shift
        self._most = most
        self.sizes: dict[int, tuple[int, int]] = {}
        """By key: bytes before and after zstd."""

    def selected(self, keys: bytes) -> list[int]:
        """Return the rows of the chunks that belong to the sample."""
        return array("Q", select_chunks(keys, SALT, self.shift)).tolist()

    def wanted(self, keys: bytes) -> list[int]:
        """Return the rows of the chunks whose content `take` needs, if content has no holes."""
        rows = self.selected(keys)
        if not rows:
            return rows
        column = memoryview(keys).cast("Q")
        return [row for row in rows if column[row] not in self.sizes]

    def has(self, key: int, size: int) -> bool:
        """Return whether `size` bytes of a chunk, or more, are in the sample."""
        known = self.sizes.get(key)
        return known is not None and known[0] >= size

    def take(self, key: int, content: Buffer) -> None:
        """Compress a chunk that was selected, unless the sample was halved meanwhile and excludes
        it."""
        if not select_chunks(array("Q", [key]), SALT, self.shift):
            return
        with memoryview(content) as view:
            compressed = len(self._compressor.compress(view))
            # A store keeps a chunk as it is if it does not shrink.
            self.put_many([(key, view.nbytes, min(compressed, view.nbytes))])

    @cached_property
    def _compressor(self) -> ZstdCompressor:
        # Cached: making a compressor costs as much as compressing a small chunk.
        import zstandard

        return zstandard.ZstdCompressor(level=ZSTD_LEVEL)

    def put_many(self, rows: Iterable[tuple[int, int, int]]) -> None:
        """Add chunks that were selected: key, bytes before and after zstd."""
        for key, before, after in rows:
            self.sizes[key] = max(self.sizes.get(key, (0, 0)), (before, after))
        # Only now: a halving between two rows would not see the later ones.
        while len(self.sizes) > self._most and self.shift < 63:
            self.thin(self.shift + 1)

    def thin(self, shift: int) -> None:
        """Reduce the sample to one chunk in 2^shift."""
        if shift <= self.shift:
            return
        self.shift = shift
        keys = list(self.sizes)
        selected = array("Q", select_chunks(array("Q", keys), SALT, shift))
        self.sizes = {keys[row]: self.sizes[keys[row]] for row in selected}

    def thinned(self, shift: int) -> CompressionSample:
        """Return a copy of one chunk in 2^shift."""
        copy = CompressionSample(self.shift, self._most)
        copy.sizes = dict(self.sizes)
        copy.thin(shift)
        return copy

    def figures(self, unique: Figures) -> CompressedFigures | None:
        """Return the ratio estimator R = sum(compressed) / sum(size), multiplied by the unique bytes.

        Var(R) = (1 - f) / n * sum((c - R s)^2) / (n - 1) / mean(s)^2, where f is the share of the unique
        bytes that was compressed. If the unique bytes are an estimate, their relative variance is added. None
        if the sample is empty. Source: W. G. Cochran, Sampling Techniques, 1977, section 6.4.
        """
        pairs = list(self.sizes.values())
        size = sum(pair[0] for pair in pairs)
        if not size or not unique.unique_bytes:
            return None if unique.unique_bytes else CompressedFigures(0, 0, 0)
        ratio = sum(pair[1] for pair in pairs) / size
        number, mean = len(pairs), size / len(pairs)
        left = max(0.0, 1 - size / unique.unique_bytes)
        if number > 1:
            spread = sum((after - ratio * before) ** 2 for before, after in pairs) / (number - 1)
            variance = left * spread / number / mean**2
        else:
            variance = left
        relative = unique.deviation / unique.unique_bytes
        deviation = unique.unique_bytes * math.sqrt(variance + (ratio * relative) ** 2)
        estimate = round(unique.unique_bytes * ratio)
        return CompressedFigures(
            estimate,
            max(0, math.floor(estimate - Z95 * deviation)),
            min(unique.high, math.ceil(estimate + Z95 * deviation)),
        )
