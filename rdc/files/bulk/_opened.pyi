"""Many files opened together, on Linux. rdc.files.bulk.open_many uses it.

Columns are this machine's integers; all raise ValueError for such as do not fit each other. A descriptor
(int32) of -1 is passed over. `depth`: files in work at a time. All release the interpreter's lock.
"""

from typing_extensions import Buffer

Seen = tuple[int, int, int, int, int, int]
"""The fields of a RowsSeen (rdc.files.depth.depth)."""

def open_files(
    directory: int, paths: Buffer, depth: int, /
) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, Seen]:
    """Descriptors (-1: not open), and what they lead to: devices, inodes, sizes (u64), mtimes and ctimes
    (i64, nanoseconds). `paths`: each followed by NUL."""

def read_files(
    fds: Buffer, sizes: Buffer, mtimes: Buffer, ctimes: Buffer, depth: int, /
) -> tuple[bytes, bytes, Seen]:
    """Contents of the files that are as these columns say before and after, one behind another, and a byte a
    file: 1 where it is. At most 1 GiB."""

def set_metadata_of_files(
    fds: Buffer,
    ctimes: Buffer,
    rows: Buffer,
    modes: Buffer,
    mtimes: Buffer,
    uids: Buffer,
    gids: Buffer,
    owner: bool,
    depth: int,
    /,
) -> tuple[bytes, Seen]:
    """A byte a file: 0 failed, 1 has the metadata of its row (u64) of the last four columns, which are
    little-endian u16, i64, u32, u32; 2 its ctime is another one."""

def close_files(fds: Buffer, /) -> None: ...
