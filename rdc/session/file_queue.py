"""Files that wait to be asked for, by their ordinals."""

from __future__ import annotations

from collections import deque

__all__ = ["FileQueue"]


class FileQueue(deque[int]):
    """First come, first asked for."""

    def drained(self, most: int) -> tuple[int, ...]:
        """Takes up to `most` from the front, increasing: requests name files so."""
        return tuple(sorted(self.popleft() for _ in range(min(most, len(self)))))
