"""Counts the chunks of files that were signed in a batch."""

from __future__ import annotations

from array import array
from functools import partial
from itertools import accumulate

from rdc.survey.count.holes import NO_HOLES
from rdc.survey.scan.large_file import count_tree, rows_with_long_runs
from rdc.survey.scan.small_batch import counted, reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.small_columns import SignedFiles
    from rdc.survey.count.counters import CountedFiles, Counters
    from rdc.survey.scan.small_batch import SmallBatch

__all__ = ["count_chunks"]


def count_chunks(counters: Counters, batch: SmallBatch, signed: SignedFiles, columns: CountedFiles) -> None:
    """Counts all chunks. `columns`: what `counted` makes of the other two.

    Files with long runs of equal chunks are counted as large files are, so that a file counts the same
    however it was read.
    """
    read, repeating = reader(batch, signed), rows_with_long_runs(columns.counts, columns.digests)
    if not repeating:
        counters.add_columns(columns, read)
        return
    signatures = signed.signatures
    firsts = array("Q", accumulate(signatures.counts, initial=0))
    for number in repeating:
        tree, location = signatures.tree(number, firsts[number]), columns.locations[number]
        count_tree(counters, tree, location, partial(read, number), NO_HOLES)
    rest = sorted(set(range(len(signed.rows))).difference(repeating))
    others = counted(batch, signed.chosen(rest))
    counters.add_columns(others, lambda number, offset, size: read(rest[number], offset, size))
