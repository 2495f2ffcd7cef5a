"""Reading a directory in C, on Linux. rdc.files.root.lister imports it; rdc.files.root.listing_reference is
its definition.
"""

Seen = tuple[int, int, int, int, int, int]
"""The fields of a RowsSeen (rdc.files.depth.depth); no rows for a small directory."""

Distant = list[tuple[int, int, int]] | None
"""Row, seconds and nanoseconds of each time that 64 bits of nanoseconds cannot hold, by increasing row."""

Columns = tuple[int, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]
"""The fields of a PackedListing, in order, without its distant times."""

Inodes = tuple[bytes, bytes, bytes, bytes, bytes]
"""The fields of PackedInodes, likewise."""

def list_directory(
    directory: int, path: bytes, limit: int, depth: int, most: int, /
) -> tuple[Columns, Inodes, bytes, Distant, Distant, list[tuple[bytes, int, int, bool]] | None, Seen]:
    """The directory `path` below the one open at `directory`, or that one if the path is empty: its columns
    and inodes; the reserved names, each followed by NUL; the distant mtimes and ctimes; the fields of each
    BadEntry, by name; a Seen.

    None stands for an empty list. Raises OSError: EINVAL for a path that is not of plain names, EOVERFLOW
    when names, targets and 160 bytes an entry add up to more than `limit` bytes. `depth`: entries that are
    looked at at a time, doubled up to `most` while they wait. Releases the interpreter's lock.
    """

def open_directory(directory: int, path: bytes, /) -> int:
    """A descriptor for reading of the directory `path` (not empty) below `directory`; no link is followed.

    Raises OSError."""
