"""Read leases: the kernel's guarantee that no process has a file open for writing, or will without notice.

fcntl(2), "Leases": a read lease is granted only while no descriptor and no mapping can write to the file. A
process that then opens it for writing, or truncates it, waits until the lease is released or
/proc/sys/fs/lease-break-time (45 s) has passed. From that moment `is_intact` returns False.
"""

from __future__ import annotations

import errno
import fcntl
import os
import signal

__all__ = ["is_intact", "take_lease"]


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
