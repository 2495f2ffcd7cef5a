"""System calls that Python's os module lacks. Each raises ENOSYS where it is missing."""

from __future__ import annotations

import errno
import os

from rdc.files import _files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "chmod_no_follow",
    "fallocate_keep_size",
    "file_system_type",
    "full_fsync",
    "open_directory_beneath",
    "punch_hole",
    "refresh_stat",
    "rename_exchange",
    "rename_no_replace",
    "rename_no_replace_between",
    "set_access_time",
    "set_malloc_option",
    "syncfs",
    "unshare_working_directory",
]

_AT_SYMLINK_NOFOLLOW = 0x100
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_CLONE_FS = 0x200
_FALLOC_FL_KEEP_SIZE = 1
_FALLOC_FL_PUNCH_HOLE = 2

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_BENEATH = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS


_extension: ModuleType | None = _files
"""Without a call that this system lacks. ctypes would take 2 ms to load on each side of a sync."""


def _call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C module. Raises OSError, ENOSYS if it is missing."""
    function = getattr(_extension, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    result: int = function(*arguments)
    return result


def open_directory_beneath(directory: int, path: bytes) -> int:
    """Return an O_PATH descriptor of the directory `path` below `directory`, following no link (openat2).

    Raises OSError: ENOSYS if openat2 is missing or forbidden, ELOOP at a symlink.
    """
    return _call("openat2", directory, path, _DIRECTORY, _BENEATH)


def chmod_no_follow(name: bytes, directory: int, mode: int) -> None:
    """Set the mode of one entry (fchmodat2, Linux 6.6). Raises OSError: EOPNOTSUPP for a symlink, ENOSYS or
    EPERM without the call."""
    _call("fchmodat2", directory, name, mode, _AT_SYMLINK_NOFOLLOW)


def rename_no_replace(old: bytes, new: bytes, directory: int) -> None:
    """Rename within one directory. Raises OSError: EEXIST if `new` exists, ENOSYS or EINVAL where not
    supported."""
    _call("renameat2", directory, old, directory, new, _RENAME_NOREPLACE)


def rename_no_replace_between(old: bytes, old_directory: int, new: bytes, new_directory: int) -> None:
    """Rename from one directory to another. Raises OSError: as rename_no_replace, and EXDEV across file
    systems."""
    _call("renameat2", old_directory, old, new_directory, new, _RENAME_NOREPLACE)


def rename_exchange(one: bytes, other: bytes, directory: int) -> None:
    """Exchange two names of one directory in one step, whatever their kinds. Raises OSError: ENOSYS or EINVAL
    where not supported."""
    _call("renameat2", directory, one, directory, other, _RENAME_EXCHANGE)


def syncfs(fd: int) -> None:
    """Make all writes to the file system of `fd` durable. Raises OSError: ENOSYS if the C library lacks
    it."""
    _call("syncfs", fd)


def full_fsync(fd: int) -> None:
    """Have the drive itself write what it was given (F_FULLFSYNC of macOS, whose fsync leaves it there).

    Raises OSError: ENOSYS on other systems, where fsync does so.
    """
    _call("full_fsync", fd)


def fallocate_keep_size(fd: int, length: int, start: int = 0) -> None:
    """Reserve space for `length` bytes at `start` without changing the file's size. Raises OSError:
    EOPNOTSUPP or ENOSYS where not supported.

    posix_fallocate is no alternative: where the file system cannot reserve, the C library writes a byte to
    every block and grows the file.
    """
    _call("fallocate", fd, _FALLOC_FL_KEEP_SIZE, start, length)


def punch_hole(fd: int, start: int, length: int) -> None:
    """Make a hole of these bytes of a file, which read as zeros from then on. Raises OSError: EOPNOTSUPP or
    ENOSYS where not supported."""
    _call("fallocate", fd, _FALLOC_FL_KEEP_SIZE | _FALLOC_FL_PUNCH_HOLE, start, length)


def refresh_stat(name: bytes, directory: int) -> None:
    """Have the kernel ask a file server for the state of an entry, so that the next stat is no old one.
    Raises OSError: ENOSYS without the call (statx)."""
    _call("refresh_stat", directory, name)


def set_access_time(fd: int, seconds: int) -> None:
    """Set the access time of an entry that is open, maybe as a path, in seconds since the epoch, and leave
    its modification time. Raises OSError: EINVAL before Linux 5.8, ENOSYS on other systems."""
    _call("set_access_time", fd, seconds)


def unshare_working_directory() -> None:
    """Give the calling thread a working directory of its own. Raises OSError: ENOSYS on systems other than
    Linux."""
    _call("unshare", _CLONE_FS)


def file_system_type(fd: int) -> int:
    """Return f_type of statfs(2). Raises OSError: ENOSYS on systems other than Linux."""
    return _call("fstatfs_type", fd)


def set_malloc_option(parameter: int, value: int) -> None:
    """Call mallopt(3). Raises OSError: ENOSYS if the C library is not glibc."""
    _call("mallopt", parameter, value)
