"""Replacement: the new content of one file, written to a locked temporary beside the file it will replace."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from itertools import chain

from rdc.errors import FileError, RdcError
from rdc.files.base.metadata import (
    STOPS_THE_RUN,
    Expected,
    Shortfall,
    found_at,
    identity_of,
    shed_acl,
    strictly,
)
from rdc.files.base.paths import make_aside
from rdc.files.base.syscalls import fallocate_keep_size, punch_hole
from rdc.files.base.taking_names import (
    create_temporary,
    file_over_directory,
    has_name,
    is_refused,
    replace_name,
    take_free_name,
)
from rdc.files.root.policies import rename_to_free_name
from rdc.files.root.root import HOLE_BYTES, BackupKeeper, Root
from rdc.limits import RESERVED_AHEAD_BYTES
from rdc.model.entries import Identity, Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from _typeshed import ReadableBuffer

    from rdc.files.base.directory_descriptors import Directory


# Reservation: blocks that the file system keeps for a file that is being written.

PREALLOCATE_BYTES = 1 << 20
"""Files from this size on are checked for free space before the transfer, so that a full disk shows early.
Smaller files would pay a system call each to save a few blocks. The first reservation has this size as well.
"""


NO_ROOM = {errno.ENOSPC, errno.EDQUOT}
"""Errors of a file system that is full, or of a user who has the space of a quota."""


class Reservation:
    """The space that is reserved for one file. Every method raises OSError."""

    __slots__ = ("_ended", "expected", "size")

    def __init__(self, expected: int | None, *, ended: bool = False) -> None:
        """Take `expected`: the most bytes that will be written; `ended`: only the first bytes are
        reserved."""
        self.expected = expected
        self.size = 0
        """Bytes that the file system has reserved. 0 if it cannot reserve or no reservation was needed."""
        self._ended = ended

    def begin(self, fd: int) -> None:
        """Reserve the first bytes of a long file. ENOSPC if the file system has less free than is expected to
        be written."""
        size = self.expected
        if size is None or size <= PREALLOCATE_BYTES:
            return
        known = self._reserve(fd, min(size, PREALLOCATE_BYTES))
        if self.size or not known:
            # Checked unless the file system cannot reserve. Such a one may compress, and so hold more than it
            # has free.
            found = os.fstatvfs(fd)
            if size - self.size > found.f_bfree * found.f_frsize and found.f_blocks:
                raise OSError(errno.ENOSPC, "")

    def ahead(self, fd: int, needed: int) -> None:
        """Reserve `needed` bytes and as much again, within RESERVED_AHEAD_BYTES and the expected size.

        Long files thus lie in few extents, and a size that a peer merely announced takes no space. A write
        needs no reservation: the bytes ahead may become a hole, so where they do not fit none are reserved
        any more.
        """
        if self._ended or not self.size or needed <= self.size:
            return
        ahead = needed + min(needed, RESERVED_AHEAD_BYTES)
        try:
            self._reserve(fd, ahead if self.expected is None else min(ahead, self.expected))
        except OSError as error:
            if error.errno not in NO_ROOM:
                raise
            self.end()

    def end(self) -> None:
        """Reserve nothing more: the file has a hole, and a reservation would fill the next one."""
        self._ended = True

    def _reserve(self, fd: int, size: int) -> bool:
        """Return whether this system has the call, whatever its file system answered."""
        try:
            fallocate_keep_size(fd, size - self.size, self.size)  # not again what became a hole
        except OSError as error:
            if not is_refused(error) or error.errno == errno.EFBIG:
                raise
            return error.errno != errno.ENOSYS
        self.size = size
        return True


# Finds the parts of a buffer that must be written to a new file; blocks of zeros become holes.

_ZEROS = bytes(HOLE_BYTES)


def is_zeros(buffer: ReadableBuffer) -> bool:
    """Return whether the buffer holds nothing but zeros."""
    view = memoryview(buffer).cast("B")
    # Converted to bytes, because bytes compare in one step and memoryviews item by item.
    return not view or (not view[0] and not view[-1] and bytes(view) == bytes(len(view)))


def data_spans(buffer: ReadableBuffer, offset: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) in `buffer`, in order, for the parts to be written at `offset` of a file.

    Blocks are aligned to the file. A block of which the buffer holds only the head or tail is skipped if that
    part is zeros; another buffer decides the rest. So every block of zeros becomes a hole, however the
    content is split into buffers.
    """
    view = memoryview(buffer).cast("B")
    size = len(view)
    begun = -1
    start, stop = 0, min(size, HOLE_BYTES - offset % HOLE_BYTES)
    while start < size:
        # Converted to bytes, because bytes compare in one step and memoryviews item by item.
        if bytes(view[start:stop]) == _ZEROS[: stop - start]:
            if begun >= 0:
                yield begun, start
            begun = -1
        elif begun < 0:
            begun = start
        start, stop = stop, min(size, stop + HOLE_BYTES)
    if begun >= 0:
        yield begun, size


def long_data_spans(buffer: ReadableBuffer, least: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) in `buffer`, in order, for the parts to be written, without long runs of zeros.

    The buffer is looked at in steps of `least` bytes, so a run of twice that is always found, and a shorter
    one than `least` never. A step of data costs two looks at single bytes. A run need not lie on blocks: the
    rest of a block is written, and the file system fills it with zeros.
    """
    view = memoryview(buffer).cast("B")
    size, zeros, begun, after_zeros = len(view), bytes(least), -1, False
    for start in range(0, size, least):
        stop = min(start + least, size)
        whole = stop - start == least or after_zeros
        after_zeros = (
            whole and not (view[start] or view[stop - 1]) and bytes(view[start:stop]) == zeros[: stop - start]
        )
        if after_zeros:
            if begun >= 0:
                yield begun, start
            begun = -1
        elif begun < 0:
            begun = start
    if begun >= 0:
        yield begun, size


def may_have_holes(view: memoryview, least: int) -> bool:
    """Return whether something may be left out of these bytes: a cheap look that sees that most buffers, such
    as text, have no hole. `least`: as in `data_and_holes`; 0 if nothing is left out."""
    if least != HOLE_BYTES:
        # Some step of `least` bytes begins with a zero.
        return 0 < least <= len(view) and 0 in bytes(view[::least])
    # Blocks are those of the file, so the first and the last bytes may be parts of some.
    return bool(view) and (not view[0] or not view[-1] or _ZEROS in bytes(view))


def data_and_holes(
    buffer: ReadableBuffer, offset: int, least: int
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return what of `buffer`, for `offset` of a file, is to be written and what is not, as (start, stop).

    `least`: bytes of the shortest run of zeros that is left out; HOLE_BYTES for all blocks of zeros.
    """
    some = data_spans(buffer, offset) if least == HOLE_BYTES else long_data_spans(buffer, least)
    data, holes, at, size = list(some), list[tuple[int, int]](), 0, memoryview(buffer).nbytes
    for start, stop in (*data, (size, size)):
        if start > at:
            holes.append((at, start))
        at = stop
    return data, holes


def zero_spans(buffer: ReadableBuffer, offset: int) -> Iterator[tuple[int, int]]:
    """Yield (start, stop) in `buffer`, in order, for its whole blocks of zeros at `offset` of a file."""
    at = -offset % HOLE_BYTES
    end = memoryview(buffer).nbytes
    end -= (offset + end) % HOLE_BYTES
    for start, stop in (*data_spans(buffer, offset), (end, end)):
        if at < start <= end:
            yield at, start
        at = max(at, stop)


def lock_temporary(fd: int) -> bool:
    """Take the lock; return False if another process holds it. File systems without locks return True: sweeps
    cannot lock there either."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in {errno.EBADF, errno.EINTR}:
            raise
    return True


# CheckedRename: renames a finished temporary over its target in one step, if the target is the expected
# entry.

_DOING = "replace it"


class CheckedRename:
    """Renames files of one tree into place. If a file loses one of several names, its ctime changes. The
    file is still recognised under its other names."""

    def __init__(self, root: Root) -> None:
        self._root = root

    def check_directory(self, path: bytes, parent: bytes, directory: Directory) -> None:
        """Raise FileError unless `parent` still leads to the directory that holds the temporary.

        Another process may have moved that directory while the temporary was written. `path` is for the
        message.
        """
        if not self._root.directory(parent, fresh=True).same(directory):
            raise self._unexpected(path)

    def _unexpected(self, path: bytes) -> FileError:
        return self._root.refused(
            path,
            _DOING,
            expected="the directory it had",
            found="another one at that path",
            advice="the existing entry was kept; run again once nothing else changes it",
        )

    def keep_backup(
        self, path: bytes, directory: int, expected: Expected, backups: BackupKeeper, *, copy: bool
    ) -> None:
        """Give the entry at `path` its backup, if it is `expected`.

        `copy`: as in BackupKeeper.keep. Raises FileError or OSError. If nothing is there, nothing is done:
        `rename` decides about that.
        """
        name = path.rpartition(b"/")[2]
        found = found_at(name, directory)
        if found is not None:
            self._root.require(path, found, expected, _DOING)
            backups.keep(path, name, directory, copy=copy)

    def rename(
        self, path: bytes, directory: int, old: bytes, expected: Expected, *, displaces: bool = True
    ) -> None:
        """Rename `old` to `path`, whose directory is open.

        `expected` is as in CommitGroup.add. `displaces`: where no rename replaces anything, the old entry is
        moved away first. Raises FileError if another entry is there, OSError if the rename fails. An
        append-only root accepts only a free name.
        """
        # long because each step is safe only because of the checks before it
        name, root = path.rpartition(b"/")[2], self._root
        if root.append_only:
            try:
                rename_to_free_name(old, name, directory)
            except FileExistsError as error:
                raise root.append_only_refusal(path, _DOING) from error
            return
        if expected is None:
            try:
                take_free_name(old, name, directory)
                return
            except FileExistsError:
                pass  # what is there is looked at below, and refused
        is_directory = False

        def require(found: os.stat_result | None) -> None:
            nonlocal is_directory
            is_directory = found is not None and stat.S_ISDIR(found.st_mode)
            if is_directory and not isinstance(expected, Identity):
                raise root.refused(
                    path,
                    _DOING,
                    expected="no directory",
                    found="a directory",
                    advice="the existing entry was kept; run again once nothing else changes it",
                )
            root.require(path, found, expected, _DOING)

        def rename() -> None:
            if is_directory:
                file_over_directory(old, name, directory)
            elif displaces:
                replace_name(old, name, directory)
            else:
                os.rename(old, name, src_dir_fd=directory, dst_dir_fd=directory)

        root.check.take_name(name, directory, require, rename)


COPY_BYTES = 64 << 20
"""Bytes per copy_file_range call. Signals are handled between calls; the cost of the calls is negligible."""

READ_BYTES = 1 << 20
"""Bytes per read when copy_file_range does not work and the copy is made with pread and pwrite."""

KEEP_BYTES = 64 << 10
"""Partial files of at least this size are kept for the next run. Below it, sending the content again costs
less than its signature."""

_OPEN_AGAIN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

NAME_ATTEMPTS = 16
"""Attempts to make a temporary. A sweep can remove one between its creation and its lock. That happening 16
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
        "_hole",
        "_least_hole",
        "_name",
        "_owned",
        "_reserved",
        "directory",
        "path",
        "root",
        "size",
        "unsettled",
    )

    keeps_inode = False  # True: `land` writes into the old file, as an Overwrite does

    def __init__(
        self,
        root: Root,
        path: bytes,
        *,
        expected_size: int | None = None,
        allocated: int | None = None,
        reserved: bool = True,
    ) -> None:
        """Create the temporary beside `path`.

        `expected_size` is the size that the file will have at most; a write beyond it is a FileError. None
        sets no bound. `allocated`: the bytes that this content takes where it comes from, if it has holes
        there; they are kept. `reserved`: space is reserved. Not if most will be cloned: call `reserve` if it
        is not.

        Raises FileError. Raises OutOfSpaceError if what will be written does not fit on the disk, and
        RdcError (exit code 11) if the write quota of `root` does not cover it.
        """
        self.root = root
        self.path = path
        self.size = 0
        """Bytes written so far."""
        self._fd = -1
        self._name: bytes | None = None
        self._owned = True
        self._by_hand = False
        self.unsettled = False
        """True if something could not be set, and is tried once more when the file is closed."""
        self._cloned = 0
        """Up to here the temporary may hold old content. What is written must cover it."""
        self._hole = (-1, -1)
        """The last run of zeros that was not written: from, to. It may be within the reserved bytes."""
        self._least_hole = root.writes.least_hole
        """Bytes of the shortest run of zeros that is not written. HOLE_BYTES: no block of zeros is. 0: all
        are."""
        needed = expected_size
        if needed is not None and allocated is not None and not root.writes.allocates:
            needed = min(needed, allocated)
        self._reserved = Reservation(needed)
        self._expected = expected_size
        if allocated is not None:
            self.keep_holes()
        root.spend(path, 0, entries=1, ahead=needed or 0)
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
            if reserved and not root.writes.sparse:
                self._reserved.begin(self._fd)
        except OSError as error:
            self.abandon()
            raise root.failure(error, path, "make a temporary file beside it") from error

    def fileno(self) -> int:
        return self._fd

    @property
    def device(self) -> int:
        return self._created.st_dev

    def keep_holes(self) -> None:
        """Make a hole of each block of zeros that is written from now on, unless all zeros are to be written:
        the content has holes elsewhere."""
        if self._least_hole or not self.root.writes.allocates:
            self._least_hole = HOLE_BYTES
            self._reserved.end()

    def note_clone(self, stop: int) -> None:
        """Record that bytes behind those written, up to `stop`, begin with content of another file."""
        self._cloned = max(self._cloned, stop)

    def take_clone(self, length: int, *, hole: bool = False) -> None:
        """Append `length` bytes that were cloned. `hole`: they are one, and take nothing. Raises RdcError."""
        self._admit(length)
        self._spend(0 if hole else length)
        self.size += length

    def reserve(self) -> None:
        """Reserve space as if the temporary had been made with `reserved`. Raises RdcError."""
        try:
            if not self.root.writes.sparse:
                self._reserved.begin(self._fd)
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "write it") from error

    def write_parts(self, buffer: ReadableBuffer, parts: Iterable[tuple[int, int]]) -> None:
        """Append all of `buffer`, of which the temporary holds everything but these ranges (start, stop).
        Raises RdcError."""
        view = memoryview(buffer).cast("B")
        self._admit(len(view))
        self._spend(len(view))
        for start, stop in parts:
            self._write_at(self.size + start, view[start:stop])
        self._punch(view, self.size)
        self.size += len(view)

    def _punch(self, view: memoryview, at: int) -> None:
        """Make holes of the blocks of zeros in `view`, which was written at `at` over something, if each such
        block is to be one."""
        if self._least_hole == HOLE_BYTES and may_have_holes(view, HOLE_BYTES):
            for start, stop in zero_spans(view, at):
                with suppress(OSError):  # they are zeros anyway
                    punch_hole(self._fd, at + start, stop - start)

    def write(self, buffer: ReadableBuffer) -> None:
        """Append all of `buffer`, any contiguous buffer of bytes. Raises RdcError."""
        view = memoryview(buffer).cast("B")
        self._admit(len(view))
        at = self.size
        # Where something was cloned, a skipped block of zeros would hold old content.
        if at < self._cloned:
            self._spend(len(view))
            self._write_at(at, view)
            self._punch(view, at)
        elif may_have_holes(view, self._least_hole):
            data, holes = data_and_holes(view, at, self._least_hole)
            for start, stop in data:
                self._write_data(at + start, view[start:stop])
            for start, stop in holes:
                self._note_hole(at + start, at + stop)
        else:
            self._write_data(at, view)
        self.size += len(view)
        if self._hole[1] == self.size:
            self._extend()

    def write_zeros(self, length: int) -> None:
        """Append `length` zeros: as a hole, in the same time whatever the length, unless all zeros are to be
        written. Raises RdcError."""
        stop = self.size + length
        self._admit(length)
        if self._least_hole and self.size < self._cloned:
            end = min(stop, self._cloned)
            with suppress(OSError):
                punch_hole(self._fd, self.size, end - self.size)
                self.size = end
        zeros = bytes(min(length, READ_BYTES))
        while self.size < stop and (not self._least_hole or self.size < self._cloned):
            self.write(zeros[: stop - self.size])
        if self.size < stop:
            self._note_hole(self.size, stop)
            self.size = stop
        if self._hole[1] == self.size:
            self._extend()

    def _write_data(self, at: int, view: memoryview) -> None:
        """Write what is no hole, charge the quota, and reserve space for what may follow. Raises RdcError."""
        try:
            self.root.spend(self.path, len(view))
            self._reserved.ahead(self._fd, at + len(view))
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "write it") from error
        except RdcError:
            self.abandon()
            raise
        self._write_at(at, view)

    def _note_hole(self, start: int, stop: int) -> None:
        """Note zeros that were not written. What is reserved of them is given back once the hole has ended:
        a part of a block at the end of each of its parts would stay."""
        if self._hole[1] != start:
            self._end_hole()
            self._hole = start, start
            self._reserved.end()
        self._hole = self._hole[0], stop

    def _end_hole(self) -> None:
        start, stop = self._hole[0], min(self._hole[1], self._reserved.size)
        if start < stop:
            with suppress(OSError):  # they are zeros anyway
                punch_hole(self._fd, start, stop - start)

    def _extend(self) -> None:
        """Give the file its size, of which the end is a hole, so that it can be read back. Raises
        RdcError."""
        try:
            self._grow()
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "write it") from error

    def rewrite(self, offset: int, buffer: ReadableBuffer) -> None:
        """Overwrite bytes already written at `offset`. Raises RdcError."""
        view = memoryview(buffer).cast("B")
        self._write_at(offset, view)
        stop = offset + len(view)
        if stop == self.size:
            # The last block of a file counts as whole: a hole may reach beyond the end.
            view = memoryview(bytes(view) + bytes(-stop % HOLE_BYTES))
        self._punch(view, offset)

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

    def _write_at(self, offset: int, buffer: ReadableBuffer) -> int:
        """Write at `offset`, which may lie behind the end of the file. Returns the number of bytes. Raises
        RdcError."""
        view = memoryview(buffer)
        total = left = view.nbytes
        try:
            while True:
                try:
                    written = os.pwrite(self._fd, view, offset)
                except OSError as error:
                    if not is_refused(error) or offset <= os.fstat(self._fd).st_size:
                        raise
                    self._fill(offset)
                    continue
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
        if self._least_hole == HOLE_BYTES or (holes and self._least_hole):
            return self._copy_sparsely(source, offset, length)
        done = 0
        self._admit(length)
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
        """Do what `copy_from` does, with reads and writes between the holes of the source: most file systems
        copy a hole as allocated zeros."""
        from rdc.files.facts.extents import holes

        at = offset
        try:
            stop = min(offset + length, max(offset, os.fstat(source).st_size))
            for start, end in chain(holes(source, stop, offset), [(stop, stop)]):
                while at < start:
                    data = os.pread(source, min(start - at, READ_BYTES), at)
                    if not data:
                        return at - offset
                    self.write(data)
                    at += len(data)
                if at < end:
                    self.write_zeros(end - at)
                    at = end
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "copy into it") from error
        return at - offset

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

    def zero_runs(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of [start, stop) that are known to be zeros, in order, and at last an empty one at
        `stop`. Only what is between them need be read."""
        from rdc.files.facts.extents import holes

        yield from holes(self._fd, stop, start)
        yield stop, stop

    def seal(self, metadata: Metadata, *, owner: bool) -> None:
        """Set the final metadata of the temporary, and leave the decision about it to the CommitGroup that
        calls this. Nothing is written afterwards. Raises RdcError."""
        self._owned = False
        try:
            self._end_hole()
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
            self.unsettled = True
            return False
        return True

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

    def land(self, renamer: CheckedRename, expected: Expected, *, fsync: bool) -> int:
        """Give the content its path; return the descriptor of the file there, -1 if it had to be closed.
        Raises FileError, OSError."""
        try:
            renamer.rename(self.path, self.directory.fd, self._name or b"", expected, displaces=False)
        except OSError as error:
            if not (is_refused(error) or error.errno == errno.EEXIST):
                raise
            # Some file systems rename no file that is open, and some rename over no file at all.
            self._close()
            renamer.rename(self.path, self.directory.fd, self._name or b"", expected)
        self._name = None
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

    def rest(self) -> None:
        """Close the complete temporary, and the descriptor of its directory, until `resume`. It keeps its
        name and loses its lock. Never raises: with fsync its content is on disk, without nobody asked."""
        self._close()
        del self.directory

    def resume(self, directory: Directory, is_same: Callable[[os.stat_result], bool]) -> bool:
        """Open and lock the temporary again, in its directory. Return False if what has its name is not, by
        `is_same`, what was closed, or another process holds its lock. Raises OSError."""
        fd = os.open(self.temporary, _OPEN_AGAIN, dir_fd=directory.fd)
        try:
            same = is_same(os.fstat(fd)) and lock_temporary(fd)
        except BaseException:
            os.close(fd)
            raise
        if not same:
            os.close(fd)
            return False
        self._fd, self.directory = fd, directory
        return True

    def keep(self) -> None:
        """Close the temporary and leave it for the next run to resume from. Files below KEEP_BYTES are
        removed instead."""
        if self.size >= KEEP_BYTES:
            self._end_hole()
            if max(self._reserved.size, self._cloned) > self.size and self._fd >= 0:
                with suppress(OSError):  # the next run cannot use what lies beyond the end
                    os.ftruncate(self._fd, self.size)
            if self._name is not None and self.root.writes.partials is not None:
                self.root.writes.partials.keep(self.path, self.directory.fd, self._name)
            self._name = None
        self.abandon()

    def __enter__(self) -> Replacement:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
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
                found = self._created = os.fstat(self._fd)
                if found.st_nlink or has_name(self._fd, self._name, directory.fd):
                    if self.root.writes.sheds_acls:
                        shed_acl(self._fd)
                    return
            self.abandon()
        raise OSError(errno.EAGAIN, "")

    def _spend(self, size: int) -> None:
        try:
            self.root.spend(self.path, size)
        except RdcError:
            self.abandon()
            raise

    def _admit(self, length: int) -> None:
        """Check that `length` more bytes stay within the expected size. Raises RdcError."""
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
