"""The lock by which a writer keeps sweeps away from its temporary."""

from __future__ import annotations

import errno
import fcntl

__all__ = ["lock_temporary"]


def lock_temporary(fd: int) -> bool:
    """Take the lock; return False if another process holds it. File systems without locks return True: sweeps
    cannot lock there either."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in {errno.EBADF, errno.EINTR}:
            raise
    return True
