"""System calls that Python lacks, and what the kernel grants a process."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
from contextlib import suppress
from fcntl import ioctl

from rdc.files import _files
from rdc.lean.enums import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType


# System calls that Python's os module lacks. Each raises ENOSYS where it is missing.

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


def birth_time(fd: int) -> int:
    """Return when the open entry was made, in nanoseconds since the epoch; 0 if its file system does not
    tell. A copy has a time of its own, and no call sets it."""
    try:
        return _call("birth_time", fd)
    except OSError:
        return int(getattr(os.fstat(fd), "st_birthtime", 0) * 1_000_000_000)  # macOS


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


# The limit of open descriptors: raised if possible, and shared among the caches that keep files open.

ENOUGH_DESCRIPTORS = 2048
"""The limit with which every cache may reach its maximum. A sync with both ends in one process needs 1,384
descriptors: two caches of 64 directories, a commit group of 256 files in as many directories, twice 256 small
files read together, 64 bases, twice 64 calls in flight and about 40 others.

The limit is inherited by programs that rdc starts, so it is no higher. Programs that close all descriptors
one by one stay fast. Programs that use select(2), which knows 1,024, keep room.
"""

OTHER_DESCRIPTORS = 40
"""Descriptors outside the caches: standard streams, a transport, the catalog, signing threads, the current
file and its bases. About 30 were counted."""


def raise_descriptor_limit() -> None:
    """Raise the soft limit to ENOUGH_DESCRIPTORS, or as far as the hard limit allows.

    Shells usually set 1,024, some 256; programs may raise it.
    """
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = ENOUGH_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, ENOUGH_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share_of_descriptors(most: int) -> int:
    """Return how many of `most` descriptors a cache may use under the present limit, at least 1."""
    limit = os.sysconf("SC_OPEN_MAX")  # RLIMIT_NOFILE; -1: there is none
    if limit < 0 or limit >= ENOUGH_DESCRIPTORS:
        return most
    return max(1, most * (limit - OTHER_DESCRIPTORS) // (ENOUGH_DESCRIPTORS - OTHER_DESCRIPTORS))


def process_umask() -> int:
    """Return the umask, read without changing it where possible: other threads may make files meanwhile."""
    with suppress(OSError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"Umask:"):
                return int(line.split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


# FICLONERANGE: makes a range of one file share the blocks of a range of another.
#
# The kernel shares the range as it is at one moment, under the locks of both files. Nothing is read or
# written. ioctl_ficlonerange(2) is the source of the structure and rules.

_FICLONERANGE = 0x4020940D
_RANGE = struct.Struct("=qQQQ")

LASTING_REFUSALS = frozenset((errno.EOPNOTSUPP, errno.ENOTTY, errno.ENOSYS, errno.EXDEV, errno.EPERM))
"""Errors that concern two file systems, or this process, rather than one pair of files."""


def clone_range(source: int, offset: int, length: int, destination: int, at: int) -> None:
    """Share `length` bytes at `offset` of one open file at `at` of another, in place of what was there.

    Offsets are multiples of the file system's block size. So is `length`, unless the source ends there and
    the destination ends there or before. Raises OSError; parts of the range may be shared then.
    """
    ioctl(destination, _FICLONERANGE, _RANGE.pack(source, offset, length, at))


# Read leases: the kernel's guarantee that no process has a file open for writing, or will without notice.
#
# fcntl(2), "Leases": a read lease is granted only while no descriptor and no mapping can write to the file. A
# process that then opens it for writing, or truncates it, waits until the lease is released or
# /proc/sys/fs/lease-break-time (45 s) has passed. From that moment `is_intact` returns False.


def take_lease(fd: int) -> None:
    """Take a read lease on a file open for reading only. Closing the descriptor releases it.

    Raises OSError: EAGAIN if the file is open for writing, EACCES if it belongs to another user, EINVAL or
    ENOLCK if the file system has no leases, ENOSYS on systems other than Linux.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    # Breaking a lease sends a signal. The default, SIGIO, would end the process. SIGURG is ignored by
    # default; callers ask is_intact instead.
    fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)


def is_intact(fd: int) -> bool:
    """Return whether the lease still holds and no writer waits. Raises OSError."""
    return fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_RDLCK
