"""The content of an open file or object as a stream."""

from __future__ import annotations

import os
from io import BufferedReader, FileIO

from rdc.files.objects.object_file import ObjectFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import BinaryIO

    from typing_extensions import Buffer

    from rdc.files.depth.read_rate import ReadRate
    from rdc.files.root.source_file import SourceFile

__all__ = ["opened_stream"]


class _RatedFile(FileIO):
    """A file whose reads count."""

    def __init__(self, fd: int, rate: ReadRate) -> None:
        super().__init__(fd, "rb")
        self._rate = rate

    def readinto(self, buffer: Buffer) -> int:
        count = super().readinto(buffer) or 0
        self._rate.take(count)
        return count


def opened_stream(source: SourceFile | ObjectFile) -> BinaryIO:
    """Return the content from the start on, or from where the file's descriptor is. It obeys the file's
    rate."""
    if isinstance(source, ObjectFile):
        return source.stream()
    if source.rate is not None:
        return BufferedReader(_RatedFile(os.dup(source.fileno()), source.rate))
    return os.fdopen(os.dup(source.fileno()), "rb")
