"""Reads objects, as a whole and as a seekable file."""

from __future__ import annotations

import io

from rdc.errors import FileChangedError, one_line, printable
from rdc.files.base.paths import changed
from rdc.files.root.source_file import SPAN_BYTES, ContentFile
from rdc.model.entries import Identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from typing_extensions import Buffer

    from rdc.files.depth import ReadRate
    from rdc.lean.threads import Task, Threads


# ObjectSource: an object as a SourceFile. What is read is of the version that was listed.

RANGE_BYTES = 4 << 20
"""Bytes of a range that is asked for while an object is read from its start. A request takes as long as
half of it takes to come."""

RANGES_AHEAD = 2
"""Ranges under way while one is used."""

RANGES_READ = 3
"""Ranges that stay in memory once they were used. A sample of chunks is read again then: they are at most
eight spans back."""


class ObjectSource(ContentFile):
    """An object without a descriptor. All ranges are of one version, so check_unchanged has nothing to
    find."""

    __slots__ = ("_ahead", "_ranges", "_read", "_threads")

    def __init__(
        self, path: bytes, shown: bytes, size: int, version: int, read: Callable[[int, int], bytes]
    ) -> None:
        """`read`: returns the bytes of an offset and a length, of this version alone. It raises FileError."""
        self._read = read
        self.path = path
        self._shown = shown
        self._fd = -1
        self._outlasted = True
        self._ranges: dict[int, bytes | Task[bytes]] = {}
        """The ranges that were read or are under way, by number."""
        self._threads: Threads | None = None
        self._ahead = 0
        self.identity = Identity(0, version, size, 0, 0)
        self.size = size
        self.allocated = size
        self.taken = None
        self.links = 1
        self.on_span = None
        self.rate = None

    def fill(self, content: bytes) -> None:
        """Give the whole content, which was read with that of others."""
        self._ranges = {
            at: content[at * RANGE_BYTES :][:RANGE_BYTES] for at in range(1 + self.size // RANGE_BYTES)
        }

    def spans(self, size: int = SPAN_BYTES) -> Iterator[bytes]:
        """Yield the spans, as of a file. The next ranges are under way meanwhile."""
        self._ahead = RANGES_AHEAD if self.size > RANGE_BYTES else 0
        try:
            yield from super().spans(size)
        finally:
            self._ahead = 0

    def pread(self, offset: int, length: int) -> bytes:
        if offset + length > self.size:
            raise changed(self.path, self._shown, f"{offset + length} bytes", f"{self.size}")
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
        """Return a range, with the next ones under way. Raises FileError."""
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

    def check_unchanged(self) -> None:
        """Accept what was read: the store gave bytes of no other version."""

    def close(self) -> None:
        if self._threads is not None:
            self._threads.close()
            self._threads = None


# ObjectFile: an object open for reading, as SourceFile is a file. What is read is of one version of it.

OBJECT_AHEAD_BYTES = 4 << 20
"""Bytes that are asked for beyond what is needed, since reads go on. Two such ranges are in memory."""


class ObjectFile:
    """A context manager that closes it.

    Opening asks for size and ETag. Each range is asked for with this ETag, so the store itself refuses to
    give bytes of another version.
    """

    def __init__(self, file: Any, path: bytes, rate: ReadRate | None = None) -> None:
        self._file = file
        self._path = path
        self._rate = rate
        self.size = int(file.size)
        self.version = str(file.details.get("ETag", ""))
        """The version of its content by the store: another one means other bytes."""

    def rest(self) -> None:
        """Rest as SourceFile does. The store's versions need no clock."""

    def check_unchanged(self) -> None:
        """Check as SourceFile does. The store has refused other versions already."""

    def stream(self) -> io.BufferedReader:
        """Return the content from the start. Reading raises OSError."""
        return io.BufferedReader(_ObjectStream(self._file, self._rate), 1 << 16)

    def whole(self) -> bytes:
        """Return the whole content, for small objects. Raises OSError."""
        content = self.stream().read()
        if len(content) != self.size:
            raise FileChangedError(
                self._path, f"{printable(self._path)}: expected {self.size} bytes, found {len(content)}"
            )
        return content

    def __enter__(self) -> ObjectFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


class _ObjectStream(io.RawIOBase):
    """Raises only OSError, whatever the store's library raises."""

    def __init__(self, file: Any, rate: ReadRate | None) -> None:
        self._file = file
        self._rate = rate

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer).cast("B")
        try:
            content = self._file.read(len(view))
        except Exception as error:
            raise OSError(one_line(str(error))[:200] or type(error).__name__) from error
        if self._rate is not None:
            self._rate.take(len(content))
        view[: len(content)] = content
        return len(content)
