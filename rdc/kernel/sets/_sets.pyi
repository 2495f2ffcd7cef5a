"""Common elements of sets in C. Only rdc.kernel.overlaps imports it; reference.py documents it."""

from _typeshed import ReadableBuffer

def set_overlaps(values: ReadableBuffer, offsets: ReadableBuffer, pairs: ReadableBuffer, /) -> bytes: ...
