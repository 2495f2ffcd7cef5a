"""The resemblance of sets in C; tests/reference/overlaps.py, tests/reference/alike.py,
tests/reference/pairs.py and tests/reference/windows.py document each name."""

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
