"""Many files under read leases, on Linux. rdc.files.names.leased_files uses it.

Columns are this machine's integers; all raise ValueError for such as do not fit each other. Names are each
followed by NUL. All release the interpreter's lock.
"""

from typing_extensions import Buffer

def lease_files(directories: Buffer, names: Buffer, /) -> tuple[bytes, bytes, bytes, bytes]:
    """Descriptors (int32, -1: not open), errors (int32: 0, an errno, or -1), the facts of FACTS, and the
    extended attributes of all files."""

def compare_files(fds: Buffer, content: Buffer, /) -> bytes:
    """A byte a file: 1 if it has this content, and nobody asked to write to it by then."""

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
    """An outcome a name: DONE, UNTOUCHED or UNLIKE. `fds` and `facts` have a row a file, the other columns a
    row a name; `files` and `originals` are numbers of files, `firsts` bytes."""

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
    """An outcome a name: DONE or UNTOUCHED. Columns as in `displace_files`."""

def close_files(fds: Buffer, /) -> None: ...
