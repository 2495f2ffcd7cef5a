"""SourceFile: a regular file open for reading, with proof that it did not change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress

from rdc.errors import FileChangedError
from rdc.files import _files
from rdc.files.base.directory_descriptors import Closing, change_time, is_unchanged
from rdc.files.base.metadata import identity_of, outlast
from rdc.files.base.paths import changed, failure, refused, unreadable
from rdc.model.entries import Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from rdc.errors import FileError
    from rdc.files.depth import ReadRate


SPAN_BYTES = 1 << 20
"""Bytes per span. Python's cost per span vanishes, and a span stays in the second-level cache."""

READAHEAD_WORTH = 128 << 10
"""Bytes. The kernel's default read-ahead window; for smaller files the advice would be a wasted system call.
"""


def read_ranges_into(fd: int, buffer: memoryview, rows: array[int]) -> bool:
    """Read the ranges in `rows` of an open file, all with one call of C. Return False if that fails: to read
    one by one names the range that fails."""
    return _files.read_ranges_into(fd, rows, buffer)


class SourceFile(Closing):
    """An open file made by Root.open_read. A context manager that closes the descriptor."""

    __slots__ = (
        "_fd",
        "_mode",
        "_outlasted",
        "_owner",
        "_shown",
        "allocated",
        "identity",
        "links",
        "on_span",
        "path",
        "rate",
        "size",
        "taken",
    )

    def __init__(self, fd: int, found: os.stat_result, path: bytes, shown: bytes) -> None:
        self._fd = fd
        self.path = path
        """The path it was opened by."""
        self._shown = shown
        self._outlasted = False
        self._mode = found.st_mode & 0o7777
        self._owner = (found.st_uid, found.st_gid)
        self.identity = identity_of(found)
        """The identity that fstat returned right after opening."""
        self.size: int = found.st_size
        """Bytes when it was opened."""
        self.allocated: int = found.st_blocks * 512
        """Bytes on disk. Less than `size` if the file has holes or is compressed."""
        self.taken = self.allocated if self.allocated < self.size else None
        """Bytes on disk, if they are fewer than its size. Else None."""
        self.links: int = found.st_nlink
        """Its link count."""
        self.on_span: Callable[[bytes], None] | None = None
        """Receives each span that `spans` or `whole` reads, for callers that need the content as well as its
        chunks."""
        self.rate: ReadRate | None = None
        """Bounds how fast it is read."""
        if found.st_size > READAHEAD_WORTH:
            with suppress(OSError):  # advice only
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)

    @property
    def metadata(self) -> Metadata:
        """The file's metadata when it was opened, consistent with `identity`."""
        return Metadata(self._mode, self.identity.mtime_ns, *self._owner)

    def fileno(self) -> int:
        return self._fd

    def again(self) -> SourceFile:
        """Return the same open file with a descriptor of its own, whatever is at its path now. Raises
        OSError."""
        twin = SourceFile(os.dup(self._fd), os.fstat(self._fd), self.path, self._shown)
        twin.identity, twin.size, twin._outlasted = self.identity, self.size, self._outlasted
        twin.taken, twin.rate = self.taken, self.rate
        return twin

    def read_through(self, fd: int) -> SourceFile:
        """Return this file as the descriptor `fd` of a clone of it holds it, which nobody changes. It takes
        over the descriptor. Raises OSError."""
        clone = SourceFile(fd, os.fstat(fd), self.path, self._shown)
        clone._outlasted = True
        return clone

    def rest(self) -> None:
        """Wait until check_unchanged will see any later change. The first read calls this.

        The wait is at most one tick of the file system's clock, for a file changed in that tick
        (rdc.files.base.metadata).
        """
        if not self._outlasted:
            outlast(change_time(self.identity))
            self._outlasted = True

    def spans(self, size: int = SPAN_BYTES) -> Iterator[bytes]:
        """Yield the content from the start, `size` bytes at a time, `self.size` bytes in total. May be called
        again.

        Raises FileChangedError if the file has become shorter. Only check_unchanged detects other changes.
        """
        offset = 0
        while offset < self.size:
            span = self.pread(offset, min(size, self.size - offset))
            offset += len(span)
            if self.on_span is not None:
                self.on_span(span)
            yield span

    def pieces(self, size: int) -> Iterator[bytes | memoryview]:
        """Yield the content from the start as `spans` does, in pieces of at most `size` bytes that nothing
        changes afterwards. A subclass that has the content in memory yields views without copying."""
        yield from self.spans(size)

    @property
    def content_name(self) -> bytes | None:
        """32 bytes that are equal only for files with equal content, if all that is read of this one is
        compared with them. None: nothing is known before it is read."""
        return None

    def whole(self) -> bytes:
        """Return the whole content, for small files. Raises RdcError."""
        content = self.pread(0, self.size)
        if self.on_span is not None:
            self.on_span(content)
        return content

    def pread(self, offset: int, length: int) -> bytes:
        """Return exactly `length` bytes at `offset`. Raises FileChangedError if the file has become shorter,
        and FileError if it ends before and did not change."""
        if not self._outlasted:
            self.rest()
        if self.rate is not None:
            self.rate.take(length)
        try:
            data = os.pread(self._fd, length, offset)
            if len(data) == length:
                return data
            # Signals and some file systems shorten reads; only an empty read marks the end.
            parts = [data]
            missing = length - len(data)
            while missing and parts[-1]:
                parts.append(os.pread(self._fd, missing, offset + length - missing))
                missing -= len(parts[-1])
        except OSError as error:
            raise unreadable(error, self.path, self._shown) from error
        if missing:
            raise self._ended(offset + length - missing)
        return b"".join(parts)

    def peek(self, offset: int, length: int) -> bytes | memoryview:
        """Return what pread returns. A subclass that holds the content in memory returns a view without
        copying."""
        return self.pread(offset, length)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """Read len(buffer) bytes at `offset` into `buffer`; errors as in pread. New memory of megabytes costs
        more than filling it."""
        self.rest()
        at = 0
        try:
            while at < len(buffer) and (count := os.preadv(self._fd, [buffer[at:]], offset + at)):
                at += count
        except OSError as error:
            raise unreadable(error, self.path, self._shown) from error
        if at < len(buffer):
            raise self._ended(offset + at)

    def _ended(self, at: int) -> FileError:
        """Return the error for a file that ends before its size says, or before what was asked for, which was
        there for somebody."""
        expected, found = f"{self.size} bytes", f"{at}"
        try:
            self.check_unchanged()
        except FileChangedError:
            return changed(self.path, self._shown, expected, found)
        if at >= self.size:
            return changed(self.path, self._shown, f"more than {expected}", found)
        return refused(
            self.path,
            self._shown,
            "read it",
            expected=f"the {expected} that its size says",
            found=found,
            advice="its file system tells wrong sizes, as sysfs does: leave it out, or copy it with cat",
        )

    def read_ranges(self, rows: array[int]) -> bytes:
        """Return the bytes of the ranges in `rows` (offset, length, offset, ...), joined; errors as in
        pread."""
        self.rest()
        content = _files.read_ranges(self._fd, rows)
        if content is None:
            # Reading one by one names the range that fails.
            content = b"".join(map(self.pread, rows[0::2], rows[1::2]))
        return content

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        """Read the ranges in `rows` into `buffer`, which has exactly their total size; errors as in pread."""
        self.rest()
        if not read_ranges_into(self._fd, buffer, rows):
            buffer[:] = b"".join(map(self.pread, rows[0::2], rows[1::2]))

    def check_unchanged(self) -> None:
        """Raise FileChangedError unless size, mtime and ctime are as they were when the file was opened.

        A program can restore an mtime after writing, but it cannot set back a ctime. A ctime that is not
        stable does not count.
        """
        try:
            now = identity_of(os.fstat(self._fd))
        except OSError as error:
            raise failure(error, self.path, self._shown, "look at it", reading=True) from error
        then = self.identity
        if is_unchanged(then, now):
            return
        if now.size != then.size:
            raise changed(self.path, self._shown, f"{then.size} bytes", f"{now.size}")
        which = "mtime" if now.mtime_ns != then.mtime_ns else "ctime"
        raise changed(self.path, self._shown, "the times it had when it was opened", f"another {which}")

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            # Nothing was written through it, so an error of close means nothing and must not hide another.
            with suppress(OSError):
                os.close(fd)


class ContentFile(SourceFile):
    """A SourceFile without a descriptor, whose content `pread` alone has."""

    __slots__ = ()

    def read_into(self, buffer: memoryview, offset: int) -> None:
        buffer[:] = self.pread(offset, len(buffer))

    def read_ranges(self, rows: array[int]) -> bytes:
        return b"".join(map(self.pread, rows[0::2], rows[1::2]))

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        buffer[:] = self.read_ranges(rows)

    def again(self) -> SourceFile:
        return self
