"""The exact resemblance of pairs of documents, by their shingles."""

from __future__ import annotations

import contextlib
import mmap
import sys
from array import array
from functools import partial
from itertools import accumulate, groupby

from rdc.kernel import ranked_numbers, set_resemblances
from rdc.lean.records import Record
from rdc.limits import OVERLAP_BYTES
from rdc.survey.read import ALONE, in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rdc.documents.find.corpus import Corpus


# ShingleSets: the shingles of some documents, read when they are compared.

LARGE_PAGES = 4 << 20
"""Bytes that are worth pages of 2 MiB."""


class ShingleSets:
    """The shingles of documents in their parts, by position among the documents given."""

    def __init__(self, corpus: Corpus, documents: Sequence[int]) -> None:
        """`documents`: numbers of the corpus, increasing."""
        self._corpus = corpus
        self._parts = array("I")
        self._starts = array("Q")
        """Bytes of the part before the shingles of each document."""
        self._ends = array("Q")
        for run, rows in corpus.spans(documents):
            before = run.block.start + run.block.layout.sets
            bounds = corpus.shingle_bounds(run)
            self._parts.extend([run.block.part] * len(rows))
            self._starts.extend([before + 4 * bounds[row - run.first] for row in rows])
            self._ends.extend([before + 4 * bounds[row - run.first + 1] for row in rows])

    def size(self, positions: Sequence[int]) -> int:
        """Return the bytes of the shingles of these documents."""
        return sum([self._ends[at] for at in positions]) - sum([self._starts[at] for at in positions])

    def values(self, positions: Sequence[int]) -> memoryview:
        """Return the shingles of these documents: u32, native, one set after another. It may be written
        to."""
        room = _large_pages(self.size(positions))
        filled = 0
        for part, group in groupby(positions, self._parts.__getitem__):
            ranges, size, end = array("Q"), 0, -1
            for at in group:
                start, before = self._starts[at], end
                end = self._ends[at]
                size += end - start
                # Adjacent rows are one range.
                if start == before:
                    ranges[-1] += end - start
                else:
                    ranges.extend((start, end - start))
            self._corpus.read_ranges(part, ranges, room[filled : filled + size])
            filled += size
        if sys.byteorder == "big":
            column = array("I", room)
            column.byteswap()
            return memoryview(column)
        return room

    def offsets(self, positions: Sequence[int]) -> array[int]:
        """Return where each set begins in values(), and where the last one ends: typecode 'q'."""
        starts, ends = self._starts, self._ends
        return array("q", accumulate([(ends[at] - starts[at]) // 4 for at in positions], initial=0))


def _large_pages(size: int) -> memoryview:
    """Zeros to write to. Pages of 4 KiB cost a tenth of the time of a search."""
    if size < LARGE_PAGES:
        return memoryview(bytearray(size))
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    memory = mmap.mmap(-1, size, flags=flags)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with contextlib.suppress(OSError):  # a kernel without them
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memoryview(memory)


# The exact resemblance of candidate pairs: their shingles are compared, in threads where they are many.

_SLICE = 1 << 16
"""Pairs whose documents are looked up together."""


class Compared(Record):
    """Some candidate pairs."""

    pairs: array[int]
    """Pairs of a batch of WaitingPairs, in its order."""
    resemblances: array[float]
    """The Jaccard resemblance of each: the shingles that both have, divided by those that either has. It is 0
    for pairs below the threshold."""


def compared_pairs(
    corpus: Corpus, compared: array[int], batches: Iterable[array[int]], threshold: float, workers: int
) -> Iterator[Compared]:
    """Compare all pairs of the batches of WaitingPairs, in their order."""
    return in_order(
        partial(_compare, threshold=threshold), _comparisons(corpus, compared, batches, workers), workers
    )


class _Ranked(Record):
    """Numbers as positions among the different ones of them. Typecode 'I'."""

    different: array[int]
    """In order."""
    ranks: array[int]

    @classmethod
    def of(cls, numbers: array[int]) -> _Ranked:
        """Rank `numbers`, of any typecode, taken as numbers of 32 bits."""
        different, ranks = ranked_numbers(numbers)
        return cls(array("I", different), array("I", ranks))


class _Comparison(Record):
    """Pairs whose shingles are in memory together."""

    sets: ShingleSets
    pairs: array[int]
    numbers: _Ranked
    """The positions in `sets`, two a pair."""


def _compare(comparison: _Comparison, threshold: float) -> Compared:
    """Threads may call it in parallel."""
    sets, numbers = comparison.sets, comparison.numbers
    values, offsets = sets.values(numbers.different), sets.offsets(numbers.different)
    found = array("d", set_resemblances(values, offsets, numbers.ranks, threshold))
    return Compared(comparison.pairs, found)


def _comparisons(
    corpus: Corpus, compared: array[int], batches: Iterable[array[int]], workers: int
) -> Iterator[_Comparison]:
    """Yield the pairs of all batches, divided so that the shingles of those in progress take
    OVERLAP_BYTES."""
    count = 0
    for batch in batches:
        for at in range(0, len(batch), _SLICE):
            pairs = array("Q", batch[at : at + _SLICE])
            # Halves of the same pair lie side by side, in either order.
            ranked = _Ranked.of(pairs)
            sets = ShingleSets(corpus, array("I", map(compared.__getitem__, ranked.different)))
            waiting = [(pairs, ranked.ranks)]
            while waiting:
                pairs, numbers = waiting.pop()
                ranked = _Ranked.of(numbers)
                # The first ones run alone.
                most = OVERLAP_BYTES if count < ALONE else OVERLAP_BYTES // workers
                if len(pairs) > 1 and sets.size(ranked.different) > most:
                    half = len(pairs) // 2
                    waiting += [(pairs[half:], numbers[2 * half :]), (pairs[:half], numbers[: 2 * half])]
                    continue
                yield _Comparison(sets, pairs, ranked)
                count += 1
