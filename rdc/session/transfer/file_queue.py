"""A queue of files that wait to be requested, named by their rows in the manifest."""

from __future__ import annotations

from collections import deque

__all__ = ["FileQueue"]


class FileQueue(deque[int]):
    """Files in the order in which they were added."""

    def drained(self, most: int) -> tuple[int, ...]:
        """Takes up to `most` files from the front and sorts them, because requests name files in order."""
        return tuple(sorted(self.popleft() for _ in range(min(most, len(self)))))
