"""Reading a directory in C, on Linux. rdc.files.root.packed_listing imports it;
rdc.files.root.listing_reference is its definition.
"""

Seen = tuple[int, int, int, int, int, int]
"""The fields of a RowsSeen (rdc.files.depth.depth); no rows for a small directory."""

def read_directory(
    fd: int, part_temporaries: bool, limit: int, inodes: bool, depth: int, most: int, /
) -> tuple[int, *tuple[bytes, ...], Seen]:
    """The fields of a PackedListing in order, then the reserved names, each followed by NUL; with
    `inodes`, then the fields of PackedInodes in order; a Seen last.

    `fd` is a directory open for reading, read from its beginning whatever was read before. Without
    `part_temporaries`, reserved names are entries like any other. Raises OSError: ENAMETOOLONG for a name of
    more than NAME_BYTES, EOVERFLOW when names, targets and 160 bytes an entry add up to more than `limit`
    bytes. `depth`: entries that are looked at at a time, doubled up to `most` while they wait. Releases the
    interpreter's lock.
    """

def list_directory(
    directory: int, path: bytes, part_temporaries: bool, limit: int, inodes: bool, depth: int, most: int, /
) -> tuple[int, *tuple[bytes, ...], Seen]:
    """`open_directory` and `read_directory` in one. OSError with EINVAL for a path that is not of plain
    names."""

def open_directory(directory: int, path: bytes, /) -> int:
    """A descriptor for reading of the directory `path` (not empty) below `directory`; no link is followed.

    Raises OSError."""
