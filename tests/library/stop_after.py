"""A stop signal that is set after a number of questions."""

from __future__ import annotations


class StopAfter:
    """Answers `is_set` with False `count` times, then with True."""

    def __init__(self, count: int) -> None:
        self.left = count

    def is_set(self) -> bool:
        self.left -= 1
        return self.left < 0
