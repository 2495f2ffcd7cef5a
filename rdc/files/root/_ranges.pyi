"""Many ranges of one open file. rdc.files.root.source_file calls them, and reads one by one where they could
not.
"""

from _typeshed import ReadableBuffer, WriteableBuffer

def read_ranges(fd: int, rows: ReadableBuffer, /) -> bytes | None:
    """The ranges, 64-bit numbers of this machine, offset and length by turns, one behind another; None where
    the file ends before one does, or cannot be read. Raises ValueError for more than 1 GiB, or where a range
    ends beyond any file. Releases the interpreter's lock, as the other does."""

def read_ranges_into(fd: int, rows: ReadableBuffer, memory: WriteableBuffer, /) -> bool:
    """The same into memory of just their size; whether they could be read."""
