"""Small files in bulk, on Linux; columns as in a PackedListing. rdc.files.bulk.small_files uses it.

`depth`: files in work at a time. All release the interpreter's lock, and raise ValueError for columns that do
not fit each other.
"""

from typing_extensions import Buffer

Seen = tuple[int, int, int, int, int, int]
"""The fields of a RowsSeen (rdc.files.depth.depth)."""

def read_small(
    directory: int, names: Buffer, sizes: Buffer, mtimes: Buffer, limit: int, /
) -> tuple[bytes, bytes, Seen]:
    """Contents of the files that are still as listed, one after the other, and a byte a file: 1 where it is.

    `limit`: what the sizes may add up to.
    """

def stage_small(
    directories: Buffer,
    names: Buffer,
    sizes: Buffer,
    mtimes: Buffer,
    modes: Buffer,
    uids: Buffer,
    gids: Buffer,
    owner: bool,
    content: Buffer,
    hole: int,
    random: Buffer,
    expected: Buffer | None,
    fields: int,
    depth: int,
    /,
) -> tuple[bytes, bytes, Seen]:
    """Writes each file under a temporary name in its directory (`directories`: a descriptor each, native
    int32): a descriptor each (native int32, -1 where that failed), and the names (26 bytes each, NUL
    included). `hole`: bytes of the shortest run of zeros, in blocks of 4 KiB, that becomes a hole; 0: none
    does. `random`: 4 bytes a file. `expected`: what is to be replaced, columns of 8 native bytes a file
    one behind another: device, inode, size, mtime, ctime (ns); where that is not there, the descriptor is
    -2. `fields`: which of them count, the bits of a ComparedFields."""

def rename_small(
    directories: Buffer,
    temporaries: Buffer,
    names: Buffer,
    fds: Buffer,
    expected: Buffer | None,
    fields: int,
    depth: int,
    /,
) -> tuple[bytes, Seen]:
    """Renames what is staged where nothing is in the way, or where just what is `expected` is: an errno each
    (native int32), 0 for none. `fields`: as in `stage_small`."""

def close_files(fds: Buffer, /) -> None:
    """Closes the descriptors (native int32) that are not -1."""
