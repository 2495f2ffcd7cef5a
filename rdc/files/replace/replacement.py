"""Replacement: the new content of one file, written to a locked temporary beside the file it will replace."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from types import TracebackType

from rdc.errors import RdcError
from rdc.files.base.shortfalls import STOPS_THE_RUN, strictly
from rdc.files.base.syscalls import punch_hole
from rdc.files.base.taking_names import create_temporary, has_name, is_refused
from rdc.files.base.temporary_names import make_aside
from rdc.files.replace.reservation import Reservation
from rdc.files.replace.sparse import data_and_holes, may_have_long_zeros, zero_spans
from rdc.files.replace.temporary_lock import lock_temporary
from rdc.files.root.source_file import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from _typeshed import ReadableBuffer

    from rdc.files.base.directory_descriptors import Directory
    from rdc.files.base.shortfalls import Shortfall
    from rdc.files.replace.checked_rename import Anything, CheckedRename
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity, Metadata

__all__ = ["Replacement"]

COPY_BYTES = 64 << 20
"""Bytes per copy_file_range call. Signals are handled between calls; the cost of the calls is negligible."""

READ_BYTES = 1 << 20
"""Bytes per read when copy_file_range does not work and the copy is made with pread and pwrite."""

KEEP_BYTES = 64 << 10
"""Partial files of at least this size are kept for the next run. Below it, sending the content again costs
less than its signature."""

NAME_ATTEMPTS = 16
"""How often a temporary is made. A sweep can remove one between its creation and its lock. That happening 16
times in a row is a fault."""


def copies_by_hand(error: OSError) -> bool:
    """Return whether pread and pwrite may do what copy_file_range did not: between file systems, on old
    kernels, with seccomp filters, for swap files, where the server of a file system lacks it."""
    return error.errno == errno.EXDEV or is_refused(error)


class Replacement:
    """The future content of `path`, under a temporary name until a CommitGroup takes it over.

    The writer holds an exclusive flock on it, which keeps sweeps away. After any failure the temporary is
    removed and the error raised. A `with` block removes it unless it was handed over. Not for two threads."""

    __slots__ = (
        "_by_hand",
        "_cloned",
        "_created",
        "_expected",
        "_fd",
        "_name",
        "_owned",
        "_reserved",
        "_unsettled",
        "directory",
        "path",
        "root",
        "size",
    )

    keeps_inode = False  # True: `land` writes into the old file, as an Overwrite does

    def __init__(
        self, root: Root, path: bytes, *, expected_size: int | None = None, reserved: bool = True
    ) -> None:
        """Create the temporary beside `path`.

        `expected_size` is the most bytes that will be written; a write beyond it is a FileError. None sets no
        bound. `reserved`: space is reserved for them. Not if most will be cloned: call `reserve` if they are
        not.

        Raises FileError. Raises OutOfSpaceError if `expected_size` bytes do not fit on the disk, and RdcError
        (exit code 11) if the write quota of `root` does not cover them.
        """
        self.root = root
        self.path = path
        self.size = 0
        """Bytes written so far."""
        self._fd = -1
        self._name: bytes | None = None
        self._owned = True
        self._by_hand = False
        self._unsettled = False
        self._cloned = 0
        """Up to here the temporary may hold old content. What is written must cover it."""
        self._reserved = Reservation(expected_size)
        self._expected = expected_size
        self._spend(0 if root.may_spend(expected_size or 0) else expected_size or 0, entries=1)
        directory, target = root.locate_to_write(path)
        try:
            try:
                self._create(directory, target)
            except FileNotFoundError:
                # The cached descriptor belongs to a directory that was removed, and perhaps made again.
                self.abandon()
                directory, target = root.locate(path, fresh=True)
                self._create(directory, target)
            # Reserved blocks are allocated, so a sparse file must not reserve any.
            if reserved and not root.sparse:
                self._reserved.begin(self._fd)
        except OSError as error:
            self.abandon()
            raise root.failure(error, path, "make a temporary file beside it") from error

    def fileno(self) -> int:
        return self._fd

    @property
    def device(self) -> int:
        return self._created.st_dev

    def note_clone(self, stop: int) -> None:
        """Record that bytes behind those written, up to `stop`, begin with content of another file."""
        self._cloned = max(self._cloned, stop)

    def take_clone(self, length: int) -> None:
        """Append `length` bytes that were cloned. Raises RdcError."""
        self._admit(length)
        self.size += length

    def reserve(self) -> None:
        """Reserve space as if the temporary had been made with `reserved`. Raises RdcError."""
        try:
            if not self.root.sparse:
                self._reserved.begin(self._fd)
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "write it") from error

    def write_parts(self, buffer: ReadableBuffer, parts: Iterable[tuple[int, int]]) -> None:
        """Append all of `buffer`, of which the temporary holds everything but these ranges (start, stop).
        Raises RdcError."""
        view = memoryview(buffer).cast("B")
        self._admit(len(view))
        for start, stop in parts:
            self._write_at(self.size + start, view[start:stop])
        self._punch(view)
        self.size += len(view)

    def _punch(self, view: memoryview) -> None:
        """Make holes of blocks of zeros that lie over something, if the file is to be sparse."""
        if self.root.sparse:
            for start, stop in zero_spans(view, self.size):
                with suppress(OSError):  # they are zeros anyway
                    punch_hole(self._fd, self.size + start, stop - start)

    def write(self, buffer: ReadableBuffer) -> None:
        """Append all of `buffer`, any contiguous buffer of bytes. Raises RdcError."""
        length = memoryview(buffer).nbytes
        self._admit(length)
        if self._reserved.size and self.size + length > self._reserved.size:
            try:
                self._reserved.ahead(self._fd, self.size + length)
            except OSError as error:
                self.abandon()
                raise self.root.failure(error, self.path, "write it") from error
        # Where something was cloned, a skipped block of zeros would hold old content.
        least = self.root.long_holes
        has_holes = self.root.sparse or (0 < least <= length and may_have_long_zeros(buffer, least))
        if has_holes and self.size >= self._cloned:
            self._write_sparsely(buffer)
        else:
            self._write_at(self.size, buffer)
            self._punch(memoryview(buffer).cast("B"))
            self.size += length

    def rewrite(self, offset: int, buffer: ReadableBuffer) -> None:
        """Overwrite bytes already written at `offset`. Raises RdcError."""
        self._write_at(offset, buffer)

    def _write_sparsely(self, buffer: ReadableBuffer) -> None:
        """Do what `write` does, but leave zeros as holes: blocks of them, or long runs. The file still gets
        its full size, so it can be read back."""
        view, at = memoryview(buffer).cast("B"), self.size
        data, holes = data_and_holes(view, at, 0 if self.root.sparse else self.root.long_holes)
        for start, stop in data:
            self._write_at(at + start, view[start:stop])
        self.size += len(view)
        if holes and holes[-1][1] == len(view):
            try:
                self._grow()
            except OSError as error:
                self.abandon()
                raise self.root.failure(error, self.path, "write it") from error
        for start, stop in holes if self._reserved.size > at else ():
            with suppress(OSError):  # they are zeros anyway
                punch_hole(self._fd, at + start, stop - start)

    def _grow(self) -> None:
        """Give the file its size, of which the end is a hole. Raises OSError."""
        try:
            os.ftruncate(self._fd, self.size)
        except OSError as error:
            if not is_refused(error):
                raise
            self._fill(self.size)

    def _fill(self, stop: int) -> None:
        """Write zeros from the end of the file up to `stop`, where no holes can be made. Raises OSError."""
        at = os.fstat(self._fd).st_size
        while at < stop:
            at += os.pwrite(self._fd, bytes(min(READ_BYTES, stop - at)), at)

    def _pwrite(self, view: memoryview, offset: int) -> int:
        """Write at `offset`, which may lie behind the end of the file. Raises OSError."""
        try:
            return os.pwrite(self._fd, view, offset)
        except OSError as error:
            if not is_refused(error) or offset <= os.fstat(self._fd).st_size:
                raise
        self._fill(offset)
        return os.pwrite(self._fd, view, offset)

    def _write_at(self, offset: int, buffer: ReadableBuffer) -> int:
        view = memoryview(buffer)
        total = left = view.nbytes
        try:
            while True:
                written = self._pwrite(view, offset)
                offset += written
                left -= written
                if not left:
                    return total
                view = view.cast("B")[written:]
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "write it") from error

    def copy_from(self, source: int, offset: int, length: int, *, holes: bool = False) -> int:
        """Append `length` bytes at `offset` of the file open at `source`, copied or shared by the kernel.

        Returns how many were appended: fewer only if the source ends earlier. To hash them, read them back:
        they do not pass through this process. `holes`: the source is known to have some.
        """
        if self.root.sparse or (holes and self.root.long_holes):
            return self._copy_sparsely(source, offset, length)
        done = 0
        self._admit(length)
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
        """Do what `copy_from` does, with reads and writes: most file systems copy a hole as allocated
        zeros."""
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
        """Return `length` bytes that were written before, or fewer at the end. Raises RdcError."""
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
        """Set the final metadata of the temporary. A CommitGroup calls this; nothing is written afterwards.
        Raises RdcError."""
        try:
            if self._reserved.size > self.size:
                os.ftruncate(self._fd, self.size)  # gives back what was reserved beyond the end
            attempt = self._attempt if self.root.storage.is_agreed else strictly
            self.root.set_on_open(self._fd, self._created, metadata, owner=owner, attempt=attempt)
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "set the metadata of its new content") from error

    def _attempt(self, what: Shortfall, call: Callable[[], None]) -> bool:
        """Try it on the open file. What fails is tried once more when the file is closed, by `settle`."""
        try:
            call()
        except OSError as error:
            if error.errno in STOPS_THE_RUN:
                raise
            self._unsettled = True
            return False
        return True

    @property
    def is_unsettled(self) -> bool:
        """Whether the file's metadata have to be looked at once it is closed and has its path."""
        return self._unsettled or not self.root.storage.facts.is_plain

    def settle(self, metadata: Metadata, *, owner: bool) -> None:
        """Close the file, which has its path, and set what of its metadata is not as `seal` was to set it.

        Some file systems change nothing while a file is open, or change its mtime when it is closed or
        renamed. What fails is noted. Raises OSError. A write of the same size by another process at this
        moment gets the source's mtime: nothing tells it from what such a file system does.
        """
        self._close()
        self.root.settle(self.path, self.directory.fd, metadata, owner=owner, size=self.size)

    def hand_over(self) -> None:
        """Leave the decision to a group: the `with` block no longer removes the temporary."""
        self._owned = False

    @property
    def temporary(self) -> bytes:
        """The current name in `directory`. Empty after `renamed` or `abandon`."""
        return self._name or b""

    def land(self, renamer: CheckedRename, expected: Identity | Anything | None, *, fsync: bool) -> int:
        """Give the content its path; return the descriptor of the file there, -1 if it had to be closed.
        Raises FileError, OSError."""
        try:
            renamer.rename(self.path, self.directory.fd, self.temporary, expected, displaces=False)
        except OSError as error:
            if not (is_refused(error) or error.errno == errno.EEXIST):
                raise
            # Some file systems rename no file that is open, and some rename over no file at all.
            self._close()
            renamer.rename(self.path, self.directory.fd, self.temporary, expected)
        self.renamed()
        return self._fd

    def renamed(self) -> None:
        """Record that the temporary has its path, so that `abandon` does not remove it."""
        self._name = None

    def identity(self) -> Identity:
        """Return the identity of the open file. Raises OSError."""
        return identity_of(os.fstat(self._fd))

    def abandon(self) -> None:
        """Remove the temporary unless it was renamed into place, and close it. Never raises; may be called
        again."""
        name, self._name = self._name, None
        fd, self._fd = self._fd, -1
        if name is not None:
            # It is gone already, or a later sweep removes it: the lock ends with the descriptor.
            with suppress(OSError):
                os.unlink(name, dir_fd=self.directory.fd)
        if fd >= 0:
            # The content is unwanted or already synced, so an error of close loses nothing.
            with suppress(OSError):
                os.close(fd)

    def _close(self) -> None:
        """Close the file, of which the content was synced. Never raises."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            with suppress(OSError):
                os.close(fd)

    def keep(self) -> None:
        """Close the temporary and leave it for the next run to resume from. Files below KEEP_BYTES are
        removed instead."""
        if self.size >= KEEP_BYTES:
            if self._name is not None and self.root.partials is not None:
                self.root.partials.keep(self.path, self.directory.fd, self._name)
            self._name = None
            if max(self._reserved.size, self._cloned) > self.size and self._fd >= 0:
                with suppress(OSError):  # the next run cannot use what lies beyond the end
                    os.ftruncate(self._fd, self.size)
        self.abandon()

    def __enter__(self) -> Replacement:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._owned:
            self.abandon()

    def _create(self, directory: Directory, target: bytes) -> None:
        """Open and lock a temporary, and check that it still has its name. No sweep can remove it afterwards.

        A sweep removes a temporary only while it holds the lock. If a sweep locked it first, our lock fails.
        If a sweep removed it before our lock, its link count is 0.
        """
        self.directory = directory

        def create(name: bytes) -> None:
            self._fd = create_temporary(name, directory.fd)

        for _ in range(NAME_ATTEMPTS):
            self._name = make_aside(target, create)
            if lock_temporary(self._fd):
                self._created = os.fstat(self._fd)
                if has_name(self._fd, self._name, directory.fd):
                    if self.root.sheds_acls:
                        from rdc.files.base.access_acl import shed_acl

                        shed_acl(self._fd)
                    return
            self.abandon()
        raise OSError(errno.EAGAIN, "")

    def _spend(self, size: int, *, entries: int = 0) -> None:
        try:
            self.root.spend(self.path, size, entries=entries)
        except RdcError:
            self.abandon()
            raise

    def _admit(self, length: int) -> None:
        """Check that `length` more bytes stay within the expected size and the write quota. Raises
        RdcError."""
        if self._expected is not None and self.size + length > self._expected:
            expected, found = self._expected, self.size + length
            self.abandon()
            raise self.root.refused(
                self.path,
                "write it",
                expected=f"{expected} bytes",
                found=f"{found} or more",
                advice="run again once nothing changes it at the source",
            )
        self._spend(length)

    def _copy_some(self, source: int, offset: int, length: int) -> int:
        if not self._by_hand:
            try:
                count = os.copy_file_range(
                    source, self._fd, min(length, COPY_BYTES), offset_src=offset, offset_dst=self.size
                )
                if count:
                    return count
            except OSError as error:
                if not copies_by_hand(error):
                    raise
            # Zero means the end of the source, or a kernel that silently copies nothing from such a file.
            self._by_hand = True
        data = os.pread(source, min(length, READ_BYTES), offset)
        return os.pwrite(self._fd, data, self.size) if data else 0
