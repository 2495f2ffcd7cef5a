"""Answers that are still to come for files that were given up: each is dropped as it comes."""

from __future__ import annotations

from collections import deque

from rdc.protocol.messages.registry import BlockAnswer, FileEnd, FileFailed, Literals, NodeAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.session.transfer.file_message import FileMessage

__all__ = ["StaleAnswers"]


class StaleAnswers:
    """By file, one for each request that was sent. Only nodes come in several messages a request."""

    def __init__(self) -> None:
        self._ends: dict[int, deque[int | None]] = {}

    def __bool__(self) -> bool:
        return bool(self._ends)

    def expect(self, file: int, ends: Sequence[int | None]) -> None:
        """Requests of a file that are no longer of use, in the order they were sent: the last node of a
        NodeRequest, None for any other."""
        if ends:
            self._ends[file] = deque(ends)

    def drop(self, message: FileMessage) -> bool:
        """Whether this message belongs to such a request."""
        ends = self._ends.get(message.file)
        if ends is None:
            return False
        if isinstance(message, NodeAnswer):
            if ends[0] is None:
                return False
            ended = message.nodes[-1] == ends[0]
        elif isinstance(message, FileEnd):
            if message.digest:
                return False  # of the whole file, which was asked for instead
            ended = True
        else:
            ended = isinstance(message, BlockAnswer | FileFailed | Literals)
        if ended:
            ends.popleft()
            if not ends:
                del self._ends[message.file]
        return True
