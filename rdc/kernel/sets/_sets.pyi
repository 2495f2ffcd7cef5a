"""The resemblance of sets in C. Only rdc.kernel.overlaps imports it; reference.py,
alike_reference.py, pair_reference.py and window_reference.py document each name."""

from _typeshed import ReadableBuffer, WriteableBuffer

def alike_counts(
    samples: ReadableBuffer,
    labels: ReadableBuffer,
    members: ReadableBuffer,
    counts: ReadableBuffer,
    least: int,
    first: int,
    stop: int,
    /,
) -> bytes: ...
def alike_pairs(
    samples: ReadableBuffer,
    labels: ReadableBuffer,
    members: ReadableBuffer,
    counts: ReadableBuffer,
    least: int,
    first: int,
    stop: int,
    /,
) -> bytes: ...
def label_pairs(labels: ReadableBuffer, members: ReadableBuffer, counts: ReadableBuffer, /) -> bytes: ...
def missing_pairs(pairs: ReadableBuffer, known: ReadableBuffer, /) -> bytes: ...
def neighbour_pairs(
    members: ReadableBuffer, counts: ReadableBuffer, window: int, first: int, stop: int, /
) -> bytes: ...
def ranked_numbers(numbers: ReadableBuffer, /) -> tuple[bytes, bytes]: ...
def set_resemblances(
    values: WriteableBuffer, offsets: ReadableBuffer, pairs: ReadableBuffer, threshold: float, /
) -> bytes: ...
def shared_numbers(first: ReadableBuffer, second: ReadableBuffer, /) -> int: ...
def sorted_pairs(pairs: ReadableBuffer, /) -> bytes: ...
def window_hashes(data: ReadableBuffer, last: int, /) -> bytes: ...
def window_sketch(data: ReadableBuffer, /) -> bytes: ...
