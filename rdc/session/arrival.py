"""Writes one wanted file aside from all of its content, as that comes."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from blake3 import blake3

from rdc.errors import RdcError, printable
from rdc.session.mismatch import MismatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.replace import Replacement
    from rdc.model.entries import Identity
    from rdc.threads import Task, Threads

__all__ = ["Arrival"]

WRITES_BEHIND = 2
"""Messages that wait to be written: enough for both threads to be busy, and a kill costs no more of what came
than this megabyte."""


class Arrival:
    """Writes `temporary` from a whole file as it comes, its digest as trailer."""

    def __init__(
        self,
        file: int,
        path: bytes,
        temporary: Replacement,
        expected: Identity | None,
        writer: Threads | None = None,
    ) -> None:
        """`writer`: a thread that writes while the caller receives and hashes what follows."""
        self.file = file
        self.path = path
        self.temporary = temporary
        self.expected = expected
        """What was at the path when the content began to come; None: nothing."""
        self._hasher = blake3()
        self._writer = writer
        self._writing: deque[Task[None]] = deque()
        self.size = 0
        """Bytes that came."""

    def push(self, payload: bytes | memoryview) -> None:
        """Takes the next bytes; they may be written a little later, and what goes wrong with that is raised
        then. They must stay as they are."""
        self.size += len(payload)
        if self._writer is None:
            self.temporary.write(payload)
        else:
            while len(self._writing) >= WRITES_BEHIND:
                self._writing.popleft().result()
            self._writing.append(self._writer.submit(self.temporary.write, payload))
        self._hasher.update(payload)

    def keep(self) -> None:
        """Leaves what came for the next run to go on from."""
        self._stop_writing()
        self.temporary.keep()

    def abandon(self) -> None:
        """Removes what came."""
        self._stop_writing()
        self.temporary.abandon()

    def _stop_writing(self) -> None:
        """Waits until nothing is being written: before, nobody else may touch the temporary."""
        while self._writing:
            with suppress(RdcError):
                self._writing[0].result()
            self._writing.popleft()

    def finish(self, digest: bytes) -> None:
        """Raises MismatchError unless BLAKE3 of what came is this, and what kept it from being written."""
        while self._writing:
            self._writing.popleft().result()
        if self._hasher.digest() != digest:
            raise MismatchError(
                self.path,
                f"{printable(self.path)}: the content that arrived does not have the announced digest",
            )
