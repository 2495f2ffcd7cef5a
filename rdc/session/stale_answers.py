"""Answers that are still to come for files that were given up: each is dropped as it comes."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["StaleAnswers"]


class StaleAnswers:
    """By file, one for each request that was sent. Only nodes come in several messages a request."""

    def __init__(self) -> None:
        self._ends: dict[int, deque[int | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._ends)

    def __contains__(self, file: int) -> bool:
        return file in self._ends

    def expect(self, file: int, ends: Sequence[int | None]) -> None:
        """Requests of a file that nobody waits for any more, in the order they were sent: of a NodeRequest
        the last node, None for any other."""
        if ends:
            self._ends[file] = deque(ends)

    def expire(self, file: int) -> bool:
        """The oldest of them was answered, or failed; False when there was none."""
        ends = self._ends.get(file)
        if ends is None:
            return False
        ends.popleft()
        if not ends:
            del self._ends[file]
        return True

    def expire_nodes(self, file: int, last: int) -> bool:
        """Nodes came, up to `last`; False when none were to come."""
        ends = self._ends.get(file)
        if ends is None or ends[0] is None:
            return False
        if last == ends[0]:
            self.expire(file)
        return True
