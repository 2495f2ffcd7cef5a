"""One file rebuilt aside: a locked temporary in the directory of the file it will replace."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from types import TracebackType

from rdc.errors import RdcError
from rdc.files.metadata import set_on_descriptor
from rdc.files.source import identity_of
from rdc.files.syscalls import fallocate_keep_size
from rdc.files.temporary import temporary_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

    from rdc.files.confined import Root
    from rdc.files.directory import Directory
    from rdc.model.entries import Identity, Metadata

__all__ = ["Replacement"]

PREALLOCATE_BYTES = 1 << 20
"""From this size on space is reserved first, so that a full disk shows before the transfer instead of after
it; below, a system call a file would cost more than the few blocks written in vain."""

COPY_BYTES = 64 << 20
"""Bytes one copy_file_range may move: signals are seen in between, at a cost that is nothing beside the
copying."""

READ_BYTES = 1 << 20
"""Bytes a read of the copy by hand, where copy_file_range does not do it."""

KEEP_BYTES = 64 << 10
"""What an interrupted run leaves of a file from this size on: below, sending it again costs less than its
signature."""

NAME_ATTEMPTS = 16
"""A sweep can take a temporary in the moment between its creation and its lock. Once is rare, 16 times is a
fault."""

_CREATE = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

# Other file systems, old kernels, seccomp filters, swap files, files opened for appending: all copy by hand.
_COPY_BY_HAND = {
    errno.EXDEV, errno.ENOSYS, errno.EINVAL, errno.EOPNOTSUPP, errno.EPERM, errno.ETXTBSY, errno.EBADF,
}  # fmt: skip
_CANNOT_LOCK = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}


class Replacement:
    """The future content of `path`, invisible under a temporary name until a CommitGroup takes it over.

    Its writer holds an exclusive flock while it lives, which is what keeps a sweep away. Any failure abandons
    it: the temporary is removed and the error raised. As a context manager it abandons what was not handed to
    a group. One thread at a time.
    """

    __slots__ = (
        "_by_hand",
        "_created",
        "_fd",
        "_name",
        "_owned",
        "_reserved",
        "directory",
        "path",
        "root",
        "size",
    )

    def __init__(self, root: Root, path: bytes, *, expected_size: int | None = None) -> None:
        """Raises FileError, or OutOfSpaceError when `expected_size` bytes do not fit, or RdcError (11) when
        they are more than may be written below `root`."""
        self.root = root
        self.path = path
        self.size = 0
        """Bytes written so far."""
        self._fd = -1
        self._name: bytes | None = None
        self._owned = True
        self._by_hand = False
        self._reserved = 0
        self._spend(0 if root.may_spend(expected_size or 0) else expected_size or 0, entries=1)
        directory, target = root.locate(path)
        try:
            try:
                self._create(directory, target)
            except FileNotFoundError:
                # The kept descriptor was of a directory that somebody removed, and perhaps made again.
                self.abandon()
                directory, target = root.locate(path, fresh=True)
                self._create(directory, target)
            # What is reserved is allocated, and a hole in it is none.
            if expected_size is not None and expected_size > PREALLOCATE_BYTES and not root.sparse:
                self._reserve(expected_size)
        except OSError as error:
            self.abandon()
            raise root.failure(error, path, "make a temporary file beside it") from error

    def fileno(self) -> int:
        return self._fd

    def write(self, buffer: ReadableBuffer) -> None:
        """Append all of `buffer` (any contiguous buffer of bytes)."""
        self._spend(memoryview(buffer).nbytes)
        if self.root.sparse:
            self._write_sparsely(buffer)
        else:
            self.size += self._write_at(self.size, buffer)

    def rewrite(self, offset: int, buffer: ReadableBuffer) -> None:
        """Other bytes in place of those written at `offset`."""
        self._write_at(offset, buffer)

    def _write_sparsely(self, buffer: ReadableBuffer) -> None:
        """As `write`; the file has its size all the same, so that what is read back is all there."""
        from rdc.files.sparse import data_spans

        view = memoryview(buffer).cast("B")
        written = 0
        for start, stop in data_spans(view, self.size):
            self._write_at(self.size + start, view[start:stop])
            written = stop
        self.size += len(view)
        if written < len(view):
            try:
                os.ftruncate(self._fd, self.size)
            except OSError as error:
                self.abandon()
                raise self.root.failure(error, self.path, "write it") from error

    def _write_at(self, offset: int, buffer: ReadableBuffer) -> int:
        view = memoryview(buffer)
        total = left = view.nbytes
        try:
            while True:
                written = os.pwrite(self._fd, view, offset)
                offset += written
                left -= written
                if not left:
                    return total
                view = view.cast("B")[written:]
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "write it") from error

    def copy_from(self, source: int, offset: int, length: int) -> int:
        """Append `length` bytes at `offset` of the file open at `source`; the kernel copies or shares them.

        Returns the bytes appended: fewer than `length` only where the source ends before. The bytes do not
        pass through here: read them back with pread to hash what is really there.
        """
        if self.root.sparse:
            return self._copy_sparsely(source, offset, length)
        done = 0
        self._spend(length)
        try:
            while done < length:
                count = self._copy_some(source, offset + done, length - done)
                if not count:
                    break
                self.size += count
                done += count
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "copy into it") from error
        return done

    def _copy_sparsely(self, source: int, offset: int, length: int) -> int:
        """As `copy_from`. By hand: what the kernel copies of a hole is zeros to most file systems."""
        done = 0
        while done < length:
            try:
                data = os.pread(source, min(length - done, READ_BYTES), offset + done)
            except OSError as error:
                self.abandon()
                raise self.root.failure(error, self.path, "copy into it") from error
            if not data:
                break
            self.write(data)
            done += len(data)
        return done

    def pread(self, offset: int, length: int) -> bytes:
        """`length` bytes written before; fewer only at the end."""
        parts = []
        try:
            while length > 0:
                data = os.pread(self._fd, length, offset)
                if not data:
                    break
                parts.append(data)
                offset += len(data)
                length -= len(data)
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "read it back") from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def seal(self, metadata: Metadata, *, owner: bool) -> None:
        """Give the temporary its final metadata; nothing is written after. A CommitGroup does this."""
        try:
            if self._reserved > self.size:
                os.ftruncate(self._fd, self.size)  # gives back what was reserved beyond the end
            set_on_descriptor(self._fd, self._created, metadata, owner=owner)
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "set the metadata of its new content") from error

    def hand_over(self) -> None:
        """From now on a group decides: leaving the `with` block no longer abandons."""
        self._owned = False

    @property
    def temporary(self) -> bytes:
        """The name it has now, in `directory`. Empty once it was renamed or abandoned."""
        return self._name or b""

    def renamed(self) -> None:
        """The temporary name is no more: it is the file now, and will not be removed."""
        self._name = None

    def identity(self) -> Identity:
        """What a stat of the file would say, from its descriptor. Raises OSError."""
        return identity_of(os.fstat(self._fd))

    def abandon(self) -> None:
        """Remove the temporary, unless it was renamed into place, and close it. Never raises, may be
        repeated."""
        name, self._name = self._name, None
        fd, self._fd = self._fd, -1
        if name is not None:
            # Already gone, or litter for a later sweep: its lock goes with the descriptor.
            with suppress(OSError):
                os.unlink(name, dir_fd=self.directory.fd)
        if fd >= 0:
            # Content that was not wanted, or has been synced before: nothing is lost with it.
            with suppress(OSError):
                os.close(fd)

    def keep(self) -> None:
        """Close it and leave it under its temporary name: the next run takes up from it. What is too small to
        be worth that is abandoned."""
        if self.size >= KEEP_BYTES:
            self._name = None
        self.abandon()

    def __enter__(self) -> Replacement:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._owned:
            self.abandon()

    def _create(self, directory: Directory, target: bytes) -> None:
        """Open, lock and make sure that the name still exists: then no sweep can take it any more.

        A sweep removes a temporary only while it holds the lock. One that took the lock first makes ours
        fail; one that removed the file before we locked it has left it without a name.
        """
        self.directory = directory
        for _ in range(NAME_ATTEMPTS):
            name = temporary_name(target)
            self._fd = os.open(name, _CREATE, 0o600, dir_fd=directory.fd)
            self._name = name
            if _lock(self._fd):
                self._created = os.fstat(self._fd)
                if self._created.st_nlink:
                    return
            self.abandon()
        raise OSError(errno.EAGAIN, "")

    def _spend(self, size: int, *, entries: int = 0) -> None:
        try:
            self.root.spend(self.path, size, entries=entries)
        except RdcError:
            self.abandon()
            raise

    def _reserve(self, size: int) -> None:
        try:
            fallocate_keep_size(self._fd, size)
        except OSError as error:
            if error.errno not in {errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EPERM}:
                raise
        else:
            self._reserved = size

    def _copy_some(self, source: int, offset: int, length: int) -> int:
        if not self._by_hand:
            try:
                count = os.copy_file_range(
                    source, self._fd, min(length, COPY_BYTES), offset_src=offset, offset_dst=self.size
                )
                if count:
                    return count
            except OSError as error:
                if error.errno not in _COPY_BY_HAND:
                    raise
            # Zero is the end of the source, or a kernel that copies nothing from such a file without saying
            # so.
            self._by_hand = True
        data = os.pread(source, min(length, READ_BYTES), offset)
        return os.pwrite(self._fd, data, self.size) if data else 0


def _lock(fd: int) -> bool:
    """Take the lock; False when another holds it. File systems without locks have no sweeps either: True."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in _CANNOT_LOCK:
            raise
    return True
