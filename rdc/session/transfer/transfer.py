"""A way in which the content of files arrives, and the queues of files that wait for one."""

from __future__ import annotations

from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from typing import Any, ClassVar

    from rdc.protocol.messages import Message
    from rdc.session.runtime.commands import Conversation


class Transfer:
    """One way in which content arrives. It is listed in Transfers from its first use on, which then asks it
    after each message whether it has something to send, and hands it the answers to its requests."""

    rank: ClassVar[int]
    """Its place in the list. What finds out how a file comes precedes what brings it."""
    answers: ClassVar[Collection[type[Message]]]
    """The messages that it may have asked for."""

    @property
    def idle(self) -> bool:
        """Whether no request is outstanding and no file waits."""
        raise NotImplementedError

    @property
    def waits(self) -> bool:
        """Whether `pump` may have something to send. After most messages it has nothing."""
        return not self.idle

    def pump(self, round_: int, *, planned: bool) -> Conversation[None]:
        """Sends the requests that may go now. `planned`: all files are known."""
        raise NotImplementedError

    def expects(self, message: Any) -> bool:
        """Whether a message of `answers` is for this one. If not, the next in the list is asked."""
        return True

    def take(self, message: Any, round_: int) -> Conversation[None]:
        """Takes a message that it expects. Raises ProtocolError if the message does not fit."""
        raise NotImplementedError

    def close(self) -> None:
        """Ends the session. The next run resumes unfinished files from their partial files."""


class FileQueue(deque[int]):
    """Files that wait to be requested, in the order in which they were added."""

    def drained(self, most: int) -> tuple[int, ...]:
        """Takes up to `most` files from the front and sorts them, because requests name files in order."""
        return tuple(sorted(self.popleft() for _ in range(min(most, len(self)))))


class DeferredFiles:
    """New files, deferred until the comparison is complete: only then is it known where their content may be.
    They stay in the order in which they were listed."""

    def __init__(self) -> None:
        self._files = FileQueue()
        self._hints: dict[int, tuple[bytes, ...]] = {}

    def __len__(self) -> int:
        return len(self._files)

    def add(self, file: int, bases: tuple[bytes, ...] = ()) -> None:
        """Adds a file that does not exist locally. `bases`: local files that may have its content."""
        self._files.append(file)
        if bases:
            self._hints[file] = bases

    def drained(self) -> Iterator[tuple[int, tuple[bytes, ...]]]:
        """Takes all files, each with its bases."""
        while self._files:
            file = self._files.popleft()
            yield file, self._hints.pop(file, ())
