"""ShingleSets: the shingles of some documents, read when they are compared."""

from __future__ import annotations

import contextlib
import mmap
import sys
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.documents.find.corpus import Corpus
    from rdc.documents.parts.part_file import Block

__all__ = ["ShingleSets"]

LARGE_PAGES = 4 << 20
"""Bytes that are worth pages of 2 MiB."""


class ShingleSets:
    """Where the shingles of documents lie, by their position among the documents given."""

    def __init__(self, corpus: Corpus, documents: Sequence[int]) -> None:
        """`documents`: numbers of the corpus, increasing."""
        self._corpus = corpus
        self._blocks: list[Block] = []
        self._starts = array("Q")
        self._ends = array("Q")
        for run, rows in corpus.spans(documents):
            bounds = corpus.shingle_bounds(run)
            self._blocks += [run.block] * len(rows)
            self._starts.extend([bounds[row - run.first] for row in rows])
            self._ends.extend([bounds[row - run.first + 1] for row in rows])

    def size(self, positions: Sequence[int]) -> int:
        """Bytes of the shingles of these documents."""
        return 4 * (sum([self._ends[at] for at in positions]) - sum([self._starts[at] for at in positions]))

    def values(self, positions: Sequence[int]) -> memoryview:
        """The shingles of these documents: u32, native, one set after another. It may be written to."""
        room, filled = _large_pages(self.size(positions)), 0
        starts, ends, blocks = self._starts, self._ends, self._blocks
        block, start, end = None, 0, 0
        # Adjacent rows are read with one call.
        for at in positions:
            if blocks[at] is not block or starts[at] != end:
                filled = self._read(block, start, end, room, filled)
                block, start = blocks[at], starts[at]
            end = ends[at]
        self._read(block, start, end, room, filled)
        if sys.byteorder == "big":
            column = array("I", room)
            column.byteswap()
            return memoryview(column)
        return room

    def _read(self, block: Block | None, start: int, end: int, room: memoryview, filled: int) -> int:
        """Reads some shingles of a block behind those that are there. Returns how many bytes then are."""
        size = 4 * (end - start)
        if block is not None and size:
            self._corpus.read_shingles(block, start, room[filled : filled + size])
        return filled + size

    def offsets(self, positions: Sequence[int]) -> array[int]:
        """Where each set begins in values(), and where the last one ends: typecode 'q'."""
        offsets, end = array("q", [0]), 0
        for at in positions:
            end += self._ends[at] - self._starts[at]
            offsets.append(end)
        return offsets


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
