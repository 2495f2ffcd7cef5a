"""ChunkCounter: counts the chunks of one level, exactly while they fit in memory, with 95 % bounds beyond."""

from __future__ import annotations

import math
from array import array

from rdc.kernel import ChunkTable
from rdc.lean.records import dataclass
from rdc.model.scan import Bin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Figures", "ChunkCounter"]

Z95 = 1.959964
"""Two-sided 95 % quantile of the normal distribution. The sum over a sample of thousands is nearly normal."""

STRATA = (1 << 16, 1 << 20, 1 << 24)
"""Upper ends in bytes of the strata of the file level. In one stratum, a large file weighs at most as much as
16 small ones, so sampling costs little precision; SURVEY.md has the variance."""


@dataclass(frozen=True, slots=True)
class Figures:
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
        """Adds columns of native 64-bit numbers, as rdc.kernel takes them."""
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
        """Counts chunks of table `number` that the sample of another counter left out. Only their sums are
        known. `total` is what the rows of that sample lack of all bytes. It is negative if they have more,
        each with the most bytes of any copy."""
        before = self._unseen[number]
        self._unseen[number] = (before[0] + chunks, before[1] + total)

    def totals(self, number: int) -> tuple[int, int]:
        """Number and bytes of the chunks that were added to table `number`."""
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
        """Estimates by Horvitz and Thompson. Each unique chunk of a table is sampled with probability p =
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
        """Keys, sizes and counts of one table's chunks, sorted by key, some thousands at a time."""
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
