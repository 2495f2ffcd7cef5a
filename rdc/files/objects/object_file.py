"""ObjectFile: an object open for reading, as SourceFile is a file. What is read is of one version of it."""

from __future__ import annotations

import io

from rdc.errors import FileChangedError, one_line, printable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from typing_extensions import Buffer

    from rdc.files.depth.read_rate import ReadRate

__all__ = ["OBJECT_AHEAD_BYTES", "ObjectFile"]

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
        """What the store says of its content: another one means other bytes."""

    def rest(self) -> None:
        """As SourceFile's. The store's versions need no clock."""

    def check_unchanged(self) -> None:
        """As SourceFile's. The store has refused other versions already."""

    def stream(self) -> io.BufferedReader:
        """The content from the start. Reading raises OSError."""
        return io.BufferedReader(_ObjectStream(self._file, self._rate), 1 << 16)

    def whole(self) -> bytes:
        """The whole content, for small objects. Raises OSError."""
        content = self.stream().read()
        if len(content) != self.size:
            raise FileChangedError(
                self._path, f"{printable(self._path)}: expected {self.size} bytes, found {len(content)}"
            )
        return content

    def __enter__(self) -> ObjectFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
