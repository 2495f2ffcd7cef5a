"""Linux system calls that Python's os module does not offer, each with the behaviour where it is missing."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

__all__ = [
    "chmod_no_follow",
    "fallocate_keep_size",
    "file_system_type",
    "open_directory_beneath",
    "rename_exchange",
    "rename_no_replace",
    "rename_no_replace_between",
    "set_malloc_option",
    "syncfs",
]

_AT_SYMLINK_NOFOLLOW = 0x100
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_FALLOC_FL_KEEP_SIZE = 1

_DIRECTORY = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_BENEATH = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS


def _built() -> ModuleType | None:
    # Not through ctypes: it takes each side of a sync 2 ms to load.
    try:
        from rdc.files import _libc
    except ImportError:  # a checkout without a compiler, which does without these calls
        return None
    return _libc


_extension = _built()


def _call(name: str, *arguments: int | bytes) -> int:
    """Raises OSError, ENOSYS where there is no such call."""
    function = getattr(_extension, name, None)
    if function is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    result: int = function(*arguments)
    return result


def open_directory_beneath(directory: int, path: bytes) -> int:
    """An O_PATH descriptor of the directory `path` below `directory`, following no link (openat2).

    Raises OSError: ENOSYS where openat2 is missing or forbidden, ELOOP at a symlink.
    """
    return _call("openat2", directory, path, _DIRECTORY, _BENEATH)


def chmod_no_follow(name: bytes, directory: int, mode: int) -> None:
    """chmod of one entry, EOPNOTSUPP for a symlink (fchmodat2, Linux 6.6); ENOSYS or EPERM without the
    call."""
    _call("fchmodat2", directory, name, mode, _AT_SYMLINK_NOFOLLOW)


def rename_no_replace(old: bytes, new: bytes, directory: int) -> None:
    """Rename within one directory; EEXIST when `new` is there. ENOSYS or EINVAL where this is not
    supported."""
    _call("renameat2", directory, old, directory, new, _RENAME_NOREPLACE)


def rename_no_replace_between(old: bytes, old_directory: int, new: bytes, new_directory: int) -> None:
    """The same from one directory to another; EXDEV across file systems."""
    _call("renameat2", old_directory, old, new_directory, new, _RENAME_NOREPLACE)


def rename_exchange(one: bytes, other: bytes, directory: int) -> None:
    """Let two names of one directory change places, whatever their kinds, in one step. ENOSYS or EINVAL where
    this is not supported."""
    _call("renameat2", directory, one, directory, other, _RENAME_EXCHANGE)


def syncfs(fd: int) -> None:
    """Make everything written to the file system of `fd` durable; ENOSYS where the C library lacks it."""
    _call("syncfs", fd)


def fallocate_keep_size(fd: int, length: int) -> None:
    """Reserve space for `length` bytes without changing the size.

    Not posix_fallocate: where the file system cannot reserve, the C library would write a byte to every
    block, and the size would lie. Here that is EOPNOTSUPP (ENOSYS without the call).
    """
    _call("fallocate", fd, _FALLOC_FL_KEEP_SIZE, 0, length)


def file_system_type(fd: int) -> int:
    """f_type of statfs(2); ENOSYS on other systems than Linux, which have no such number."""
    return _call("fstatfs_type", fd)


def set_malloc_option(parameter: int, value: int) -> None:
    """mallopt(3); ENOSYS where the C library is not glibc."""
    _call("mallopt", parameter, value)
