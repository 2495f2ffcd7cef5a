"""SnapshotTree: the directories of a snapshot by their paths, and streams of a store read anywhere."""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections import OrderedDict

from blake3 import blake3

from rdc.errors import FileError
from rdc.store.directory import KEY_BYTES
from rdc.store.pack_file import damaged
from rdc.store.tree_rows import LENGTH, RECORD_BYTES, DirectoryRows, StreamRef, decode_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.store.reader import StoreReader
    from rdc.store.snapshots import Snapshot

CACHED_ROWS = 8
"""Directories that stay decoded."""

_PATH_AT = LENGTH.size + 32
"""Offset of the path in a record, whose length is before it."""


class StoredStream:
    """A stream of a store whose bytes can be read anywhere."""

    def __init__(self, reader: StoreReader, ref: StreamRef) -> None:
        """Raises FileError if a chunk is missing or the lengths do not add up."""
        self._reader = reader
        self.keys = reader.expand(ref)
        self._ends: array[int] = array("Q")
        end = 0
        for at in range(0, len(self.keys), KEY_BYTES):
            end += reader.length(self.keys[at : at + KEY_BYTES])
            self._ends.append(end)
        self.size = ref.size
        self._last = -1, b""
        """The number and bytes of the chunk that was read last: records of a tree are shorter than chunks."""
        if end != ref.size:
            raise damaged(reader.store.label, f"a stream of {ref.size} bytes", f"{end}")

    def pread(self, offset: int, length: int) -> bytes:
        """Return the bytes of a range, which lies in the stream. Raises FileError."""
        parts = []
        number = bisect_right(self._ends, offset)
        end = offset + length
        while offset < end:
            start = self._ends[number - 1] if number else 0
            chunk = self._chunk(number)
            parts.append(chunk[offset - start : end - start])
            offset = start + len(chunk)
            number += 1
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _chunk(self, number: int) -> bytes:
        last, chunk = self._last
        if number != last:
            chunk = self._reader.chunk(self.keys[KEY_BYTES * number : KEY_BYTES * (number + 1)])
            self._last = number, chunk
        return chunk


class SnapshotTree:
    """The directories of one snapshot. Opening it reads the whole tree once and keeps a place a directory."""

    def __init__(self, reader: StoreReader, snapshot: Snapshot) -> None:
        """Raises FileError if the tree is damaged."""
        self.snapshot = snapshot
        self.reader = reader
        self._stream = StoredStream(reader, snapshot.tree)
        self._places: dict[bytes, tuple[int, int]] = {}
        """Offset and length of each directory's record, in walk order."""
        self._cached: OrderedDict[bytes, DirectoryRows] = OrderedDict()
        at = 0
        while at < self._stream.size:
            if at + _PATH_AT > self._stream.size:
                raise self._damaged(f"{self._stream.size - at} bytes after the last directory")
            head = self._stream.pread(at, LENGTH.size + 4)
            length, path_bytes = LENGTH.unpack_from(head)[0], LENGTH.unpack_from(head, LENGTH.size)[0]
            if not 32 + path_bytes <= length <= min(RECORD_BYTES, self._stream.size - at - LENGTH.size):
                raise self._damaged(f"a record of {length} bytes")
            path = self._stream.pread(at + _PATH_AT, path_bytes)
            if path in self._places or _leads_out(path):
                raise self._damaged(f"a directory {path[:80]!r}")
            self._places[path] = at + LENGTH.size, length
            at += LENGTH.size + length

    @property
    def keys(self) -> bytes:
        """The keys of the chunks of the tree."""
        return self._stream.keys

    def __contains__(self, path: bytes) -> bool:
        return path in self._places

    def __iter__(self) -> Iterator[bytes]:
        """Yield the paths of all directories in walk order; b"" is the top."""
        return iter(self._places)

    def rows(self, path: bytes) -> DirectoryRows | None:
        """Return one directory; None if the snapshot has none there. Raises FileError."""
        known = self._cached.get(path)
        if known is not None:
            self._cached.move_to_end(path)
            return known
        place = self._places.get(path)
        if place is None:
            return None
        try:
            found = decode_rows(self._stream.pread(*place))
        except ValueError as error:
            raise self._damaged(str(error)) from error
        self._cached[path] = found
        if len(self._cached) > CACHED_ROWS:
            self._cached.popitem(last=False)
        return found

    def digest(self, path: bytes) -> bytes:
        """Return a digest of the record of a directory that exists: equal ones are equal directories."""
        return blake3(self._stream.pread(*self._places[path])).digest()

    def _damaged(self, found: str) -> FileError:
        shown = self.reader.store.shown(b"snapshots/%d" % self.snapshot.number)
        return damaged(shown, "the directories of a tree", found)


def _leads_out(path: bytes) -> bool:
    """Return whether a path is none below a top directory."""
    return bool(path) and any(name in (b"", b".", b"..") or b"\0" in name for name in path.split(b"/"))
