"""SnapshotTree: the directories of a snapshot by their paths, and streams of a store read anywhere."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from collections import OrderedDict, deque
from itertools import accumulate

from blake3 import blake3

from rdc.errors import FileError
from rdc.lean.typed import TypeVar
from rdc.limits import PATH_BYTES
from rdc.model.entries import strings
from rdc.store.directory import KEY_BYTES
from rdc.store.pack_file import damaged
from rdc.store.reader import check_list
from rdc.store.tree_rows import (
    LENGTH,
    RECORD_BYTES,
    DirectoryRows,
    FileTraits,
    StreamRef,
    decode_rows,
    decode_traits,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from rdc.lean.threads import Task
    from rdc.store.reader import StoreReader
    from rdc.store.snapshots import Snapshot

CACHED_ROWS = 1 << 14
"""Rows of directories that stay decoded, in some 16 MB: a sync asks for contents long after the listing."""

PART_BYTES = 4 << 20
"""Most bytes of records that are read at once."""

_HEADS_BYTES = 64 << 10
"""Bytes that are read at once for the heads of records."""

BLOCK_KEYS = 256
"""Keys of a stream whose lengths are added up together. The end of each block is kept, and the keys of one
block."""

AHEAD_WORTH = 8 << 20
"""Bytes of a stream from which on a thread decodes ahead."""

AHEAD_PARTS = 16
"""Parts of a stream that are decoded ahead, of FRAME_BYTES at most: as much as is decoded in 10 ms."""

_BLOCK_BYTES = KEY_BYTES * BLOCK_KEYS

_LENGTHS = struct.Struct("<II")
"""The length of a record, and the bytes of its path."""

_PATH_AT = LENGTH.size + 32
"""Offset of the path in a record, whose length is before it."""


T = TypeVar("T")


def ahead(values: Iterator[T], most: int) -> Generator[T, None, None]:
    """Yield `values`, of which a thread makes up to `most` before they are asked for.

    Decompressing takes a third of the CPU time of a restore, and reserving blocks for a new file stops its
    writer for 20 ms at a time. One after the other, a second core has nothing to do in either. Frames that
    are decoded ahead bridge both, for 3 % more CPU time.

    The thread ends with this iterator, whose close waits for the value in the making. An error of `values` is
    raised where its value would have come. Where the system refuses a thread, each is made when it is asked
    for.
    """
    from rdc.lean.threads import Threads

    threads = Threads(1, "rdc chunks")
    tasks: deque[Task[T | None]] = deque()
    try:
        try:
            tasks.append(threads.submit(next, values, None))
        except RuntimeError:
            yield from values
            return
        while True:
            tasks.extend([threads.submit(next, values, None) for _ in range(most - len(tasks))])
            value = tasks.popleft().result()
            if value is None:
                return
            yield value
    finally:
        for task in tasks:
            task.cancel()
        threads.close()


class StoredStream:
    """A stream of a store whose bytes can be read anywhere. Memory is bounded by 8 bytes a block of keys."""

    def __init__(self, reader: StoreReader, ref: StreamRef, *, is_list: bool = False) -> None:
        """`is_list`: it is a list of keys, whose size is what its chunks have.

        Raises FileError if a chunk is missing or the lengths do not add up.
        """
        self._reader = reader
        self.size = ref.size
        self._inline = ref.keys
        self._list = (
            StoredStream(reader, StreamRef(0, ref.level - 1, ref.keys), is_list=True) if ref.level else None
        )
        self._keys_bytes = len(ref.keys) if self._list is None else self._list.size
        self._ends: array[int] = array("Q")
        """The end of each block in the stream."""
        self._last_block = -1, b"", array("Q")
        """The number, the keys and the ends of the chunks of the block that was read last."""
        self._part: tuple[int, bytes | memoryview] = 0, b""
        """The chunks that were read last and their offset: records of a tree are shorter than chunks."""
        self._read_to = 0
        """The end of the range that was read last."""
        end, least = 0, reader.least_chunk
        count = self._keys_bytes // KEY_BYTES
        if self._keys_bytes % KEY_BYTES or not (is_list or (count - 1) * least <= ref.size):
            raise damaged(reader.store.label, f"the keys of {ref.size} bytes", f"{self._keys_bytes} bytes")
        for number in range(-(-count // BLOCK_KEYS)):
            lengths = reader.lengths(self._keys_of(number))
            end += sum(lengths)
            self._ends.append(end)
            if is_list:
                check_list(reader.store.label, end, number * BLOCK_KEYS + len(lengths), max(lengths))
            elif end > ref.size:
                break
        if end != ref.size and not is_list:
            raise damaged(reader.store.label, f"a stream of {ref.size} bytes", f"{end}")
        self.size = end

    def _keys_of(self, block: int) -> bytes:
        at = _BLOCK_BYTES * block
        if self._list is None:
            return self._inline[at : at + _BLOCK_BYTES]
        return self._list.pread(at, min(_BLOCK_BYTES, self._keys_bytes - at))

    def _block_at(self, offset: int) -> tuple[bytes, array[int]]:
        """Return the keys and the ends of the chunks of the block with the byte at `offset`. The first end is
        that of the block before."""
        number = bisect_right(self._ends, offset)
        last, keys, ends = self._last_block
        if last != number:
            keys = self._keys_of(number)
            start = self._ends[number - 1] if number else 0
            ends = array("Q", accumulate(self._reader.lengths(keys), initial=start))
            self._last_block = number, keys, ends
        return keys, ends

    def pread(self, offset: int, length: int) -> bytes:
        """Return the bytes of a range, which lies in the stream. Raises FileError."""
        parts: list[bytes | memoryview] = []
        end = offset + length
        # If a reader reads from front to back, the chunks of a frame are compared with their keys at once.
        wanted = self.size if offset == self._read_to else end
        self._read_to = end
        while offset < end:
            start, part = self._part
            if not start <= offset < start + len(part):
                start, part = self._part = self._part_at(offset, wanted)
            stop = min(end, start + len(part))
            parts.append(part[offset - start : stop - start])
            offset = stop
        return bytes(parts[0]) if len(parts) == 1 else b"".join(parts)

    def parts(self, most: int) -> Iterator[bytes | memoryview]:
        """Yield the stream from front to back, at most `most` bytes at a time, and at least half of that
        except at its end. What lies in one frame is not copied. Raises FileError."""
        whole = self._whole_parts()
        few: list[bytes | memoryview] = []
        held = 0
        for part in whole if self.size < AHEAD_WORTH else ahead(whole, AHEAD_PARTS):
            view = memoryview(part)
            while view:
                piece = view[: most - held]
                view = view[len(piece) :]
                few.append(piece)
                held += len(piece)
                if 2 * held >= most:
                    yield few[0] if len(few) == 1 else b"".join(few)
                    few, held = [], 0
        if few:
            yield b"".join(few)

    def _whole_parts(self) -> Iterator[bytes | memoryview]:
        """Yield the stream from front to back, as many neighbouring chunks at a time as lie in one frame."""
        offset = 0
        while offset < self.size:
            _, part = self._part_at(offset, self.size)
            offset += len(part)
            yield part

    def _part_at(self, offset: int, end: int) -> tuple[int, bytes | memoryview]:
        """Return neighbouring chunks of one frame, from the one with the byte at `offset` to the one before
        `end` at most, and their offset."""
        keys, ends = self._block_at(offset)
        first = bisect_right(ends, offset) - 1
        stop = min(len(ends) - 1, bisect_left(ends, end, first + 1))
        part, count = self._reader.read_first(keys[KEY_BYTES * first : KEY_BYTES * stop])
        if len(part) != ends[first + count] - ends[first]:
            raise damaged(self._reader.store.label, "chunks as long as their packs say", "others")
        return ends[first], part


class SnapshotTree:
    """The directories of one snapshot. Opening it reads the whole tree once and keeps a place a directory."""

    def __init__(self, reader: StoreReader, snapshot: Snapshot) -> None:
        """Read the tree. Raises FileError if it is damaged."""
        self.snapshot = snapshot
        self.reader = reader
        self._stream = StoredStream(reader, snapshot.tree)
        self._numbers: dict[bytes, int] = {}
        """The number of each directory, in walk order."""
        self._offsets: array[int] = array("Q")
        """The offset of each directory's record, the length before it included."""
        self._cached: OrderedDict[bytes, DirectoryRows] = OrderedDict()
        self._cached_rows = 0
        """The rows of the cached directories, and one more for each."""
        at, size = 0, self._stream.size
        part, start = b"", 0
        while at < size:
            if at + _PATH_AT > size:
                raise self._damaged(f"{size - at} bytes after the last directory")
            # One read has the heads of many small records. A long record is passed over.
            if min(at + _PATH_AT + PATH_BYTES, size) > start + len(part):
                part, start = self._stream.pread(at, min(_HEADS_BYTES, size - at)), at
            length, path_bytes = _LENGTHS.unpack_from(part, at - start)
            most = min(RECORD_BYTES, size - at - LENGTH.size)
            if path_bytes > PATH_BYTES or not 32 + path_bytes <= length <= most:
                raise self._damaged(f"a record of {length} bytes")
            path_at = at - start + _PATH_AT
            path = part[path_at : path_at + path_bytes]
            if path in self._numbers or _leads_out(path):
                raise self._damaged(f"a directory {path[:80]!r}")
            self._numbers[path] = len(self._offsets)
            self._offsets.append(at)
            at += LENGTH.size + length
        self._offsets.append(at)

    @property
    def keys(self) -> bytes:
        """The keys of the chunks of the tree."""
        return self.reader.expand(self.snapshot.tree)

    def __contains__(self, path: bytes) -> bool:
        return path in self._numbers

    def __len__(self) -> int:
        """Return the number of directories."""
        return len(self._numbers)

    def __iter__(self) -> Iterator[bytes]:
        """Yield the paths of all directories in walk order; b"" is the top."""
        return iter(self._numbers)

    def rows(self, path: bytes) -> DirectoryRows | None:
        """Return one directory; None if the snapshot has none there. Raises FileError."""
        known = self._cached.get(path)
        if known is not None:
            self._cached.move_to_end(path)
            return known
        number = self._numbers.get(path)
        if number is None:
            return None
        try:
            found = decode_rows(self._record(number))
        except ValueError as error:
            raise self._damaged(str(error)) from error
        self._cached[path] = found
        self._cached_rows += 1 + found.listing.count
        while self._cached_rows > CACHED_ROWS and len(self._cached) > 1:
            self._cached_rows -= 1 + self._cached.popitem(last=False)[1].listing.count
        return found

    def all_traits(self) -> Iterator[tuple[bytes, FileTraits]]:
        """Yield the path of each directory and the sizes and traits of its files, in walk order.

        That takes less than their rows, and one read has many small records. Raises FileError.
        """
        part, start = b"", 0
        for number, path in enumerate(self._numbers):
            at, end = self._offsets[number] + LENGTH.size, self._offsets[number + 1]
            if end > start + len(part):
                least = min(_HEADS_BYTES, self._stream.size - at)
                part, start = self._stream.pread(at, max(end - at, least)), at
            try:
                yield path, decode_traits(part[at - start : end - start])
            except ValueError as error:
                raise self._damaged(str(error)) from error

    def digest(self, path: bytes) -> bytes:
        """Return a digest of the record of a directory that exists: equal ones are equal directories."""
        return blake3(self._record(self._numbers[path])).digest()

    def number(self, path: bytes) -> int | None:
        """Return the number of a directory in walk order; None if the snapshot has none there."""
        return self._numbers.get(path)

    def records(self, first: int, stop: int) -> Iterator[bytes]:
        """Yield the bytes of the records of directories [first, stop), the lengths before them included."""
        at, end = self._offsets[first], self._offsets[stop]
        while at < end:
            yield self._stream.pread(at, min(PART_BYTES, end - at))
            at += PART_BYTES

    def _record(self, number: int) -> bytes:
        at = self._offsets[number] + LENGTH.size
        return self._stream.pread(at, self._offsets[number + 1] - at)

    def _damaged(self, found: str) -> FileError:
        shown = self.reader.store.shown(b"snapshots/%d" % self.snapshot.number)
        return damaged(shown, "the directories of a tree", found)


def top_names(reader: StoreReader, snapshot: Snapshot) -> tuple[bytes, ...]:
    """Return the names in the top directory of a snapshot, without opening its whole tree.

    Raises FileError if it is damaged.
    """
    stream = StoredStream(reader, snapshot.tree)
    if not stream.size:
        return ()
    shown = reader.store.shown(b"snapshots/%d" % snapshot.number)
    if stream.size < _PATH_AT:
        raise damaged(shown, "a top directory", f"{stream.size} bytes")
    (length,) = LENGTH.unpack(stream.pread(0, LENGTH.size))
    if length > min(RECORD_BYTES, stream.size - LENGTH.size):
        raise damaged(shown, "a top directory", f"a record of {length} bytes")
    try:
        return tuple(strings(decode_rows(stream.pread(LENGTH.size, length)).listing.names))
    except ValueError as error:
        raise damaged(shown, "a top directory", str(error)) from error


def _leads_out(path: bytes) -> bool:
    """Return whether a path is none below a top directory."""
    # Searches of the whole path, because every put asks for each directory.
    names = b"/%s/" % path if path else b"/"
    return b"//" in names or b"/./" in names or b"/../" in names or b"\0" in path
