"""How much may still be written below a Root: a peer must not fill a file system that others need."""

from __future__ import annotations

from _thread import allocate_lock  # threading's locks are these

__all__ = ["ENTRY_BYTES", "Allowance"]

ENTRY_BYTES = 4096
"""What a new entry counts besides its content, about what an inode and its name take: empty files fill a file
system too."""


class Allowance:
    """Counts down. Any number of Roots and threads may share one."""

    __slots__ = ("_left", "_lock", "size")

    def __init__(self, size: int) -> None:
        """`size`: bytes."""
        self.size = size
        self._left = size
        self._lock = allocate_lock()

    def covers(self, size: int) -> bool:
        """Whether so many bytes are left."""
        return size <= self._left

    def take(self, size: int) -> bool:
        """Counts bytes that are about to be written; False, and nothing is counted, where they are too
        many."""
        with self._lock:
            if size > self._left:
                return False
            self._left -= size
            return True
