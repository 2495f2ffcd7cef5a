"""Reservation: blocks that the file system keeps for a file that is being written."""

from __future__ import annotations

import errno
import os

from rdc.files.base.syscalls import fallocate_keep_size
from rdc.files.base.taking_names import is_refused
from rdc.limits.sessions import RESERVED_AHEAD_BYTES

__all__ = ["NO_ROOM", "PREALLOCATE_BYTES", "Reservation"]

PREALLOCATE_BYTES = 1 << 20
"""Files from this size on are checked for free space before the transfer, so that a full disk shows early.
Smaller files would pay a system call each to save a few blocks. The first reservation has this size as well.
"""


NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
"""Errors of a file system that is full, or of a user who has the space of a quota."""


class Reservation:
    """What is reserved for one file. Every method raises OSError."""

    __slots__ = ("_ended", "expected", "size")

    def __init__(self, expected: int | None, *, ended: bool = False) -> None:
        """`expected`: the most bytes that will be written. `ended`: only the first bytes are reserved."""
        self.expected = expected
        self.size = 0
        """Bytes that the file system has reserved. 0 if it cannot reserve or no reservation was needed."""
        self._ended = ended

    def begin(self, fd: int) -> None:
        """Reserve the first bytes of a long file. ENOSPC if the file system has less free than is expected to
        be written."""
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

        Long files thus lie in few extents, and a size that a peer merely announced takes no space. A write
        needs no reservation: the bytes ahead may become a hole, so where they do not fit none are reserved
        any more.
        """
        if self._ended or not self.size or needed <= self.size:
            return
        ahead = needed + min(needed, RESERVED_AHEAD_BYTES)
        try:
            self._reserve(fd, ahead if self.expected is None else min(ahead, self.expected))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self.end()

    def end(self) -> None:
        """Reserve nothing more: the file has a hole, and a reservation would fill the next one."""
        self._ended = True

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
