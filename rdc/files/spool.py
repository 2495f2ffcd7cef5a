"""Bytes that only grow: in memory while they are few, in an unlinked temporary file when they are many."""

from __future__ import annotations

import mmap
import os
from types import TracebackType

from rdc.errors import RdcError
from rdc.files.failure import failure
from rdc.limits import SPOOL_MEMORY_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO

__all__ = ["Spool"]

TAIL_BYTES = 1 << 20
"""Bytes gathered before a write to the file: records of some 30 bytes must not cost a system call each."""


class Spool:
    """Append-only bytes. `view` maps them, so that the kernel, not this process, decides what stays in
    memory.

    A view is what was there when it was taken and stays valid when more is appended and when the spool is
    closed. The file has no name: nothing is left behind, however the process ends.
    """

    __slots__ = ("_file", "_limit", "_size", "_tail", "_view")

    def __init__(self, limit: int = SPOOL_MEMORY_BYTES) -> None:
        """`limit`: bytes kept in memory before the file is made (in TMPDIR)."""
        self._limit = limit
        self._file: IO[bytes] | None = None
        self._size = 0
        self._tail = bytearray()
        """What is not in the file: everything, until the limit is passed."""
        self._view: memoryview | None = None
        """The last view, while nothing was appended since."""

    def __len__(self) -> int:
        return self._size

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Raises OutOfSpaceError or another RdcError when the temporary file cannot be written."""
        self._view = None
        try:
            self._tail += data
        except BufferError:
            # A view of this very array is alive: it keeps it, and the spool goes on with a copy.
            self._tail = self._tail + data
        self._size += memoryview(data).nbytes
        if len(self._tail) > (self._limit if self._file is None else TAIL_BYTES):
            self._write_tail()

    def view(self) -> memoryview:
        """All bytes, read-only."""
        if self._view is None:
            if self._file is None:
                self._view = memoryview(self._tail).toreadonly()
            else:
                if self._tail:
                    self._write_tail()
                try:
                    mapped = mmap.mmap(self._file.fileno(), self._size, access=mmap.ACCESS_READ)
                except OSError as error:
                    raise self._failure(error, "map it") from error
                self._view = memoryview(mapped)
        return self._view

    def close(self) -> None:
        """Give back memory and file; views still held keep what they show."""
        self._view = None
        self._tail = bytearray()
        self._size = 0
        if self._file is not None:
            self._file.close()
            self._file = None

    def __enter__(self) -> Spool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_tail(self) -> None:
        try:
            if self._file is None:
                import tempfile

                self._file = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - closed by close()
            left = memoryview(self._tail)
            while left:
                left = left[os.write(self._file.fileno(), left) :]
        except OSError as error:
            raise self._failure(error, "write it") from error
        self._tail = bytearray()

    @staticmethod
    def _failure(error: OSError, doing: str) -> RdcError:
        # Where the file is made is tempfile's choice.
        shown = b"temporary file in " + os.fsencode(os.environ.get("TMPDIR", "/tmp"))  # noqa: S108 - only shown
        return failure(error, b"", shown, doing)
