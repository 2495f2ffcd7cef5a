"""Calls that the system offers only by path, on entries of open directories, with and without /proc.

A path below /proc leads through a descriptor. It is the quickest way, and on an entry that is open as a path
the only one that cannot miss it. Where /proc is not mounted, as in a chroot or on a rescue system:

- A call by name is made in a thread of its own, which works in the directory. Its working directory is no
  other thread's.
- A call on an entry that is open as a path is made on a descriptor of the same entry, opened again.
- What neither can do raises WithoutProcError.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager
from functools import cache, partial

from rdc.files.base.syscalls import unshare_working_directory
from rdc.lean.typed import TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["WithoutProcError", "at_entry", "has_proc", "in_directory", "leading_to", "path_of_directory"]

T = TypeVar("T")

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_REGULAR = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class WithoutProcError(OSError):
    """/proc is not mounted, and nothing else does what was asked for."""

    def __init__(self) -> None:
        super().__init__(errno.ENOSYS, "/proc is not mounted")


@cache
def has_proc() -> bool:
    """Return whether paths below /proc lead through descriptors. Asked once in the life of a process."""
    return os.path.exists(b"/proc/self/fd")


def at_entry(directory: int, name: bytes, call: Callable[[bytes], T]) -> T:
    """Call with a path to the entry `name` of an open directory, which may be open as a path only. The call
    must not follow the last component if it is a link. Raises what the call raises, and OSError."""
    if has_proc():
        return call(b"/proc/self/fd/%d/%s" % (directory, name))
    return in_directory(directory, partial(call, name))


def in_directory(directory: int, call: Callable[[], T]) -> T:
    """Call in a thread whose working directory is the open `directory`. Raises what the call raises, and
    OSError: WithoutProcError where a thread cannot have one of its own."""
    from rdc.lean.threads import Threads

    def work() -> T:
        try:
            unshare_working_directory()
        except OSError as error:
            raise WithoutProcError from error
        os.fchdir(directory)
        return call()

    threads = Threads(1, "rdc working directory")
    try:
        return threads.submit(work).result()
    finally:
        threads.close()


@contextmanager
def leading_to(fd: int, directory: int, name: bytes) -> Iterator[bytes | int]:
    """Yield a path or a descriptor of the very entry that is open at `fd`, maybe as a path, and that is no
    symlink. `directory` and `name` say where it was found.

    Raises OSError: WithoutProcError for an entry that must be opened again and cannot be.
    """
    if has_proc():
        yield b"/proc/self/fd/%d" % fd
        return
    again = _opened_again(fd, directory, name)
    try:
        if not os.path.samestat(os.fstat(again), os.fstat(fd)):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        yield again
    finally:
        os.close(again)


def _opened_again(fd: int, directory: int, name: bytes) -> int:
    mode = os.fstat(fd).st_mode
    if stat.S_ISDIR(mode):
        return os.open(b".", _DIRECTORY, dir_fd=fd)
    if not stat.S_ISREG(mode):
        raise WithoutProcError  # to open a device may move it
    try:
        return os.open(name, os.O_RDONLY | _REGULAR, dir_fd=directory)
    except PermissionError:
        try:
            return os.open(name, os.O_WRONLY | _REGULAR, dir_fd=directory)
        except PermissionError:
            raise WithoutProcError from None


def path_of_directory(fd: int) -> bytes:
    """Return the absolute path, free of links, of an open directory. Raises OSError."""
    if has_proc():
        return os.readlink(b"/proc/self/fd/%d" % fd)
    return in_directory(fd, os.getcwdb)
