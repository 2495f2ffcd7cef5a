"""Reading many files in C, on Linux. rdc.files.bulk.read_many imports it, and is its definition."""

from _typeshed import ReadableBuffer

Seen = tuple[int, int, int, int, int, int]
"""The fields of a RowsSeen (rdc.files.depth.depth)."""

def read_contents(
    fd: int, paths: ReadableBuffer, wanted: ReadableBuffer, head: int, tail: int, depth: int, most: int, /
) -> tuple[bytes, bytes, bytes, Seen]:
    """The data and, an i32 and an i64 of this machine a file, the outcomes and the ctimes.

    `depth`: files in work at a time, doubled up to `most` while they wait. Raises ValueError
    for arguments that do not fit together or ask for more than 1 GiB. Releases the interpreter's lock."""
