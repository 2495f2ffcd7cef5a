"""Writer of one whole file: writes arriving content into a temporary and verifies its digest."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from blake3 import blake3

from rdc.errors import RdcError, printable
from rdc.session.trees.errors import MismatchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.files.replace.replace import Replacement
    from rdc.model.entries import Identity
    from rdc.threads import Task, Threads

__all__ = ["WholeFileWriter"]

WRITES_BEHIND = 2
"""Messages that wait to be written. Two keep both threads busy, and a kill loses at most this megabyte."""


class WholeFileWriter:
    """Writes `temporary` from the content of a whole file. The digest comes after the content."""

    def __init__(
        self,
        file: int,
        path: bytes,
        temporary: Replacement,
        expected: Identity | None,
        writer: Threads | None = None,
        *,
        cloned: bool = False,
    ) -> None:
        """`writer`: a thread that writes while the caller receives and hashes the next message. `cloned`: the
        temporary has the content already, as a clone of the very file that the source reads."""
        self.file = file
        self.path = path
        self.temporary = temporary
        self.expected = expected
        """The file that was at `path` when the content began to arrive; None if there was none."""
        self._hasher = blake3()
        self._writer = writer
        self._cloned = cloned
        self._writing: deque[Task[None]] = deque()
        self.size = 0
        """Bytes received."""

    def push(self, payload: bytes | memoryview) -> None:
        """Takes the next bytes, which must not change afterwards.

        They may be written later. Raises FileError if these or earlier bytes cannot be written.
        """
        self.size += len(payload)
        if self._cloned:
            self.temporary.take_clone(len(payload))
        elif self._writer is None:
            self.temporary.write(payload)
        else:
            while len(self._writing) >= WRITES_BEHIND:
                self._writing.popleft().result()
            self._writing.append(self._writer.submit(self.temporary.write, payload))
        self._hasher.update(payload)

    def keep(self) -> None:
        """Leaves what was received for the next run to resume from."""
        self._stop_writing()
        self.temporary.keep()

    def abandon(self) -> None:
        """Removes what was received."""
        self._stop_writing()
        self.temporary.abandon()

    def _stop_writing(self) -> None:
        """Waits until the thread writes nothing more: until then only it may touch the temporary."""
        while self._writing:
            with suppress(RdcError):
                self._writing[0].result()
            self._writing.popleft()

    def finish(self, digest: bytes) -> None:
        """Waits until everything is written. Raises MismatchError unless `digest` is BLAKE3 of the content,
        FileError if it could not be written."""
        while self._writing:
            self._writing.popleft().result()
        if self._hasher.digest() != digest:
            raise MismatchError(
                self.path,
                f"{printable(self.path)}: the content that arrived does not have the announced digest",
            )
