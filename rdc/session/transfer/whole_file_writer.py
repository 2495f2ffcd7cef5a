"""Writer of one whole file: writes arriving content into a temporary and verifies its digest."""

from __future__ import annotations

from collections import deque
from contextlib import suppress

from blake3 import blake3

from rdc.errors import RdcError, printable
from rdc.session.trees.errors import MismatchError
from rdc.signature.tree import HollowDigest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.files.replace.replacement import Replacement
    from rdc.lean.threads import Task, Threads
    from rdc.model.entries import Identity

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
        self._hasher: HollowDigest | blake3 = blake3()
        self._holes: deque[tuple[int, int]] = deque()
        """Holes to come: bytes of data before each, and its own."""
        self._writer = writer
        self._cloned = cloned
        self._writing: deque[Task[None]] = deque()
        self.size = 0
        """Bytes received."""

    def expect(self, gaps: Sequence[int], lengths: Sequence[int]) -> None:
        """Takes the holes of the next bytes. The first ones come before any content."""
        if not self.size:
            self._hasher = HollowDigest()
        self._holes.extend(zip(gaps, lengths, strict=True))
        if not gaps[0]:
            self.push(b"")  # what begins with a hole, and may be nothing else

    def push(self, payload: bytes | memoryview) -> None:
        """Takes the next bytes, which must not change afterwards.

        They may be written later. Raises FileError if these or earlier bytes cannot be written.
        """
        parts = self._split(payload) if self._holes else [(payload, 0)]
        if self._writer is None:
            self._write(parts)
        else:
            while len(self._writing) >= WRITES_BEHIND:
                self._writing.popleft().result()
            self._writing.append(self._writer.submit(self._write, parts))
        for content, hole in parts:
            self.size += len(content) + hole
            self._hasher.update(content)
            if hole and isinstance(self._hasher, HollowDigest):
                self._hasher.skip(hole)

    def _split(self, payload: bytes | memoryview) -> list[tuple[bytes | memoryview, int]]:
        """Returns parts of the payload, each with the bytes of the hole after it; 0 for none."""
        parts, view, at = list[tuple[bytes | memoryview, int]](), memoryview(payload), 0
        while self._holes and at + self._holes[0][0] <= len(view):
            gap, hole = self._holes.popleft()
            parts.append((view[at : at + gap], hole))
            at += gap
        if self._holes:
            gap, hole = self._holes[0]
            self._holes[0] = gap - (len(view) - at), hole
        return [*parts, (view[at:], 0)]

    def _write(self, parts: Sequence[tuple[bytes | memoryview, int]]) -> None:
        for content, hole in parts:
            if self._cloned:
                self.temporary.take_clone(len(content))
                self.temporary.take_clone(hole, hole=True)
                continue
            self.temporary.write(content)
            if hole:
                self.temporary.write_zeros(hole)

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
        """Waits until everything is written. Raises MismatchError unless `digest` is that of the content,
        FileError if it could not be written."""
        while self._writing:
            self._writing.popleft().result()
        if self._holes or self._hasher.digest() != digest:
            raise MismatchError(
                self.path,
                f"{printable(self.path)}: the content that arrived does not have the announced digest",
            )
