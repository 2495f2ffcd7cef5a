"""ShingleSets: the shingles of some documents, read when they are compared."""

from __future__ import annotations

import contextlib
import mmap
import sys
from array import array
from itertools import accumulate, groupby

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.documents.find.corpus import Corpus

__all__ = ["ShingleSets"]

LARGE_PAGES = 4 << 20
"""Bytes that are worth pages of 2 MiB."""


class ShingleSets:
    """Where the shingles of documents lie, by their position among the documents given."""

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
        """Bytes of the shingles of these documents."""
        return sum([self._ends[at] for at in positions]) - sum([self._starts[at] for at in positions])

    def values(self, positions: Sequence[int]) -> memoryview:
        """The shingles of these documents: u32, native, one set after another. It may be written to."""
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
        """Where each set begins in values(), and where the last one ends: typecode 'q'."""
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
