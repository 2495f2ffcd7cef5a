"""Turns an errno into one of rdc's errors, which says what was tried, what was found and what to do."""

from __future__ import annotations

import errno
import os
import stat
import struct
from contextlib import suppress

from rdc.errors import FileChangedError, FileError, OutOfSpaceError, RdcError, printable
from rdc.files.base.paths import WithoutProcError
from rdc.lean.records import dataclass

TYPE_CHECKING = False


_STOPS_THE_RUN = {
    errno.ENOSPC: "free space on the destination and run again; every file is whole, old or new",
    errno.EDQUOT: "free space or raise the quota, then run again; every file is whole, old or new",
    errno.EROFS: "mount the destination read-write and run again",
}

# While a tree is read, these errors mean that the entry is no longer what its listing says.
_GONE = {errno.ENOENT, errno.ESTALE}
_REPLACED = {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.EINVAL}

_FOUND = {
    errno.ELOOP: "a symbolic link (links inside a tree are never followed)",
    errno.ENOTDIR: "something that is not a directory, or a symbolic link, on the way",
    errno.EISDIR: "a directory",
}

_ADVICE = {
    errno.ENOSPC: "free space on the file system that is mounted there, then run again",
    errno.EDQUOT: "free space or raise the quota on the file system that is mounted there, then run again",
    errno.EROFS: "mount what is there read-write, or leave it out",
    errno.EACCES: "check its permissions and those of its directory, then run again",
    errno.EPERM: "run as its owner or as root, or leave out what needs it",
    errno.ENOENT: "run again once nothing else changes this tree",
    errno.ELOOP: "remove the link, or sync the place it points to",
    errno.ENOTDIR: "run again once nothing else changes this tree",
    errno.EISDIR: "remove the directory first, or sync with --delete",
    errno.ENOTEMPTY: "something was added to it meanwhile, or is kept there; run again",
    errno.EEXIST: "run again once nothing else changes this tree",
    errno.EIO: "check the disk and the system log; the old file is untouched",
    errno.EMFILE: "raise the limit of open files (ulimit -n) and run again",
    errno.ENFILE: "the system has run out of open files; close some and run again",
    errno.EBUSY: "it is in use or a mount point; run again later",
    errno.ETXTBSY: "it is being run; run again later",
    errno.ENAMETOOLONG: "this file system takes shorter names only; rename it at the source",
    errno.EFBIG: "this file system or a limit (ulimit -f) takes smaller files only",
    errno.EINVAL: "this file system does not take it; look at the name and the file system's options",
    errno.EILSEQ: "this file system takes only names in its own encoding; rename it at the source",
}


def failure(
    error: OSError,
    path: bytes,
    shown: bytes,
    doing: str,
    *,
    reading: bool = False,
    cause: Cause | None = None,
    nested: bool = False,
) -> RdcError:
    """Return the error to raise for a failed system call.

    `path` is relative to the root and travels in the error. `shown` is the path in the message. `doing`
    completes "cannot ...". With `reading`, a missing or replaced entry gives a FileChangedError (exit code
    24). `cause`: what is known beyond the errno. `nested`: it failed on a file system that is mounted below
    the root. If that is full or read-only, its entries fail one by one; if the root's own is, the run ends.
    """
    number = error.errno or 0
    name = printable(shown)
    reason = f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"
    if cause is not None:
        text = f"{name}: cannot {doing}: found {cause.found}; {cause.advice}"
        return OutOfSpaceError(text) if number in _STOPS_THE_RUN and not nested else FileError(path, text)
    if number in _STOPS_THE_RUN and not nested:
        return OutOfSpaceError(f"{name}: cannot {doing}: {reason}; {_STOPS_THE_RUN[number]}")
    if reading and number in _GONE:
        return FileChangedError(
            path,
            f"{name}: cannot {doing}: expected it to be there still, but it vanished; "
            "run again to sync what is there now",
        )
    if isinstance(error, WithoutProcError):
        return FileError(path, f"{name}: cannot {doing}: /proc is not mounted; mount it and run again")
    found = _FOUND.get(number, reason)
    advice = _ADVICE.get(number, "look at the file and its file system, then run again")
    if reading and number == errno.EISDIR:
        advice = "name a file, or run again where it was one a moment ago"
    kind = FileChangedError if reading and number in _REPLACED else FileError
    return kind(path, f"{name}: cannot {doing}: found {found}; {advice}")


def unreadable(error: OSError, path: bytes, shown: bytes) -> RdcError:
    """Return the error to raise where the content of an open file cannot be read. No other entry can have
    taken its place, so only ESTALE says that it vanished."""
    return failure(error, path, shown, "read it", reading=error.errno == errno.ESTALE)


def refused(path: bytes, shown: bytes, doing: str, *, expected: str, found: str, advice: str) -> FileError:
    """Return a FileError (exit code 23) for a state that no system call reported."""
    name = printable(shown)
    return FileError(path, f"{name}: cannot {doing}: expected {expected}, found {found}; {advice}")


def changed(path: bytes, shown: bytes, expected: str, found: str) -> FileChangedError:
    """Return a FileChangedError (exit code 24) for a source that changed while it was read."""
    name = printable(shown)
    return FileChangedError(
        path,
        f"{name}: changed while it was read: expected {expected}, found {found}; "
        "run again once it is left alone",
    )


# Looks behind an errno that stands for several states: which of them is it here? Only messages use it.

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
