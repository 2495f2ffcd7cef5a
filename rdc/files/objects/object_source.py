"""ObjectSource: an object as a SourceFile. What is read is of the version that was listed."""

from __future__ import annotations

from rdc.files.base.os_errors import changed
from rdc.files.root.source_file import SPAN_BYTES, SourceFile
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array
    from collections.abc import Callable, Iterator

    from rdc.lean.threads import Task, Threads

__all__ = ["ObjectSource"]

RANGE_BYTES = 4 << 20
"""Bytes of a range that is asked for while an object is read from its start. A request takes as long as
half of it takes to come."""

RANGES_AHEAD = 2
"""Ranges under way while one is used."""

RANGES_READ = 3
"""Ranges that stay in memory once they were used. A sample of chunks is read again then: they are at most
eight spans back."""


class ObjectSource(SourceFile):
    """An object without a descriptor. All ranges are of one version, so check_unchanged has nothing to
    find."""

    __slots__ = ("_ahead", "_ranges", "_read", "_threads")

    def __init__(
        self, path: bytes, shown: bytes, size: int, version: int, read: Callable[[int, int], bytes]
    ) -> None:
        """`read`: returns the bytes of an offset and a length, of this version alone. It raises FileError."""
        self._read = read
        self._path = path
        self._shown = shown
        self._fd = -1
        self._outlasted = True
        self._ranges: dict[int, bytes | Task[bytes]] = {}
        """What was read or is under way, by the number of the range."""
        self._threads: Threads | None = None
        self._ahead = 0
        self.identity = Identity(0, version, size, 0, 0)
        self.size = size
        self.allocated = size
        self.links = 1
        self.on_span = None
        self.rate = None

    def fill(self, content: bytes) -> None:
        """Gives the whole content, which was read with that of others."""
        self._ranges = {
            at: content[at * RANGE_BYTES :][:RANGE_BYTES] for at in range(1 + self.size // RANGE_BYTES)
        }

    def spans(self, size: int = SPAN_BYTES) -> Iterator[bytes]:
        """As a file's. The next ranges are under way meanwhile."""
        self._ahead = RANGES_AHEAD if self.size > RANGE_BYTES else 0
        try:
            yield from super().spans(size)
        finally:
            self._ahead = 0

    def pread(self, offset: int, length: int) -> bytes:
        if offset + length > self.size:
            raise changed(self._path, self._shown, f"{offset + length} bytes", f"{self.size}")
        numbers = range(offset // RANGE_BYTES, -(-(offset + length) // RANGE_BYTES))
        if not self._ahead and any(number not in self._ranges for number in numbers):
            return self._read(offset, length)
        parts = []
        for number in numbers:
            start = number * RANGE_BYTES
            content = self._range(number)
            parts.append(content[max(offset - start, 0) : offset + length - start])
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _range(self, number: int) -> bytes:
        """A range, with the next ones under way. Raises FileError."""
        if self._ahead:
            last = (self.size - 1) // RANGE_BYTES
            for one in range(number, min(number + self._ahead, last) + 1):
                if one not in self._ranges:
                    self._ranges[one] = self._begun(one)
        content = self._ranges[number]
        if not isinstance(content, bytes):
            content = self._ranges[number] = content.result()
            self._ranges.pop(number - RANGES_READ, None)
        return content

    def _begun(self, number: int) -> bytes | Task[bytes]:
        start = number * RANGE_BYTES
        length = min(RANGE_BYTES, self.size - start)
        if self._threads is None:
            from rdc.lean.threads import Threads

            self._threads = Threads(RANGES_AHEAD, "rdc object")
        try:
            return self._threads.submit(self._read, start, length)
        except RuntimeError:
            # The system refuses even one thread.
            return self._read(start, length)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        buffer[:] = self.pread(offset, len(buffer))

    def read_ranges(self, rows: array[int]) -> bytes:
        return b"".join(map(self.pread, rows[0::2], rows[1::2]))

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        buffer[:] = self.read_ranges(rows)

    def again(self) -> SourceFile:
        return self

    def check_unchanged(self) -> None:
        """The store gave bytes of no other version."""

    def close(self) -> None:
        if self._threads is not None:
            self._threads.close()
            self._threads = None
