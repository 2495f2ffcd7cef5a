"""Counts the chunks of files that were signed in a batch."""

from __future__ import annotations

from array import array
from functools import partial
from itertools import accumulate

from rdc.survey.count.holes import NO_HOLES
from rdc.survey.scan.large_file import count_tree, rows_with_long_runs
from rdc.survey.scan.small_batch import located, reader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.catalog.store import SignedFiles
    from rdc.survey.count.counters import Counters
    from rdc.survey.scan.small_batch import SmallBatch

__all__ = ["count_chunks"]


def count_chunks(counters: Counters, batch: SmallBatch, signed: SignedFiles) -> None:
    """Counts all chunks.

    Files with long runs of equal chunks are counted as large files are, so that a file counts the same
    however it was read.
    """
    signatures, locations, read = signed.signatures, located(batch, signed), reader(batch, signed)
    repeating = rows_with_long_runs(signatures.counts, signatures.digests)
    if not repeating:
        counters.add_columns(signatures, locations, read)
        return
    firsts = array("Q", accumulate(signatures.counts, initial=0))
    for number in repeating:
        tree = signatures.tree(number, firsts[number])
        count_tree(counters, tree, locations[number], partial(read, number), NO_HOLES)
    rest = sorted(set(range(len(signed.rows))).difference(repeating))
    counters.add_columns(
        signatures.chosen(rest),
        [locations[number] for number in rest],
        lambda number, offset, size: read(rest[number], offset, size),
    )
