"""Spool: append-only bytes, in memory while few and in an unlinked temporary file when many."""

from __future__ import annotations

import mmap
import os

from rdc.errors import RdcError
from rdc.files.base.directory_descriptors import Closing
from rdc.files.base.paths import failure
from rdc.limits import SPOOL_MEMORY_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO


TAIL_BYTES = 1 << 20
"""Bytes gathered before a write to the file. Records have about 30 bytes and must not cost a system call
each."""


class Spool(Closing):
    """Append-only bytes. `view` maps the file, so the kernel decides what stays in memory.

    A view shows the bytes present when it was taken. It stays valid when more is appended and when the spool
    is closed. The file has no name, so nothing is left behind however the process ends.
    """

    __slots__ = ("_file", "_limit", "_size", "_tail", "_view")

    def __init__(self, limit: int = SPOOL_MEMORY_BYTES) -> None:
        """`limit` is the number of bytes kept in memory before a file in TMPDIR is made."""
        self._limit = limit
        self._file: IO[bytes] | None = None
        self._size = 0
        self._tail = bytearray()
        """Bytes that are not in the file; all bytes until the limit is passed."""
        self._view: memoryview | None = None
        """The last view, until something is appended."""

    def __len__(self) -> int:
        return self._size

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Append `data`. Raises OutOfSpaceError or another RdcError if the temporary file cannot be
        written."""
        self._view = None
        try:
            self._tail += data
        except BufferError:
            # A view of this array exists and keeps it; the spool continues with a copy.
            self._tail = self._tail + data
        self._size += memoryview(data).nbytes
        if len(self._tail) > (self._limit if self._file is None else TAIL_BYTES):
            self._write_tail()

    def view(self) -> memoryview:
        """Return all bytes, read-only. Raises RdcError."""
        if self._view is None:
            if self._file is None:
                self._view = memoryview(self._tail).toreadonly()
            else:
                if self._tail:
                    self._write_tail()
                try:
                    mapped = mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)
                except OSError as error:
                    raise temporary_failure(error, "map it") from error
                self._view = memoryview(mapped)
        return self._view

    def close(self) -> None:
        """Free memory and file. Existing views keep their content."""
        self._view = None
        self._tail = bytearray()
        self._size = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write_tail(self) -> None:
        try:
            if self._file is None:
                import tempfile

                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by close()
            left = memoryview(self._tail)
            while left:
                left = left[os.write(self._file.fileno(), left) :]
        except OSError as error:
            raise temporary_failure(error, "write it") from error
        self._tail = bytearray()


def temporary_failure(error: OSError, doing: str) -> RdcError:
    """Return the RdcError for a failed call on a file that tempfile made."""
    # tempfile chooses the directory; this names the usual one.
    shown = b"temporary file in " + os.fsencode(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108 - only shown
    return failure(error, b"", shown, doing)
