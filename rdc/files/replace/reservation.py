"""Reservation: blocks that the file system keeps for a file that is being written."""

from __future__ import annotations

import errno
import os

from rdc.files.base.syscalls import fallocate_keep_size
from rdc.files.base.taking_names import is_refused
from rdc.limits.sessions import RESERVED_AHEAD_BYTES

__all__ = ["PREALLOCATE_BYTES", "Reservation"]

PREALLOCATE_BYTES = 1 << 20
"""Files from this size on are checked for free space before the transfer, so that a full disk shows early.
Smaller files would pay a system call each to save a few blocks. The first reservation has this size as well.
"""


class Reservation:
    """What is reserved for one file. Every method raises OSError."""

    __slots__ = ("expected", "size")

    def __init__(self, expected: int | None) -> None:
        """`expected`: the most bytes that the file will have."""
        self.expected = expected
        self.size = 0
        """Bytes that the file system has reserved. 0 if it cannot reserve or no reservation was needed."""

    def begin(self, fd: int) -> None:
        """Reserve the first bytes of a long file. ENOSPC if the file system has less free than expected."""
        size = self.expected
        if size is None or size <= PREALLOCATE_BYTES:
            return
        known = self._reserve(fd, min(size, PREALLOCATE_BYTES))
        if self.size or not known:
            # Checked unless the file system cannot reserve. Such a one may compress, and so hold more than it
            # has free.
            found = os.fstatvfs(fd)
            if size - self.size > found.f_bfree * found.f_frsize and found.f_blocks:
                raise OSError(errno.ENOSPC, "")

    def ahead(self, fd: int, needed: int) -> None:
        """Reserve `needed` bytes and as much again, within RESERVED_AHEAD_BYTES and the expected size.

        Long files thus lie in few extents, and a size that a peer merely announced takes no space.
        """
        ahead = needed + min(needed, RESERVED_AHEAD_BYTES)
        self._reserve(fd, ahead if self.expected is None else min(ahead, self.expected))

    def _reserve(self, fd: int, size: int) -> bool:
        """Return whether this system has the call, whatever its file system answered."""
        try:
            fallocate_keep_size(fd, size - self.size, self.size)  # not again what became a hole
        except OSError as error:
            if not is_refused(error) or error.errno == errno.EFBIG:
                raise
            return error.errno != errno.ENOSYS
        self.size = size
        return True
