"""Read leases: the kernel's word that nobody has a file open for writing, and that nobody will unseen.

fcntl(2), "Leases": a read lease is granted only while no descriptor and no mapping anywhere can write to the
file. Whoever then opens it for writing, or truncates it, waits until the lease is given up (or
/proc/sys/fs/lease-break-time has passed, 45 s), and from that moment `is_intact` is false.
"""

from __future__ import annotations

import _signal  # signal makes enums of the numbers, for 0.4 ms of each start
import errno
import fcntl
import os

__all__ = ["is_intact", "take_lease"]


def take_lease(fd: int) -> None:
    """Take a read lease on a file open for reading only; closing the descriptor gives it up.

    Raises OSError: EAGAIN where somebody has it open for writing, EACCES for a file of somebody else, EINVAL
    or ENOLCK where the file system knows no leases, ENOSYS on other systems than Linux.
    """
    if not hasattr(fcntl, "F_SETLEASE"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    # Who breaks it sends a signal. SIGIO, the default, would end the process; SIGURG is ignored unless asked
    # for, and is_intact is asked instead.
    fcntl.fcntl(fd, fcntl.F_SETSIG, _signal.SIGURG)
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)


def is_intact(fd: int) -> bool:
    """Whether the lease still stands, with nobody waiting to write. Raises OSError."""
    return fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_RDLCK
