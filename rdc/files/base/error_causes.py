"""Looks behind an errno that stands for several states: which of them is it here? Only messages use it."""

from __future__ import annotations

import errno
import os
import stat
import struct
from contextlib import suppress

from rdc.errors import printable
from rdc.lean.records import dataclass

__all__ = ["Cause", "cause_of", "is_of_another_mount"]

_GET_FLAGS = 0x80086601  # FS_IOC_GETFLAGS where a long has 64 bits
_FLAGS = ((0x10, "immutable", "i"), (0x20, "append-only", "a"))
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Cause:
    """What is so, and what to do about it."""

    found: str
    advice: str


def cause_of(error: OSError, name: bytes, directory: int) -> Cause | None:
    """Return what made a call fail for the entry `name` of an open directory; None if the errno says all that
    is known."""
    with suppress(OSError):
        if error.errno == errno.ENOSPC and _lacks_inodes(directory):
            return Cause(
                "that no inodes are left, only blocks (ENOSPC): its file system takes no further entries",
                "remove entries there, or make it with more inodes (df -i), then run again",
            )
        if error.errno == errno.EPERM:
            return _flag_of(name, directory)
    return None


def is_of_another_mount(error: OSError, name: bytes, directory: int, top: int) -> bool:
    """Return whether a full or read-only file system is another one than the tree's, mounted in it: then it
    concerns the entries there alone. The call failed for `name`, which may be the mount point, in the open
    `directory`; `top` is the tree's.

    A bind mount may be read-only while its file system is not, so the flag of the mount counts. Of two
    subvolumes of one full file system, each is told by its own entries.
    """
    if _is_another(error, directory, top):
        return True
    try:
        entry = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=directory)
    except OSError:
        return False
    try:
        return _is_another(error, entry, top)
    finally:
        os.close(entry)


def _is_another(error: OSError, fd: int, top: int) -> bool:
    if error.errno == errno.EROFS:
        here, root = (bool(os.fstatvfs(one).f_flag & os.ST_RDONLY) for one in (fd, top))
        return here and not root
    return os.fstat(fd).st_dev != os.fstat(top).st_dev


def _lacks_inodes(directory: int) -> bool:
    found = os.fstatvfs(directory)
    return found.f_files > 0 and found.f_favail == 0 and found.f_bavail > 0


def _flag_of(name: bytes, directory: int) -> Cause | None:
    """Return the flag that forbids changes, root's among them, of an entry or of its directory."""
    for entry, what in ((name, "it has"), (b".", "its directory has")):
        flags = 0
        with suppress(OSError):
            flags = _flags(entry, directory)
        for flag, title, letter in _FLAGS:
            if flags & flag:
                return Cause(
                    f"that {what} the {title} flag (EPERM), which keeps root out, too",
                    f"chattr -{letter} takes it away; then run again",
                )
    if os.geteuid() == 0:
        return Cause(
            f"{os.strerror(errno.EPERM)} (EPERM), for root as well",
            f"see what protects {printable(name)}: its file system, or a security module of the kernel",
        )
    return None


def _flags(name: bytes, directory: int) -> int:
    import fcntl

    kind = os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):
        return 0  # to open a device may have effects
    fd = os.open(name, _OPEN, dir_fd=directory)
    try:
        answer = fcntl.ioctl(fd, _GET_FLAGS, bytes(8))
    finally:
        os.close(fd)
    (flags,) = struct.unpack_from("=I", answer)
    return int(flags)
