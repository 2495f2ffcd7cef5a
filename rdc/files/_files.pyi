"""The C part of rdc.files; the module that calls a function says what for.

What Linux alone has is missing on other systems: there macOS has `renameat2` (renameatx_np) and `full_fsync`,
and every system has `read_ranges` and `read_ranges_into`. All release the interpreter's lock,
but `mallopt` and `go_by_name`. They raise OSError where a call fails, and ValueError for columns that do not
fit each other. Names and paths of a column are each followed by NUL, and no link is followed. `depth`: files
or entries in work at a time.
"""

from _typeshed import ReadableBuffer, WriteableBuffer
from typing_extensions import Buffer

Seen = tuple[int, int, int, int, int, int]
"""The fields of a RowsSeen (rdc.files.depth). `list_directory` has no rows for a small
directory."""

# Calls of Linux, macOS and their C libraries, for rdc.files.base.syscalls.

def openat2(directory: int, path: bytes, flags: int, resolve: int, /) -> int:
    """Return the descriptor. The mode is 0."""

def fchmodat2(directory: int, name: bytes, mode: int, flags: int, /) -> int: ...
def renameat2(old_directory: int, old: bytes, new_directory: int, new: bytes, flags: int, /) -> int: ...
def refresh_stat(directory: int, name: bytes, /) -> int:
    """Ask for the stat of an entry that no cache may answer, and leave it to the next stat. Linux alone."""

def set_access_time(path: bytes, seconds: int, /) -> int: ...
def syncfs(fd: int, /) -> int: ...
def full_fsync(fd: int, /) -> int: ...
def fallocate(fd: int, mode: int, offset: int, length: int, /) -> int: ...
def fstatfs_type(fd: int, /) -> int:
    """f_type of statfs(2), 32 bits."""

def mallopt(parameter: int, value: int, /) -> bool:
    """Return whether the C library took the parameter. Keeps the interpreter's lock."""

# Small files in bulk, for rdc.files.bulk.small_files; columns as in a PackedListing.

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
    """Write each file under a temporary name in its directory (`directories`: a descriptor each, native
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
    """Rename what is staged where nothing is in the way, or where just what is `expected` is: an errno each
    (native int32), 0 for none. `fields`: as in `stage_small`."""

def close_files(fds: Buffer, /) -> None:
    """Close the descriptors (native int32) that are not -1."""

# Reading many files, for rdc.files.bulk.open_many, which is the definition.

def read_contents(
    fd: int, paths: ReadableBuffer, wanted: ReadableBuffer, head: int, tail: int, depth: int, most: int, /
) -> tuple[bytes, bytes, bytes, Seen]:
    """Return the data and, an i32 and an i64 of this machine a file, the outcomes and the ctimes.

    `depth`: files in work at a time, doubled up to `most` while they wait. Raises ValueError
    for arguments that do not fit together or ask for more than 1 GiB. Releases the interpreter's lock."""

# Many files under read leases, for rdc.files.names.leased_files; columns are this machine's integers.

def lease_files(directories: Buffer, names: Buffer, /) -> tuple[bytes, bytes, bytes, bytes]:
    """Descriptors (int32, -1: not open), errors (int32: 0, an errno, or -1), the facts of FACTS, and the
    extended attributes of all files."""

def compare_files(fds: Buffer, content: Buffer, /) -> bytes:
    """Return a byte a file: 1 if it has this content, and nobody asked to write to it by then."""

def displace_files(
    exchange: bool,
    directories: Buffer,
    names: Buffer,
    displaced: Buffer,
    files: Buffer,
    originals: Buffer,
    original_directories: Buffer,
    original_names: Buffer,
    fds: Buffer,
    facts: Buffer,
    attributes: Buffer,
    firsts: Buffer,
    /,
) -> bytes:
    """Return an outcome a name: DONE, UNTOUCHED or UNLIKE. `fds` and `facts` have a row a file, the other
    columns a row a name; `files` and `originals` are numbers of files, `firsts` bytes."""

def remove_displaced(
    exchange: bool,
    directories: Buffer,
    names: Buffer,
    displaced: Buffer,
    files: Buffer,
    originals: Buffer,
    original_directories: Buffer,
    original_names: Buffer,
    fds: Buffer,
    facts: Buffer,
    attributes: Buffer,
    firsts: Buffer,
    /,
) -> bytes:
    """Return an outcome a name: DONE or UNTOUCHED. Columns as in `displace_files`."""

# Many files opened together, for rdc.files.bulk.open_many; columns are this machine's integers. A
# descriptor (int32) of -1 is passed over.

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
    """Return a byte a file: 0 failed, 1 has the metadata of its row (u64) of the last four columns, which are
    little-endian u16, i64, u32, u32; 2 its ctime is another one."""

# Extended attributes of a directory's entries, for rdc.files.facts.xattrs.

def go_by_name() -> bool:
    """Return whether the kernel has calls with a directory's descriptor and a name (Linux 6.13), and lets
    this process use them."""

def list_xattrs(
    directory: int, path: bytes, entries: bytes, row: int, offset: int, by_name: bool, /
) -> tuple[int, int, list[tuple[int, bytes | int]]]:
    """Return the next row, the offset of its name, and the rows before that which have attributes: the names
    of these, each followed by NUL, or the errno for which they cannot be listed.

    `entries`: names in the directory at `path` (b"": itself) below `directory`, each followed by NUL; the one
    at `offset` is row `row`. Stops before their end once it holds 256 KiB. Where a file system keeps no
    attributes, nothing has any. `by_name`: where `go_by_name`; else through /proc.
    """

def get_xattr(directory: int, entry: bytes, attribute: bytes, /) -> bytes:
    """Return the value, where `go_by_name`."""

# Many ranges of one open file, for rdc.files.root.source_file.

def read_ranges(fd: int, rows: ReadableBuffer, /) -> bytes | None:
    """Return the bytes of all ranges, joined; None if the file ends before a range does, or cannot be read.

    `rows`: offset and length of each range in turn, 64-bit numbers in this machine's byte order. Raises
    ValueError for more than 1 GiB, or if a range ends beyond the largest possible file. Releases the
    interpreter's lock, as `read_ranges_into` does."""

def read_ranges_into(fd: int, rows: ReadableBuffer, memory: WriteableBuffer, /) -> bool:
    """Read the same ranges into `memory`, which has exactly their size; return whether they could be read."""

# Reading a directory, for rdc.files.root.lister; rdc.files.root.lister is the definition.

Distant = list[tuple[int, int, int]] | None
"""Row, seconds and nanoseconds of each time that 64 bits of nanoseconds cannot hold, by increasing row."""

Columns = tuple[int, bytes, bytes, bytes, bytes, bytes, bytes, bytes, bytes]
"""The fields of a PackedListing, in order, without its distant times."""

Inodes = tuple[bytes, bytes, bytes, bytes, bytes]
"""The fields of PackedInodes, likewise."""

Listing = tuple[Columns, Inodes, bytes, Distant, Distant, list[tuple[bytes, int, int, bool]] | None, Seen]
"""The result of `list_directory`."""

def list_directory(directory: int, path: bytes, limit: int, depth: int, most: int, /) -> Listing:
    """Return the directory `path` below the one open at `directory`, or that one if the path is empty: its
    columns and inodes; the reserved names, each followed by NUL; the distant mtimes and ctimes; the fields of
    each BadEntry, by name; a Seen.

    None stands for an empty list. Raises OSError: EINVAL for a path that is not of plain names, EOVERFLOW
    when names, targets and 160 bytes an entry add up to more than `limit` bytes. `depth`: entries that are
    looked at at a time, doubled up to `most` while they wait. Releases the interpreter's lock.
    """

def list_directories(
    directory: int, todo: bytes, limit: int, depth: int, most: int, /
) -> tuple[
    int, int, tuple[bytes, ...], bytes, int, tuple[bytes, Listing] | None, tuple[int, int, int, int], Seen
]:
    """Return a run of directories: how many, the number of rows, the columns as in read_directories.h, the
    paths to come, the errno of the next of them or 0, the directory that is alone (its Seen is empty), then
    `looked`, `slow`, `waited` and `elapsed` of a Run, and a Seen.

    `todo` and the paths to come end with NUL each, the next one last. `limit` is that of each directory.
    Raises OSError: ENOMEM, EINVAL for a `todo` that does not end with NUL. Releases the interpreter's lock.
    """

def open_directory(directory: int, path: bytes, /) -> int:
    """Open the directory `path` (not empty) below `directory` for reading; follow no link.
    Raises OSError."""
