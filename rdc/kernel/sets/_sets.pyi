"""The resemblance of sets in C. Only rdc.kernel.overlaps imports it; reference.py documents it."""

from _typeshed import ReadableBuffer, WriteableBuffer

def set_resemblances(
    values: WriteableBuffer, offsets: ReadableBuffer, pairs: ReadableBuffer, threshold: float, /
) -> bytes: ...
