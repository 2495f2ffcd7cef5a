"""RatedStream: a file that is read no faster than --max-rate allows."""

from __future__ import annotations

import io

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from typing_extensions import Buffer

    from rdc.files.objects.object_file import Rate

__all__ = ["RatedStream"]


class RatedStream(io.RawIOBase):
    """Another stream, which closes with this one."""

    def __init__(self, stream: BinaryIO, rate: Rate) -> None:
        self._stream = stream
        self._rate = rate

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer, /) -> int:
        view = memoryview(buffer).cast("B")
        self._rate.take(len(view))
        content = self._stream.read(len(view))
        view[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._stream.seek(offset, whence)

    def close(self) -> None:
        self._stream.close()
        super().close()
