"""The frames that the snapshots of a store need: gc keeps them. And the bytes that only one snapshot needs.

Marks are a byte a frame. A frame is marked if it has a chunk of a tree, of a list of keys or of a file, or a
base of a marked one. If several packs have a chunk, all of them are marked, since one of them may be damaged.
Frames that are known to be are not.
"""

from __future__ import annotations

import zlib
from array import array

from rdc.errors import FileError
from rdc.store.directory import split_keys
from rdc.store.reader import PackFacts, StoreReader
from rdc.store.snapshot_tree import SnapshotTree
from rdc.store.snapshots import Snapshot
from rdc.store.tree_rows import StreamRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

REMEMBERED_FRAMES = 8 << 20
"""Frames of directories that are remembered, in 32 MB: most directories of two snapshots are equal."""


class Marking:
    """Marks frames of one reader."""

    def __init__(self, reader: StoreReader) -> None:
        self._reader = reader
        self._known: dict[bytes, array[int]] = {}
        """The frames of directories by the digests of their records."""
        self._known_frames = 0
        self._chunks = bytearray(reader.chunks)
        """1 for each chunk of the snapshots whose content was marked."""

    def content(self, snapshot: Snapshot) -> bytearray:
        """Return the marks of the frames with chunks of a snapshot.

        Raises FileError if something of it is missing, or a tree or a list cannot be read.
        """
        tree = SnapshotTree(self._reader, snapshot)  # refuses what no writer makes
        marks = bytearray(self._reader.frames)
        for number in self._frames_of((snapshot.tree,)):
            marks[number] = 1
        for path in tree:
            digest = tree.digest(path)
            found = self._known.get(digest)
            if found is None:
                rows = tree.rows(path)
                found = self._frames_of([] if rows is None else [file.content for file in rows.files])
                self._remember(digest, found)
            for number in found:
                marks[number] = 1
        return marks

    def _remember(self, digest: bytes, frames: array[int]) -> None:
        if self._known_frames + len(frames) > REMEMBERED_FRAMES:
            self._known.clear()
            self._known_frames = 0
        self._known[digest] = frames
        self._known_frames += len(frames)

    def _frames_of(self, refs: Iterable[StreamRef]) -> array[int]:
        found = set[int]()
        for ref in refs:
            for level in range(ref.level, -1, -1):
                for keys in self._reader.key_parts(ref, level):
                    self._mark(keys, found)
        return array("I", sorted(found))

    def _mark(self, keys: bytes, found: set[int]) -> None:
        for key in split_keys(keys):
            found.update(self._frames_with(key))
            for number in self._reader.chunks_with(key):
                self._chunks[number] = 1

    def _frames_with(self, key: bytes) -> list[int]:
        # A delta whose bases are gone may be what a killed put left, and needs nothing any more.
        frames = [frame for frame in self._reader.frames_with(key) if not self._reader.is_lost(frame)]
        if not frames:
            self._reader.facts(key)  # raises the error that says so
        return frames

    def used_bytes(self, pack: PackFacts) -> int:
        """Return how many bytes of a pack are for chunks of the snapshots whose content was marked: of each
        frame the share that such chunks have of its content. Raises FileError."""
        directory, used = self._reader.directory(pack), 0
        marks = self._chunks[pack.first_chunk : pack.first_chunk + pack.chunks]
        for frame in range(directory.frames):
            first, stop = directory.first_chunks[frame], directory.first_chunks[frame + 1]
            own = marks[first:stop]
            if 1 not in own:
                continue
            size = directory.sizes[frame]
            if 0 in own:
                lengths = directory.lengths[first:stop]
                size = sum([length for length, mark in zip(lengths, own, strict=True) if mark])
            used += directory.stored_sizes[frame] * size // directory.sizes[frame]
        return used

    def add_bases(self, marks: bytearray) -> None:
        """Mark the frames that marked ones are made against. Raises FileError if one is missing."""
        todo = [number for number, mark in enumerate(marks) if mark]
        while todo:
            for key in split_keys(self._reader.frame(todo.pop()).bases):
                for number in self._frames_with(key):
                    if not marks[number]:
                        marks[number] = 1
                        todo.append(number)


def stored_bytes(reader: StoreReader, marks: bytes | bytearray) -> int:
    """Return the bytes of the marked frames in the packs. Raises FileError."""
    found = 0
    for pack in reader.packs:
        own = marks[pack.first_frame : pack.first_frame + pack.frames]
        if any(own):
            sizes = reader.directory(pack).stored_sizes
            found += sum([size for size, mark in zip(sizes, own, strict=True) if mark])
    return found


def united(one: bytes | bytearray, other: bytes | bytearray) -> bytearray:
    """Return the marks of either."""
    both = int.from_bytes(one, "little") | int.from_bytes(other, "little")
    return bytearray(both.to_bytes(max(len(one), len(other)), "little"))


def bytes_alone(reader: StoreReader, snapshots: Sequence[Snapshot]) -> list[int | None]:
    """Return for each snapshot the bytes of the frames that no other one needs.

    None for one that is damaged: what it needs is not known.
    """
    marking, packed = Marking(reader), list[bytes | None]()
    once = several = 0
    for snapshot in snapshots:
        try:
            marks = marking.content(snapshot)
            marking.add_bases(marks)
        except FileError:
            packed.append(None)
            continue
        number = int.from_bytes(marks, "little")
        several |= once & number
        once |= number
        packed.append(zlib.compress(marks, 1))
    found: list[int | None] = []
    for one in packed:
        if one is None:
            found.append(None)
            continue
        own = int.from_bytes(zlib.decompress(one), "little") & ~several
        found.append(stored_bytes(reader, own.to_bytes(reader.frames, "little")))
    return found
