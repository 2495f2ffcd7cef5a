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
from bisect import bisect_right
from contextlib import suppress
from itertools import chain

from rdc.files.base.directory_descriptors import change_time, same_entry
from rdc.files.base.metadata import Expected, changes_access, identity_of, outlast, strictly, take_acl_of
from rdc.files.base.syscalls import punch_hole
from rdc.files.base.taking_names import flush
from rdc.files.facts.extents import holes
from rdc.files.replace.replacement import (
    COPY_BYTES,
    READ_BYTES,
    CheckedRename,
    Replacement,
    copies_by_hand,
    data_and_holes,
    is_zeros,
    may_have_holes,
    zero_spans,
)
from rdc.model.preserved import packed_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed import ReadableBuffer

    from rdc.errors import FileError
    from rdc.files.root.root import Root
    from rdc.model.entries import Identity, Metadata


# BlockRuns: a state for each block of a file, held as runs, so that a hole of any length is one.


class BlockRuns:
    """The states of blocks 0, 1, 2, ...: small integers, 0 for a block that was not set."""

    __slots__ = ("_starts", "_states", "stop")

    def __init__(self) -> None:
        self.stop = 0
        """Number of blocks."""
        self._starts: list[int] = []
        """The first block of each run. Neighbouring runs have different states."""
        self._states: list[int] = []

    def grow(self, stop: int) -> None:
        """Have at least `stop` blocks. New ones are in state 0."""
        if stop > self.stop:
            first, self.stop = self.stop, stop
            if not self._states or self._states[-1]:
                self._starts.append(first)
                self._states.append(0)

    def at(self, block: int) -> tuple[int, int]:
        """Return the state of a block, and the first block after it that has another state or does not
        exist."""
        run = bisect_right(self._starts, block) - 1
        return self._states[run], self._end(run)

    def runs(self, state: int) -> Iterator[tuple[int, int]]:
        """Yield the runs of blocks in this state, in order: from, to."""
        for run, found in enumerate(self._states):
            if found == state:
                yield self._starts[run], self._end(run)

    def set(self, first: int, stop: int, state: int) -> None:
        """Set the state of blocks [first, stop), which exist."""
        if first >= stop:
            return
        begin, end = bisect_right(self._starts, first) - 1, bisect_right(self._starts, stop - 1) - 1
        starts, states = [first], [state]
        if self._starts[begin] < first:
            starts.insert(0, self._starts[begin])
            states.insert(0, self._states[begin])
        if stop < self._end(end):
            starts.append(stop)
            states.append(self._states[end])
        # One run more on either side, to be joined with these if its state is the same.
        if begin:
            begin -= 1
            starts.insert(0, self._starts[begin])
            states.insert(0, self._states[begin])
        if end + 1 < len(self._starts):
            end += 1
            starts.append(self._starts[end])
            states.append(self._states[end])
        kept = [row for row in range(len(states)) if not row or states[row] != states[row - 1]]
        self._starts[begin : end + 1] = [starts[row] for row in kept]
        self._states[begin : end + 1] = [states[row] for row in kept]

    def _end(self, run: int) -> int:
        return self._starts[run + 1] if run + 1 < len(self._starts) else self.stop


BLOCK_BYTES = 4096
"""The unit in which contents are compared and written: the block size of most file systems. A smaller one
would write no fewer blocks."""

OLD, NEW, ZERO = range(3)
"""The place of a block of the new content: the old file, the temporary, or none, since it is zeros."""

_OPEN = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_DOING = "write into it"


class Overwrite(Replacement):
    """A Replacement that takes no name: `land` writes what differs into the file that has it."""

    __slots__ = ("_blocks", "_metadata", "_old", "_old_fd", "_owner")

    keeps_inode = True

    def __init__(
        self, root: Root, path: bytes, expected: Identity, *, size: int, allocated: int | None = None
    ) -> None:
        """Open the regular file at `path`, which will have at most `size` bytes. `allocated`: as in
        Replacement.

        Raises FileError if it is not `expected`, or may not be written, and what a Replacement raises.
        """
        self._old_fd = -1
        self._old = expected
        self._blocks = BlockRuns()
        """The place of each block of the new content: OLD, NEW or ZERO."""
        self._metadata: Metadata | None = None
        self._owner = False
        super().__init__(root, path, expected_size=size, allocated=allocated, reserved=False)
        try:
            self._old_fd = root.perform(
                path, _DOING, lambda name, parent: os.open(name, _OPEN, dir_fd=parent)
            )
            found = root.perform(path, _DOING, lambda _name, _parent: os.fstat(self._old_fd))
            if not stat.S_ISREG(found.st_mode) or not root.check.is_still(expected, identity_of(found)):
                raise self._changed()
            outlast(change_time(expected))
        except BaseException:
            self.abandon()
            raise

    def reserve(self) -> None:
        """Do nothing: most of the content is there already."""

    def write(self, buffer: ReadableBuffer) -> None:
        view = memoryview(buffer).cast("B")
        self._admit(len(view))
        at = self.size
        data, holes = [(0, len(view))], list[tuple[int, int]]()
        if may_have_holes(view, self._least_hole):
            data, holes = data_and_holes(view, at, self._least_hole)
        self._spend(sum([stop - start for start, stop in data]))
        spans = [(*span, False) for span in data] + [(*span, True) for span in holes]
        for start, stop, hole in sorted(spans):
            if hole:
                self._put_zeros(at + start, at + stop)
            elif start < stop:
                self._put(at + start, view[start:stop])
        self.size += len(view)

    def write_zeros(self, length: int) -> None:
        if not self._least_hole:
            super().write_zeros(length)
            return
        self._admit(length)
        self._put_zeros(self.size, self.size + length)
        self.size += length

    def write_parts(self, buffer: ReadableBuffer, parts: Iterable[tuple[int, int]]) -> None:
        self.write(buffer)

    def rewrite(self, offset: int, buffer: ReadableBuffer) -> None:
        self._put(offset, memoryview(buffer).cast("B"))

    def copy_from(self, source: int, offset: int, length: int, *, holes: bool = False) -> int:
        return self._copy_sparsely(source, offset, length)

    def pread(self, offset: int, length: int) -> bytes:
        parts, stop = [], min(offset + length, self.size)
        while offset < stop:
            state, turn = self._blocks.at(offset // BLOCK_BYTES)
            end = min(stop, turn * BLOCK_BYTES)
            if state == ZERO:
                parts.append(bytes(end - offset))
            else:
                parts.append((super().pread if state == NEW else self._read_old)(offset, end - offset))
            offset = end
        return b"".join(parts)

    def zero_runs(self, start: int, stop: int) -> Iterator[tuple[int, int]]:
        while start < stop:
            state, turn = self._blocks.at(start // BLOCK_BYTES)
            end = min(stop, turn * BLOCK_BYTES)
            if state == ZERO:
                yield start, end
            elif state == OLD:
                yield from holes(self._old_fd, end, start)
            start = end
        yield stop, stop

    def seal(self, metadata: Metadata, *, owner: bool) -> None:
        """Remember the metadata for `land`."""
        self._owned = False
        self._metadata, self._owner = metadata, owner

    def keep(self) -> None:
        if not any(self._blocks.runs(NEW)):
            self.abandon()
        super().keep()

    def abandon(self) -> None:
        fd, self._old_fd = self._old_fd, -1
        if fd >= 0:
            with suppress(OSError):  # an error of what was written has shown in `land`
                os.close(fd)
        super().abandon()

    def land(self, renamer: CheckedRename, expected: Expected, *, fsync: bool) -> int:
        """Write the blocks that differ into the old file, then set its metadata.

        Raises FileError, and changes nothing, unless the file is the one that was opened and has not changed
        since. Raises OSError if a write fails; the file may then be a mixture. `fsync`: the content is on
        disk before the mtime says that it is complete.
        """
        name = self.path.rpartition(b"/")[2]
        now, there = os.fstat(self._old_fd), os.stat(name, dir_fd=self.directory.fd, follow_symlinks=False)
        if not (same_entry(now, there) and self.root.check.is_still(self._old, identity_of(now))):
            raise self._changed()
        self.root.require(self.path, there, expected, _DOING)
        # First the holes: what they give back may be the room for the rest.
        for start, stop in self._ranges(ZERO):
            self._clear_old(start, min(stop, now.st_size))
        for start, stop in self._ranges(NEW):
            self._write_old(start, stop)
        if os.fstat(self._old_fd).st_size != self.size:
            os.ftruncate(self._old_fd, self.size)
        if fsync:
            self._flush()
        self._set_metadata()
        if fsync:
            self._flush()
        after = os.fstat(self._old_fd)
        if after.st_nlink > 1:
            self._note_step(identity_of(now), identity_of(after))
        return self._old_fd

    def _flush(self) -> None:
        unsynced = flush(self._old_fd)
        if unsynced:
            self.root.storage.unsynced = unsynced

    def _note_step(self, before: Identity, after: Identity) -> None:
        """Have other names of the file know this step for one of this run. Size and mtime tell of most who
        wrote to it meanwhile: then it is a stranger's under its other names."""
        wanted = self.size, None if self._metadata is None else packed_time(self._metadata.mtime_ns)
        if (after.size, after.mtime_ns) == wanted:
            self.root.check.note(before, after)

    def _set_metadata(self) -> None:
        if self._metadata is None:
            raise ValueError("a file is sealed before it lands")
        now = os.fstat(self._old_fd)
        if self.root.writes.sheds_acls and changes_access(now, self._metadata, owner=self._owner):
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

    def _ranges(self, state: int) -> Iterator[tuple[int, int]]:
        """Yield the ranges (start, stop) of the new content that are in this state."""
        for start, stop in self._blocks.runs(state):
            yield start * BLOCK_BYTES, min(stop * BLOCK_BYTES, self.size)

    def _put(self, offset: int, new: memoryview) -> None:
        """Take new content at `offset`: what differs from the old content goes to the temporary."""
        stop = offset + len(new)
        blocks = range(offset // BLOCK_BYTES, -(-stop // BLOCK_BYTES))
        self._blocks.grow(blocks.stop)
        old = self._read_old(offset, len(new))
        state, turn = self._blocks.at(blocks.start)
        if old == new and state == OLD and turn >= blocks.stop:
            return
        begun = -1
        for block in blocks:
            start, end = max(offset, block * BLOCK_BYTES), min(stop, (block + 1) * BLOCK_BYTES)
            found, wanted = old[start - offset : end - offset], new[start - offset : end - offset]
            state, _ = self._blocks.at(block)
            if state != OLD or found != wanted:
                if state != NEW:
                    self._move(block, end - start, state)
                begun = start if begun < 0 else begun
            elif begun >= 0:
                self._write_at(begun, new[begun - offset : start - offset])
                begun = -1
        if begun >= 0:
            self._write_at(begun, new[begun - offset :])

    def _move(self, block: int, covered: int, state: int) -> None:
        """Have the temporary hold a block. What the caller does not write, `covered` bytes, is as it was."""
        self._blocks.set(block, block + 1, NEW)
        if covered < BLOCK_BYTES:
            before = self._read_old(block * BLOCK_BYTES, BLOCK_BYTES) if state == OLD else bytes(BLOCK_BYTES)
            if before:
                self._write_at(block * BLOCK_BYTES, before)

    def _put_zeros(self, start: int, stop: int) -> None:
        """Take zeros as new content. Whole blocks of them that the old file does not have become a hole."""
        first, last = -(-start // BLOCK_BYTES), stop // BLOCK_BYTES
        if first >= last:
            self._put(start, memoryview(bytes(stop - start)))
            return
        if start < first * BLOCK_BYTES:
            self._put(start, memoryview(bytes(first * BLOCK_BYTES - start)))
        self._blocks.grow(last)
        self._blocks.set(first, last, ZERO)
        # Zeros that the old file has stay as they are: in a hole of it, or written.
        at = first * BLOCK_BYTES
        whole = self._old.size // BLOCK_BYTES * BLOCK_BYTES
        end = min(last * BLOCK_BYTES, whole)
        for hole, hole_end in chain(holes(self._old_fd, end, at), ((end, end),)):
            while at < hole:
                some = self._read_old(at, min(hole - at, READ_BYTES))
                if len(some) % BLOCK_BYTES or not some:
                    break
                if is_zeros(some):
                    self._blocks.set(at // BLOCK_BYTES, (at + len(some)) // BLOCK_BYTES, OLD)
                at += len(some)
            if hole % BLOCK_BYTES == hole_end % BLOCK_BYTES == 0 and hole < hole_end:
                self._blocks.set(hole // BLOCK_BYTES, hole_end // BLOCK_BYTES, OLD)
            at = hole_end
        if last * BLOCK_BYTES < stop:
            self._put(last * BLOCK_BYTES, memoryview(bytes(stop - last * BLOCK_BYTES)))

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
        by_hand = self.root.writes.sparse
        while start < stop:
            done = 0 if by_hand else self._share(start, min(stop - start, COPY_BYTES))
            by_hand = by_hand or not done
            start += done or self._write_by_hand(start, min(stop - start, READ_BYTES))

    def _clear_old(self, start: int, stop: int) -> None:
        """Make a range of the old file zeros: a hole where it can have one. Raises OSError."""
        if start >= stop:
            return
        try:
            punch_hole(self._old_fd, start, stop - start)
        except OSError:
            zeros = bytes(min(stop - start, READ_BYTES))
            while start < stop:
                start += os.pwrite(self._old_fd, zeros[: stop - start], start)

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
        if self.root.writes.sparse:
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
            advice="the existing entry was kept; run again once nothing else changes it",
        )
