"""A regular file open for reading, with the proof that it did not change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from types import TracebackType

from rdc.files.failure import changed, failure
from rdc.files.tick import outlast
from rdc.model.entries import Identity, Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from rdc.files.confined import Root

__all__ = ["HeldContent", "SourceFile", "identity_of"]

SPAN_BYTES = 1 << 20
"""Bytes a span: long enough that Python's cost for each vanishes, short enough to stay in the second-level
cache."""

READAHEAD_WORTH = 128 << 10
"""Bytes. The kernel's normal read-ahead window: for smaller files the advice is one system call for
nothing."""


def identity_of(found: os.stat_result) -> Identity:
    return Identity(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)


class SourceFile:
    """Made by Root.open_read. A context manager; the descriptor is closed with it."""

    __slots__ = (
        "_fd",
        "_mode",
        "_owner",
        "_path",
        "_rested",
        "_shown",
        "allocated",
        "identity",
        "links",
        "on_span",
        "size",
    )

    def __init__(self, fd: int, found: os.stat_result, path: bytes, shown: bytes) -> None:
        self._fd = fd
        self._path = path
        self._shown = shown
        self._rested = False
        self._mode = found.st_mode & 0o7777
        self._owner = (found.st_uid, found.st_gid)
        self.identity = identity_of(found)
        """What fstat saw right after opening."""
        self.size: int = found.st_size
        """Bytes, when it was opened."""
        self.allocated: int = found.st_blocks * 512
        """Bytes the file system has given it; less than `size` where there are holes or compression."""
        self.links: int = found.st_nlink
        """Names it has."""
        self.on_span: Callable[[bytes], None] | None = None
        """Takes each span that `spans` or `whole` read, for who needs the content as well as its chunks."""
        if found.st_size > READAHEAD_WORTH:
            with suppress(OSError):  # advice only
                os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)

    @property
    def path(self) -> bytes:
        """The one it was opened by."""
        return self._path

    @property
    def metadata(self) -> Metadata:
        """As when it was opened: consistent with `identity`."""
        return Metadata(self._mode, self.identity.mtime_ns, *self._owner)

    def fileno(self) -> int:
        return self._fd

    def again(self) -> SourceFile:
        """The same open file under a descriptor of its own, whatever stands at its path by now."""
        twin = SourceFile(os.dup(self._fd), os.fstat(self._fd), self._path, self._shown)
        twin.identity, twin.size = self.identity, self.size
        return twin

    def rest(self) -> None:
        """Waits until check_unchanged will show any change from here on; the first read does. At most a tick
        of the file system's clock, of a file that was changed in it (rdc.files.tick)."""
        if not self._rested:
            outlast(self.identity.ctime_ns)
            self._rested = True

    def spans(self, size: int = SPAN_BYTES) -> Iterator[bytes]:
        """The content from the start, `size` bytes at a time, `self.size` bytes in all; any number of times.

        Raises FileChangedError when the file has become shorter; only check_unchanged notices other changes.
        """
        offset = 0
        while offset < self.size:
            span = self.pread(offset, min(size, self.size - offset))
            offset += len(span)
            if self.on_span is not None:
                self.on_span(span)
            yield span

    def whole(self) -> bytes:
        """All of it at once: for small files."""
        content = self.pread(0, self.size)
        if self.on_span is not None:
            self.on_span(content)
        return content

    def pread(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes at `offset`; raises FileChangedError when the file ends before."""
        if not self._rested:
            self.rest()
        try:
            data = os.pread(self._fd, length, offset)
            if len(data) == length:
                return data
            # Signals and some file systems cut reads short; only an empty read is the end.
            parts = [data]
            missing = length - len(data)
            while missing and parts[-1]:
                parts.append(os.pread(self._fd, missing, offset + length - missing))
                missing -= len(parts[-1])
        except OSError as error:
            raise failure(error, self._path, self._shown, "read it", reading=True) from error
        if missing:
            raise changed(self._path, self._shown, f"{self.size} bytes", f"{offset + length - missing}")
        return b"".join(parts)

    def peek(self, offset: int, length: int) -> bytes | memoryview:
        """As pread, but what is in memory is not copied."""
        return self.pread(offset, length)

    def read_into(self, buffer: memoryview, offset: int) -> None:
        """As pread, but into memory that is there: new memory of megabytes costs more than to fill it."""
        self.rest()
        at = 0
        try:
            while at < len(buffer) and (count := os.preadv(self._fd, [buffer[at:]], offset + at)):
                at += count
        except OSError as error:
            raise failure(error, self._path, self._shown, "read it", reading=True) from error
        if at < len(buffer):
            raise changed(self._path, self._shown, f"{self.size} bytes", f"{offset + at}")

    def read_ranges(self, rows: array[int]) -> bytes:
        """These ranges, offset and length by turns, one behind another; errors as of pread."""
        from rdc.files._ranges import read_ranges

        self.rest()
        content = read_ranges(self._fd, rows)
        if content is None:
            # Who reads one by one knows what to say of the one that failed.
            content = b"".join(map(self.pread, rows[0::2], rows[1::2]))
        return content

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        """The same into memory that is there, of just their size."""
        from rdc.files._ranges import read_ranges_into

        self.rest()
        if not read_ranges_into(self._fd, rows, buffer):
            buffer[:] = b"".join(map(self.pread, rows[0::2], rows[1::2]))

    def check_unchanged(self) -> None:
        """Raise FileChangedError unless size, mtime and ctime are what they were when the file was opened.

        ctime counts: it cannot be set back, where a program can restore an mtime after writing.
        """
        try:
            now = identity_of(os.fstat(self._fd))
        except OSError as error:
            raise failure(error, self._path, self._shown, "look at it", reading=True) from error
        then = self.identity
        if now == then:
            return
        if now.size != then.size:
            raise changed(self._path, self._shown, f"{then.size} bytes", f"{now.size}")
        which = "mtime" if now.mtime_ns != then.mtime_ns else "ctime"
        raise changed(self._path, self._shown, "the times it had when it was opened", f"another {which}")

    def close(self) -> None:
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            # Nothing was written through it: an error has nothing to say, and must not hide another.
            with suppress(OSError):
                os.close(fd)

    def __enter__(self) -> SourceFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class HeldContent(SourceFile):
    """A file that was read whole and is in memory since, so that its bytes are all of one moment. It has no
    descriptor; whether it is still the one at its path is to be asked."""

    __slots__ = ("_content", "_root")

    def __init__(self, root: Root, path: bytes, identity: Identity, content: bytes) -> None:
        self._root = root
        self._path = path
        self._content = content
        self._fd = -1
        self._rested = True
        self.on_span = None
        self.identity = identity
        self.size = len(content)

    def pread(self, offset: int, length: int) -> bytes:
        data = self._content[offset : offset + length]
        self._check_length(data, offset, length)
        return data

    def peek(self, offset: int, length: int) -> memoryview:
        data = memoryview(self._content)[offset : offset + length]
        self._check_length(data, offset, length)
        return data

    def _check_length(self, data: bytes | memoryview, offset: int, length: int) -> None:
        if len(data) != length:
            shown = self._root.shown(self._path)
            raise changed(self._path, shown, f"{offset + length} bytes", f"{self.size}")

    def read_into(self, buffer: memoryview, offset: int) -> None:
        buffer[:] = self.pread(offset, len(buffer))

    def read_ranges(self, rows: array[int]) -> bytes:
        return b"".join(map(self.peek, rows[0::2], rows[1::2]))

    def read_ranges_into(self, buffer: memoryview, rows: array[int]) -> None:
        buffer[:] = self.read_ranges(rows)

    def again(self) -> SourceFile:
        return self

    def check_unchanged(self) -> None:
        """Raise FileChangedError unless the file at its path is still the one that was read."""
        if self._root.identity(self._path) != self.identity:
            raise changed(
                self._path, self._root.shown(self._path), "the file that was read", "another or a changed one"
            )
