"""Calls of Linux, macOS and their C libraries. rdc.files.base.syscalls calls them and says what for.

macOS has only `renameat2` (renameatx_np), `full_fsync` and `clone_file`; Linux has the others. Elsewhere
the module is empty; `mallopt` is there with glibc alone. All release the interpreter's lock,
and all but `mallopt` raise OSError.
"""

def openat2(directory: int, path: bytes, flags: int, resolve: int, /) -> int:
    """The descriptor. The mode is 0."""

def fchmodat2(directory: int, name: bytes, mode: int, flags: int, /) -> int: ...
def renameat2(old_directory: int, old: bytes, new_directory: int, new: bytes, flags: int, /) -> int: ...
def refresh_stat(directory: int, name: bytes, /) -> int:
    """Asks for the stat of an entry that no cache may answer, and leaves it to the next stat. Linux alone."""

def set_access_time(path: bytes, seconds: int, /) -> int: ...
def syncfs(fd: int, /) -> int: ...
def full_fsync(fd: int, /) -> int: ...
def clone_file(source: int, directory: int, name: bytes, /) -> int: ...
def fallocate(fd: int, mode: int, offset: int, length: int, /) -> int: ...
def fstatfs_type(fd: int, /) -> int:
    """f_type of statfs(2), 32 bits."""

def mallopt(parameter: int, value: int, /) -> bool:
    """Whether the C library took the parameter. Keeps the interpreter's lock."""
