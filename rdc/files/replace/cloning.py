"""Clones of files and of ranges, where the file system shares blocks."""

from __future__ import annotations

import os
from array import array
from collections import deque

from rdc.files.base.syscalls import LASTING_REFUSALS, clone_range
from rdc.files.replace.replacement import Replacement, is_zeros
from rdc.files.replace.staged_clones import SINGLE_REFUSALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.files.root.root import Root
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Clone


BLOCK_MOST = 1 << 20
"""Bytes. More than the block size of any file system: whatever it is, multiples of this are multiples of it.
"""


def may_clone(root: Root, source: int, destination: int | None = None) -> bool:
    """Return whether a file on device `source` may be cloned to device `destination`, the same by default.

    True until the file system has refused: it is asked once in the life of `root`.
    """
    devices = (source, source if destination is None else destination)
    return root.clone_refusals.get(devices, 0) < SINGLE_REFUSALS


def accepts_clones(temporary: Replacement, source: SourceFile) -> bool:
    """Return whether the file system shares blocks of `source` with an empty temporary.

    Where it was not asked before, it is asked for one block, which costs less than to plan clones in vain.
    """
    devices = (source.identity.device, temporary.device)
    block = block_bytes(source)
    if devices not in temporary.root.clone_refusals and source.size >= block:
        clone_into(temporary, source, 0, 0, block)
    return may_clone(temporary.root, *devices)


def block_bytes(source: SourceFile) -> int:
    """Return the block size of the file system that an open file lies on, in bytes."""
    try:
        return os.fstatvfs(source.fileno()).f_bsize or BLOCK_MOST
    except OSError:
        return BLOCK_MOST


def clone_into(temporary: Replacement, source: SourceFile, offset: int, at: int, length: int) -> bool:
    """Make `length` bytes of the temporary at `at` a clone of those at `offset` of `source`.

    They lie at or behind what was written. What they hold has to be read from the temporary and verified:
    the source may change at any time. False: the file system refused, and the range has to be written.
    """
    devices = (source.identity.device, temporary.device)
    refusals = temporary.root.clone_refusals
    if source.fileno() < 0 or refusals.get(devices, 0) >= SINGLE_REFUSALS:
        return False
    try:
        clone_range(source.fileno(), offset, length, temporary.fileno(), at)
    except OSError as error:
        count = SINGLE_REFUSALS if error.errno in LASTING_REFUSALS else refusals.get(devices, 0) + 1
        refusals[devices] = count
        if count < SINGLE_REFUSALS:
            temporary.note_clone(at + length)  # a disk that is full may have cloned a part
        return False
    temporary.note_clone(at + length)
    refusals[devices] = 0
    return True


def begin_as(temporary: Replacement, clone: SourceFile, size: int) -> bool:
    """Make an empty temporary, made without `reserved`, a clone of `clone`.

    False if that has not `size` bytes, or if the file system refused; space is reserved then. Raises
    RdcError.
    """
    if clone.size == size and clone_into(temporary, clone, 0, 0, size):
        return True
    temporary.reserve()
    return False


COPIED_BYTES = 64 << 20
"""Bytes of a long file that are copied between two reports."""


def copy_whole(
    temporary: Replacement,
    source: SourceFile,
    size: int,
    *,
    cloned: bool,
    copied: Callable[[int], None] | None = None,
) -> bool:
    """Append the first `size` bytes of `source` to an empty temporary, or as many as it has.

    `cloned`: as a clone where possible; the temporary was made without `reserved`. `copied` hears how many
    bytes are there by now. Returns whether it became a clone. Raises RdcError.
    """
    if cloned and source.size == size and clone_into(temporary, source, 0, 0, size):
        temporary.take_clone(size)
        if copied is not None:
            copied(size)
        return True
    if cloned:
        temporary.reserve()
    if copied is None:
        temporary.copy_from(source.fileno(), 0, size)
        return False
    for start in range(0, size, COPIED_BYTES):
        length = min(COPIED_BYTES, size - start)
        if temporary.copy_from(source.fileno(), start, length) < length:
            break
        copied(start + length)
    return False


# Ranges of a new version that begin as clones of its bases: read from there, verified, and not written.
#
# A base may change at any time, so a clone is made before it is read. What is read from the temporary and
# verified is then what the new version holds, whatever happens to the base.

COMPARED_BYTES = 1 << 20
"""Bytes of a run of equal chunks that are read and compared at a time."""

CLOSE_BYTES = 4 << 10
"""Bytes in place between two written ranges that cost less to write again than another call costs."""


class ClonedRanges:
    """The planned clones of one new version. Each is made when the content before it is written.

    All methods are about the content that is written next: the bytes at `temporary.size`.
    """

    def __init__(self, temporary: Replacement, bases: Sequence[SourceFile], clones: Sequence[Clone]) -> None:
        self._temporary = temporary
        self._block = block_bytes(bases[0])
        self._bases = bases
        self._planned = deque(clones)
        self._clone: Clone | None = None
        """The clone at or before the bytes written next."""

    def _reach(self, length: int) -> Clone | None:
        """Make the next clone if it begins within the next `length` bytes. Returns the one that is made and
        not passed yet."""
        at, end = self._temporary.size, self._temporary.size + length
        if self._clone is not None and self._clone.stop <= at:
            self._clone = None
        while self._clone is None and self._planned and self._planned[0].start < end:
            clone = self._planned.popleft()
            # Written and verified bytes must stay, so nothing is cloned before `at`.
            start = max(clone.start, -(-at // self._block) * self._block)
            if start >= clone.stop:
                continue
            source, size = self._bases[clone.base], clone.stop - start
            if clone_into(self._temporary, source, start + clone.shift, start, size):
                self._clone = clone._replace(start=start)
            else:
                self._temporary.reserve()  # it was left out in the hope of clones
        return self._clone

    def copied(self, base: int, offset: int, length: int) -> tuple[int, int]:
        """Return which of the next `length` bytes are those at `offset` of a base: from, to; (0, 0) if none.

        They still have to be verified.
        """
        start, stop = self._cloned(length)
        clone = self._clone
        if clone is None or (clone.base, clone.shift) != (base, offset - self._temporary.size):
            return 0, 0
        return start, stop

    def _cloned(self, length: int) -> tuple[int, int]:
        """Return which of the next `length` bytes are cloned: from, to; (0, 0) if none."""
        clone, at = self._reach(length), self._temporary.size
        if clone is None:
            return 0, 0
        start, stop = max(clone.start - at, 0), min(clone.stop - at, length)
        return (start, stop) if start < stop else (0, 0)

    def read(self, base: int, offset: int, length: int) -> bytes:
        """Return bytes of a base that are written next: what is in place from there, the rest from the
        base."""
        start, stop = self.copied(base, offset, length)
        source = self._bases[base]
        if start == stop:
            return source.pread(offset, length)
        content = self._temporary.pread(self._temporary.size + start, stop - start)
        if stop - start == length:
            return content
        before = source.pread(offset, start) if start else b""
        behind = source.pread(offset + stop, length - stop) if stop < length else b""
        return b"".join((before, content, behind))

    def read_ranges(self, base: int, rows: array[int], length: int) -> bytes | None:
        """Return the ranges `rows` of a base (offset, length) if the next `length` bytes are a clone that
        holds them all; else None."""
        clone, at = self._reach(length), self._temporary.size
        if clone is None or clone.base != base or clone.start > at or clone.stop < at + length:
            return None
        starts = [offset - clone.shift for offset in rows[0::2]]
        ends = [start + size for start, size in zip(starts, rows[1::2], strict=True)]
        if min(starts) < at or max(ends) > clone.stop:
            return None
        return b"".join(map(self._temporary.pread, starts, rows[1::2]))

    def put_repeated(self, content: bytes | bytearray, count: int) -> None:
        """Write `content` `count` times, but for what is in place, from wherever: a run of zeros has them
        everywhere."""
        if count > 1 and is_zeros(content):
            self._put_zeros(len(content) * count)
            return
        size = len(content)
        many = max(1, COMPARED_BYTES // size)
        repeated = bytes(content) * min(many, count)
        done = 0
        while done < count:
            times = min(many, count - done)
            start, stop = self._cloned(size * times)
            if stop > start:
                found = self._temporary.pread(self._temporary.size + start, stop - start)
                if found != repeated[start:stop]:
                    start = stop = 0
            self._write(memoryview(repeated)[: size * times], ((start, stop),))
            done += times

    def _put_zeros(self, length: int) -> None:
        """Write zeros, but for those that are in place. What is a hole there costs no time."""
        temporary, stop = self._temporary, self._temporary.size + length
        while temporary.size < stop:
            at = temporary.size
            start, end = self._cloned(stop - at)
            if start == end:
                temporary.write_zeros(stop - at)
                return
            if start:
                temporary.write_zeros(start)
                continue
            for first, last in temporary.zero_runs(at, at + end):
                while temporary.size < first:
                    found = temporary.pread(temporary.size, min(first - temporary.size, COMPARED_BYTES))
                    self._write(bytes(len(found)), ((0, len(found) if is_zeros(found) else 0),))
                temporary.take_clone(last - first, hole=True)

    def _write(self, content: bytes | memoryview, kept: Sequence[tuple[int, int]]) -> None:
        """Write `content` but for what is in place."""
        if any(stop > start for start, stop in kept):
            self._temporary.write_parts(content, between(kept, len(content)))
        else:
            self._temporary.write(content)

    def put_copied(self, base: int, offset: int, content: bytes) -> None:
        """Write bytes of a base that `read` returned and that are verified."""
        self._write(content, (self.copied(base, offset, len(content)),))

    def put_assembled(self, instructions: bytes, content: bytes | bytearray) -> None:
        """Write content that these copy instructions made, all of whose copies `read_ranges` returned."""
        rows, at, kept = iter(array("Q", instructions)), 0, list[tuple[int, int]]()
        clone = self._reach(len(content))
        for base, offset, length in zip(rows, rows, rows, strict=True):
            shift = offset - self._temporary.size - at
            if clone is not None and (base, shift) == (clone.base, clone.shift):
                if kept and kept[-1][1] == at:
                    kept[-1] = (kept[-1][0], at + length)
                else:
                    kept.append((at, at + length))
            at += length
        self._temporary.write_parts(content, between(kept, len(content)))


def between(kept: Sequence[tuple[int, int]], length: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of `length` bytes that lie between the ranges `kept`, which are in order. Short ones
    of `kept` are not spared."""
    at = 0
    for start, stop in kept:
        if stop - start < CLOSE_BYTES:
            continue
        if start > at:
            yield at, start
        at = stop
    if at < length:
        yield at, length
