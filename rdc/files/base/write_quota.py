"""WriteQuota: how much may still be written below a Root, so that a peer cannot fill a shared file system."""

from __future__ import annotations

from _thread import allocate_lock  # threading costs each side of a remote sync 1.4 ms

__all__ = ["ENTRY_BYTES", "WriteQuota"]

ENTRY_BYTES = 4096
"""Bytes charged for a new entry besides its content, about the size of its inode and name. Empty files fill a
file system too."""


class WriteQuota:
    """A budget that only decreases. Several Roots and threads may share one."""

    __slots__ = ("_left", "_lock", "size")

    def __init__(self, size: int) -> None:
        """`size` is the budget in bytes."""
        self.size = size
        self._left = size
        self._lock = allocate_lock()

    def covers(self, size: int) -> bool:
        """Return whether `size` bytes are left."""
        return size <= self._left

    def take(self, size: int) -> bool:
        """Charge `size` bytes that are about to be written. If they exceed the budget, charge nothing and
        return False."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True
