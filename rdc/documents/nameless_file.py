"""NamelessFile: bytes on disk that vanish with the object, however the process ends."""

from __future__ import annotations

import mmap
import os
import tempfile

from rdc.errors import RdcError
from rdc.files.base.os_errors import failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import Buffer

__all__ = ["NamelessFile"]


class NamelessFile:
    """An unlinked file in TMPDIR. Its pages are the kernel's, so what is in it takes no memory of the
    process."""

    def __init__(self) -> None:
        """Raises RdcError if TMPDIR cannot be written to."""
        self.fd = -1
        self.size = 0
        try:
            with tempfile.TemporaryFile(buffering=0) as file:
                self.fd = os.dup(file.fileno())
        except OSError as error:
            raise _failure(error, "make it") from error

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def append(self, spans: Iterable[Buffer]) -> None:
        """Raises OutOfSpaceError or another RdcError."""
        try:
            for span in spans:
                left = memoryview(span).cast("B")
                while left:
                    count = os.write(self.fd, left)
                    self.size += count
                    left = left[count:]
        except OSError as error:
            raise _failure(error, "write it") from error

    def mapped(self) -> memoryview:
        """Map all bytes, read-only. Raises RdcError."""
        if not self.size:
            return memoryview(b"")
        try:
            return memoryview(mmap.mmap(self.fd, self.size, access=mmap.ACCESS_READ))
        except OSError as error:
            raise _failure(error, "map it") from error

    def read(self, at: int, size: int) -> bytes:
        """Exactly `size` bytes from `at` on. Raises RdcError."""
        parts = []
        try:
            while size:
                part = os.pread(self.fd, size, at)
                if not part:
                    raise RdcError("a temporary file became shorter; run again")
                parts.append(part)
                at += len(part)
                size -= len(part)
        except OSError as error:
            raise _failure(error, "read it") from error
        return b"".join(parts)


def _failure(error: OSError, doing: str) -> RdcError:
    # tempfile chooses the directory; this names the usual one.
    shown = b"temporary file in " + os.fsencode(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108 - only shown
    return failure(error, b"", shown, doing)
