"""ShingleSets: the shingles of some documents, read when they are compared."""

from __future__ import annotations

import sys
from array import array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.documents.find.corpus import Corpus
    from rdc.documents.parts.part_file import Block

__all__ = ["ShingleSets"]


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

    def values(self, positions: Sequence[int]) -> bytearray:
        """The shingles of these documents: u32, native, one set after another."""
        found = bytearray()
        block, start, end = None, 0, 0
        for at in positions:
            # Adjacent rows are read with one call.
            if self._blocks[at] is block and self._starts[at] == end:
                end = self._ends[at]
                continue
            if block is not None:
                found += self._corpus.shingles(block, start, end)
            block, start, end = self._blocks[at], self._starts[at], self._ends[at]
        if block is not None:
            found += self._corpus.shingles(block, start, end)
        if sys.byteorder == "big":
            column = array("I", bytes(found))
            column.byteswap()
            return bytearray(column)
        return found

    def offsets(self, positions: Sequence[int]) -> array[int]:
        """Where each set begins in values(), and where the last one ends: typecode 'q'."""
        offsets, end = array("q", [0]), 0
        for at in positions:
            end += self._ends[at] - self._starts[at]
            offsets.append(end)
        return offsets
