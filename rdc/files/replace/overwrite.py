"""Overwrite: the new content of a file that keeps its inode. Only blocks that differ are written, at the end.

Until the new content is verified as a whole, the old file is not touched. The blocks that differ wait in the
temporary, which is sparse. So a range may move within the file in any direction: what is read from the old
file is read before its first byte is overwritten, and no order of copies can be wrong.

`land` then writes the blocks. Only from here on does a kill, a power cut or a full disk leave a mixture. It
has neither the old mtime nor the new one, which is set last, so the next run finds and repairs it. The
temporary stays as well, and is one of that run's bases.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress

from rdc.files.base.durability import flush
from rdc.files.base.file_clock import outlast
from rdc.files.base.known_devices import same_entry
from rdc.files.base.metadata import changes_access
from rdc.files.base.shortfalls import strictly
from rdc.files.base.syscalls import punch_hole
from rdc.files.replace.replacement import COPY_BYTES, READ_BYTES, Replacement, copies_by_hand
from rdc.files.replace.sparse import zero_spans
from rdc.files.root.source_file import identity_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import ReadableBuffer

    from rdc.errors import FileError
    from rdc.files.replace.checked_rename import Anything, CheckedRename
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity, Metadata

__all__ = ["Overwrite"]

BLOCK_BYTES = 4096
"""The unit in which contents are compared and written: the block size of most file systems. A smaller one
would write no fewer blocks."""

_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_DOING = "write into it"


class Overwrite(Replacement):
    """A Replacement that takes no name: `land` writes what differs into the file that has it."""

    __slots__ = ("_differs", "_metadata", "_old", "_old_fd", "_owner")

    keeps_inode = True

    def __init__(self, root: Root, path: bytes, expected: Identity, *, size: int) -> None:
        """Open the regular file at `path`, which will have at most `size` bytes.

        Raises FileError if it is not `expected`, or may not be written, and what a Replacement raises.
        """
        self._old_fd = -1
        self._old = expected
        self._differs = bytearray()
        """For each block of the new content, 1 if the temporary has it, 0 if the old file has it."""
        self._metadata: Metadata | None = None
        self._owner = False
        super().__init__(root, path, expected_size=size, reserved=False)
        try:
            self._old_fd = root.perform(
                path, _DOING, lambda name, parent: os.open(name, _OPEN, dir_fd=parent)
            )
            found = os.fstat(self._old_fd)
            if not stat.S_ISREG(found.st_mode) or identity_of(found) != expected:
                raise self._changed()
            outlast(expected.ctime_ns)
        except BaseException:
            self.abandon()
            raise

    def reserve(self) -> None:
        """Do nothing: most of the content is there already."""

    def write(self, buffer: ReadableBuffer) -> None:
        view = memoryview(buffer).cast("B")
        self._admit(len(view))
        self._put(self.size, view)
        self.size += len(view)

    def write_parts(self, buffer: ReadableBuffer, parts: Iterable[tuple[int, int]]) -> None:
        self.write(buffer)

    def rewrite(self, offset: int, buffer: ReadableBuffer) -> None:
        self._put(offset, memoryview(buffer).cast("B"))

    def copy_from(self, source: int, offset: int, length: int, *, holes: bool = False) -> int:
        return self._copy_sparsely(source, offset, length)

    def pread(self, offset: int, length: int) -> bytes:
        parts, stop = [], min(offset + length, self.size)
        while offset < stop:
            differs = self._differs[offset // BLOCK_BYTES]
            turn = self._differs.find(1 - differs, offset // BLOCK_BYTES)
            end = stop if turn < 0 else min(stop, turn * BLOCK_BYTES)
            parts.append((super().pread if differs else self._read_old)(offset, end - offset))
            offset = end
        return b"".join(parts)

    def seal(self, metadata: Metadata, *, owner: bool) -> None:
        """Remember the metadata for `land`."""
        self._metadata, self._owner = metadata, owner

    def keep(self) -> None:
        if 1 not in self._differs:
            self.abandon()
        super().keep()

    def abandon(self) -> None:
        fd, self._old_fd = self._old_fd, -1
        if fd >= 0:
            with suppress(OSError):  # an error of what was written has shown in `land`
                os.close(fd)
        super().abandon()

    def land(self, renamer: CheckedRename, expected: Identity | Anything | None, *, fsync: bool) -> int:
        """Write the blocks that differ into the old file, then set its metadata.

        Raises FileError, and changes nothing, unless the file is the one that was opened and has not changed
        since. Raises OSError if a write fails; the file may then be a mixture. `fsync`: the content is on
        disk before the mtime says that it is complete.
        """
        name = self.path.rpartition(b"/")[2]
        now, there = os.fstat(self._old_fd), os.stat(name, dir_fd=self.directory.fd, follow_symlinks=False)
        if identity_of(now) != self._old or not same_entry(now, there):
            raise self._changed()
        for start, stop in self._ranges():
            self._write_old(start, stop)
        if os.fstat(self._old_fd).st_size != self.size:
            os.ftruncate(self._old_fd, self.size)
        if fsync:
            flush(self._old_fd)
        self._set_metadata()
        if fsync:
            flush(self._old_fd)
        return self._old_fd

    def _set_metadata(self) -> None:
        if self._metadata is None:
            raise ValueError("a file is sealed before it lands")
        now = os.fstat(self._old_fd)
        if self.root.sheds_acls and changes_access(now, self._metadata, owner=self._owner):
            from rdc.files.base.access_acl import take_acl_of

            take_acl_of(self._old_fd, now)
            now = os.fstat(self._old_fd)
        attempt = self._attempt if self.root.storage.is_agreed else strictly
        self.root.set_on_open(self._old_fd, now, self._metadata, owner=self._owner, attempt=attempt)

    def _close(self) -> None:
        fd, self._old_fd = self._old_fd, -1
        if fd >= 0:
            with suppress(OSError):  # an error of what was written has shown in `land`
                os.close(fd)
        super()._close()

    def _ranges(self) -> Iterator[tuple[int, int]]:
        """Yields the ranges (start, stop) of the new content that the temporary has."""
        at = self._differs.find(1)
        while at >= 0:
            stop = self._differs.find(0, at)
            stop = len(self._differs) if stop < 0 else stop
            yield at * BLOCK_BYTES, min(stop * BLOCK_BYTES, self.size)
            at = self._differs.find(1, stop)

    def _put(self, offset: int, new: memoryview) -> None:
        """Take new content at `offset`: what differs from the old content goes to the temporary."""
        stop = offset + len(new)
        blocks = range(offset // BLOCK_BYTES, -(-stop // BLOCK_BYTES))
        self._differs += bytes(max(0, blocks.stop - len(self._differs)))
        old = self._read_old(offset, len(new))
        if old == new and not any(self._differs[blocks.start : blocks.stop]):
            return
        begun = -1
        for block in blocks:
            start, end = max(offset, block * BLOCK_BYTES), min(stop, (block + 1) * BLOCK_BYTES)
            found, wanted = old[start - offset : end - offset], new[start - offset : end - offset]
            if self._differs[block] or found != wanted:
                if not self._differs[block]:
                    self._move(block, end - start)
                begun = start if begun < 0 else begun
            elif begun >= 0:
                self._write_at(begun, new[begun - offset : start - offset])
                begun = -1
        if begun >= 0:
            self._write_at(begun, new[begun - offset :])

    def _move(self, block: int, covered: int) -> None:
        """Have the temporary hold a block. What the caller does not write, `covered` bytes, is as it was."""
        self._differs[block] = 1
        if covered < BLOCK_BYTES and (old := self._read_old(block * BLOCK_BYTES, BLOCK_BYTES)):
            self._write_at(block * BLOCK_BYTES, old)

    def _read_old(self, offset: int, length: int) -> bytes:
        """Return bytes of the old file, fewer at its end. Raises RdcError."""
        parts = []
        try:
            while length > 0 and (data := os.pread(self._old_fd, length, offset)):
                parts.append(data)
                offset, length = offset + len(data), length - len(data)
        except OSError as error:
            self.abandon()
            raise self.root.failure(error, self.path, "read it") from error
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _write_old(self, start: int, stop: int) -> None:
        """Copy a range of the temporary to the old file. Raises OSError."""
        by_hand = self.root.sparse
        while start < stop:
            done = 0 if by_hand else self._share(start, min(stop - start, COPY_BYTES))
            by_hand = by_hand or not done
            start += done or self._write_by_hand(start, min(stop - start, READ_BYTES))

    def _share(self, offset: int, length: int) -> int:
        """Have the kernel copy or share a range; return how much it did, 0 if it cannot. Raises OSError."""
        try:
            return os.copy_file_range(self._fd, self._old_fd, length, offset_src=offset, offset_dst=offset)
        except OSError as error:
            if not copies_by_hand(error):
                raise
            return 0

    def _write_by_hand(self, offset: int, length: int) -> int:
        """Read and write a range; blocks of zeros become holes if files are to be sparse. Raises OSError."""
        content = os.pread(self._fd, length, offset)
        if not content:
            raise OSError(errno.EIO, "")
        done = os.pwrite(self._old_fd, content, offset)
        if self.root.sparse:
            for start, stop in zero_spans(content[:done], offset):
                with suppress(OSError):  # they are zeros anyway
                    punch_hole(self._old_fd, offset + start, stop - start)
        return done

    def _changed(self) -> FileError:
        return self.root.refused(
            self.path,
            _DOING,
            expected="the file that was there",
            found="that it was changed or replaced",
            advice="what is there was kept; run again once nothing else changes it",
        )
