"""OpenParts: the columns of many parts, of which only some are open at a time, in files or in bytes on
disk that vanish with the process.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from _thread import allocate_lock
from array import array
from collections import OrderedDict

from rdc.documents.parts.part_file import Block, Part, read_part
from rdc.errors import ExitCode, RdcError, printable
from rdc.files.base.spool import temporary_failure
from rdc.files.root.source_file import read_ranges_into
from rdc.lean.records import Record
from rdc.limits import OPEN_PARTS
from rdc.model.entries import little_endian_integers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from typing_extensions import Buffer


# NamelessFile: bytes on disk that vanish with the object, however the process ends.


class NamelessFile:
    """An unlinked file in TMPDIR. Its pages are the kernel's, so what is in it takes no memory of the
    process."""

    def __init__(self) -> None:
        """Open a new empty file. Raises RdcError if TMPDIR cannot be written to."""
        self.fd = -1
        self.size = 0
        try:
            with tempfile.TemporaryFile(buffering=0) as file:
                self.fd = os.dup(file.fileno())
        except OSError as error:
            raise temporary_failure(error, "make it") from error

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def append(self, spans: Iterable[Buffer]) -> None:
        """Append bytes to the file. Raises OutOfSpaceError or another RdcError."""
        try:
            for span in spans:
                left = memoryview(span).cast("B")
                while left:
                    count = os.write(self.fd, left)
                    self.size += count
                    left = left[count:]
        except OSError as error:
            raise temporary_failure(error, "write it") from error

    def mapped(self) -> memoryview:
        """Map all bytes, read-only. Raises RdcError."""
        if not self.size:
            return memoryview(b"")
        try:
            return memoryview(mmap.mmap(self.fd, self.size, access=mmap.ACCESS_READ))
        except OSError as error:
            raise temporary_failure(error, "map it") from error

    def read(self, at: int, size: int) -> bytes:
        """Return exactly `size` bytes from `at` on. Raises RdcError."""
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
            raise temporary_failure(error, "read it") from error
        return b"".join(parts)


# OpenParts: the columns of many parts, of which only some are open at a time.


class PartSource(Record):
    """One part file: a path, or a file without a name."""

    name: str
    file: NamelessFile | None = None


class OpenParts:
    """Parts by number. Raises RdcError for one that cannot be read; it names the part. Threads may read in
    parallel."""

    def __init__(self, sources: Sequence[PartSource]) -> None:
        self.sources = sources
        self._open: OrderedDict[int, int] = OrderedDict()
        self._lock = allocate_lock()
        """Held while a descriptor is in use, so that no other thread closes it."""

    def __len__(self) -> int:
        return len(self.sources)

    def __del__(self) -> None:
        for fd in self._open.values():
            os.close(fd)

    def name(self, number: int) -> str:
        """Return the part in messages."""
        return printable(self.sources[number].name)

    def check(self, number: int) -> Part:
        """Read and check a whole part. Also raises PartError and UsageError."""
        try:
            with os.fdopen(os.dup(self._descriptor(number)), "rb") as stream:
                stream.seek(0)
                return read_part(stream, self.name(number), number)
        except OSError as error:
            raise self._unreadable(number, error) from error

    def numbers(self, block: Block, typecode: str, column: int, first: int, count: int) -> array[int]:
        """Return `count` numbers of a column of a block, from the `first` on. `column`: where it starts."""
        width = array(typecode).itemsize
        return little_endian_integers(typecode, self.bytes(block, column + width * first, width * count))

    def _read(self, number: int, start: int, size: int) -> bytes:
        try:
            content = self._pread(number, start, size)
            while len(content) < size:
                more = self._pread(number, start + len(content), size - len(content))
                if not more:
                    raise RdcError(
                        f"{self.name(number)}: it became shorter meanwhile; run again",
                        code=ExitCode.STREAM,
                    )
                content += more
        except OSError as error:
            raise self._unreadable(number, error) from error
        return content

    def _pread(self, number: int, start: int, size: int) -> bytes:
        with self._lock:
            return os.pread(self._descriptor(number), size, start)

    def bytes(self, block: Block, at: int, size: int) -> bytes:
        """Return `size` bytes of a block from `at` on."""
        return self._read(block.part, block.start + at, size)

    def read_ranges(self, number: int, ranges: array[int], room: memoryview) -> None:
        """Fill `room` with some bytes of a part. `ranges`: offset and size of each range by turns, typecode
        'Q'."""
        try:
            with self._lock:
                read = read_ranges_into(self._descriptor(number), room, ranges)
        except OSError as error:
            raise self._unreadable(number, error) from error
        if not read:
            filled = 0
            for start, size in zip(ranges[0::2], ranges[1::2], strict=True):
                room[filled : filled + size] = self._read(number, start, size)
                filled += size

    def _descriptor(self, number: int) -> int:
        source = self.sources[number]
        if source.file is not None:
            return source.file.fd
        fd = self._open.get(number)
        if fd is None:
            if len(self._open) == OPEN_PARTS:
                os.close(self._open.popitem(last=False)[1])
            fd = self._open[number] = os.open(source.name, os.O_RDONLY | os.O_CLOEXEC)
        else:
            self._open.move_to_end(number)
        return fd

    def _unreadable(self, number: int, error: OSError | ValueError) -> RdcError:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return RdcError(f"{self.name(number)}: cannot read the part: {reason}", code=ExitCode.FILE_IO)
