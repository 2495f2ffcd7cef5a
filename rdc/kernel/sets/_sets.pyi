"""The resemblance of sets in C. Only rdc.kernel.overlaps imports it; reference.py and
pair_reference.py document each name."""

from _typeshed import ReadableBuffer, WriteableBuffer

def neighbour_pairs(
    members: ReadableBuffer, counts: ReadableBuffer, window: int, first: int, stop: int, /
) -> bytes: ...
def set_resemblances(
    values: WriteableBuffer, offsets: ReadableBuffer, pairs: ReadableBuffer, threshold: float, /
) -> bytes: ...
def sorted_pairs(pairs: ReadableBuffer, /) -> bytes: ...
