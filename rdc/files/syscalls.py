"""Linux system calls that Python's os module does not offer, each with the behaviour where it is missing."""

from __future__ import annotations

import errno
import os
import struct
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ctypes

__all__ = [
    "chmod_no_follow",
    "fallocate_keep_size",
    "open_directory_beneath",
    "rename_exchange",
    "rename_no_replace",
    "rename_no_replace_between",
    "syncfs",
]

# Numbers since 5.1 are the same on every architecture but alpha.
_OPENAT2 = 437
_FCHMODAT2 = 452
_AT_SYMLINK_NOFOLLOW = 0x100
_RESOLVE_NO_MAGICLINKS = 0x02
_RESOLVE_NO_SYMLINKS = 0x04
_RESOLVE_BENEATH = 0x08
_RENAME_NOREPLACE = 1
_RENAME_EXCHANGE = 2
_FALLOC_FL_KEEP_SIZE = 1


# struct open_how of openat2(2): flags, mode, resolve.
_DIRECTORY_BENEATH = struct.pack(
    "=QQQ",
    os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC,
    0,
    _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS,
)


@cache
def _libc() -> ctypes.CDLL:
    import ctypes  # a walk needs none of these calls, and ctypes is slow to load

    return ctypes.CDLL(None, use_errno=True)


def _function(name: str, *arguments: type) -> ctypes._NamedFuncPointer | None:
    """`name` of the C library with its argument types, a fresh object each time; None where it is missing."""
    try:
        function = _libc()[name]
    except AttributeError:
        return None
    import ctypes

    function.argtypes = arguments
    function.restype = ctypes.c_long if name == "syscall" else ctypes.c_int
    return function


@cache
def _openat2() -> ctypes._NamedFuncPointer | None:
    import ctypes

    return _function(
        "syscall", ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_size_t
    )


@cache
def _fchmodat2() -> ctypes._NamedFuncPointer | None:
    import ctypes

    return _function("syscall", ctypes.c_long, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint, ctypes.c_int)


@cache
def _renameat2() -> ctypes._NamedFuncPointer | None:
    import ctypes

    return _function("renameat2", ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)


@cache
def _syncfs() -> ctypes._NamedFuncPointer | None:
    import ctypes

    return _function("syncfs", ctypes.c_int)


@cache
def _fallocate() -> ctypes._NamedFuncPointer | None:
    import ctypes

    return _function("fallocate", ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)


def _fail(number: int | None = None) -> OSError:
    """`number` None: of the call that has just failed."""
    if number is None:
        import ctypes

        number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def open_directory_beneath(directory: int, path: bytes) -> int:
    """An O_PATH descriptor of the directory `path` below `directory`, following no link (openat2).

    Raises OSError: ENOSYS where openat2 is missing or forbidden, ELOOP at a symlink.
    """
    function = _openat2()
    if function is None:
        raise _fail(errno.ENOSYS)
    fd = function(_OPENAT2, directory, path, _DIRECTORY_BENEATH, len(_DIRECTORY_BENEATH))
    if fd < 0:
        raise _fail()
    return int(fd)


def chmod_no_follow(name: bytes, directory: int, mode: int) -> None:
    """chmod of one entry, EOPNOTSUPP for a symlink (fchmodat2, Linux 6.6); ENOSYS or EPERM without the
    call."""
    function = _fchmodat2()
    if function is None:
        raise _fail(errno.ENOSYS)
    if function(_FCHMODAT2, directory, name, mode, _AT_SYMLINK_NOFOLLOW) != 0:
        raise _fail()


def rename_no_replace(old: bytes, new: bytes, directory: int) -> None:
    """Rename within one directory; EEXIST when `new` is there. ENOSYS or EINVAL where this is not
    supported."""
    _rename(old, directory, new, directory, _RENAME_NOREPLACE)


def rename_no_replace_between(old: bytes, old_directory: int, new: bytes, new_directory: int) -> None:
    """The same from one directory to another; EXDEV across file systems."""
    _rename(old, old_directory, new, new_directory, _RENAME_NOREPLACE)


def rename_exchange(one: bytes, other: bytes, directory: int) -> None:
    """Let two names of one directory change places, whatever their kinds, in one step. ENOSYS or EINVAL where
    this is not supported."""
    _rename(one, directory, other, directory, _RENAME_EXCHANGE)


def _rename(old: bytes, old_directory: int, new: bytes, new_directory: int, flags: int) -> None:
    function = _renameat2()
    if function is None:
        raise _fail(errno.ENOSYS)
    if function(old_directory, old, new_directory, new, flags) != 0:
        raise _fail()


def syncfs(fd: int) -> None:
    """Make everything written to the file system of `fd` durable; ENOSYS where the C library lacks it."""
    function = _syncfs()
    if function is None:
        raise _fail(errno.ENOSYS)
    if function(fd) != 0:
        raise _fail()


def fallocate_keep_size(fd: int, length: int) -> None:
    """Reserve space for `length` bytes without changing the size.

    Not posix_fallocate: where the file system cannot reserve, the C library would write a byte to every
    block, and the size would lie. Here that is EOPNOTSUPP (ENOSYS without the call).
    """
    function = _fallocate()
    if function is None:
        raise _fail(errno.ENOSYS)
    if function(fd, _FALLOC_FL_KEEP_SIZE, 0, length) != 0:
        raise _fail()
