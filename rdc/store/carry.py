"""`rdc store pack`: a snapshot in one file, whole or without what an older one has.

The file is an index, the snapshot, and packs: a published store in one piece. Frames are copied as they are,
unless the chunks alone take less: a frame may have many others, and a delta may have bases that are older
than the older snapshot. The tree is always whole. Contents that the older snapshot has are left out, so a
reader needs a copy of that snapshot.
"""

from __future__ import annotations

import os
import tempfile
import time
from itertools import chain

from rdc.errors import UsageError
from rdc.files.own.output_file import Output, OutputKind, claim_outputs, write_output
from rdc.lean.records import Record
from rdc.model.entries import strings
from rdc.store.bases import DEPTH_MADE, Gaps
from rdc.store.directory import PACK_BYTES, DirectoryBuilder, FrameRow, split_keys
from rdc.store.frames import FRAME_BYTES, PREFIX_BYTES, FrameKind, StoredFrame, encode
from rdc.store.index_file import CARRIED, StoreIndex, encode_index
from rdc.store.pack_file import ID_BYTES, MAGIC, pack_end, read_frame
from rdc.store.place import PackStore
from rdc.store.publish import own_keys, published_snapshot
from rdc.store.reader import StoreReader
from rdc.store.records import PackReport
from rdc.store.snapshot_tree import SnapshotTree
from rdc.store.snapshots import SNAPSHOT_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import IO

    from rdc.store.pack_file import PackEnd
    from rdc.store.snapshots import Snapshot
    from rdc.store.tree_rows import StreamRef

COPIED_BYTES = 1 << 20


def pack_snapshot(
    store: bytes, number: int, base: int | None, to: bytes, check_stop: Callable[[], None]
) -> PackReport:
    """Write snapshot `number` of a store to the file `to`, without contents that snapshot `base` has.

    Raises RdcError.
    """

    kind = OutputKind("snapshots of a store", lambda head: head.startswith(CARRIED))
    output = Output(to, kind)
    claim_outputs([output])
    with PackStore.open(store) as opened:
        opened.hold()
        if base == number:
            raise UsageError(f"@{base}..@{number}: expected two snapshots, found one")
        snapshot = opened.snapshot(number)
        reader = StoreReader(opened)
        try:
            had = _Had(reader, None if base is None else opened.snapshot(base))
            frames, alone = _frames(reader, snapshot, had, check_stop)
            with tempfile.TemporaryFile() as spool:
                parts = chain(_copied(reader, sorted(frames)), _made(reader, alone))
                packs, count = _write_packs(reader, parts, spool, check_stop)
                index = StoreIndex(
                    CARRIED,
                    opened.head.data,
                    int(time.time()),
                    int(time.time()),
                    (published_snapshot(opened, number),),
                    packs,
                )
                head = encode_index(index, own_keys())
                said = opened.read_small(b"snapshots/%d" % number, SNAPSHOT_BYTES)
                size = len(head) + len(said) + sum([end.size for end in packs.values()])
                spool.seek(0)
                write_output(output, _parts(head + said, spool))
        finally:
            reader.close()
    return PackReport(number=number, base=base, bytes=size, frames=count)


def _parts(first: bytes, spool: IO[bytes]) -> Iterator[bytes]:
    yield first
    while data := spool.read(COPIED_BYTES):
        yield data


class _Had:
    """The chunks of the contents of a snapshot that readers of the file have."""

    def __init__(self, reader: StoreReader, snapshot: Snapshot | None) -> None:
        self._reader = reader
        self._marks = bytearray(reader.chunks)
        self._tree = None if snapshot is None else SnapshotTree(reader, snapshot)
        if self._tree is not None:
            for ref in _contents(self._tree):
                for part in reader.key_parts(ref):
                    for key in split_keys(part):
                        for number in reader.chunks_with(key):
                            self._marks[number] = 1

    def files(self, path: bytes) -> dict[bytes, StreamRef]:
        """Return the files in the directory at `path`, by name."""
        rows = None if self._tree is None else self._tree.rows(path)
        if rows is None:
            return {}
        names = strings(rows.listing.names)
        return {names[row]: rows.files[at].content for row, at in rows.file_numbers().items()}

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and any(self._marks[number] for number in self._reader.chunks_with(key))


def _contents(tree: SnapshotTree) -> Iterator[StreamRef]:
    for path in tree:
        rows = tree.rows(path)
        if rows is not None:
            yield from [file.content for file in rows.files]


def _frames(
    reader: StoreReader, snapshot: Snapshot, had: _Had, check_stop: Callable[[], None]
) -> tuple[set[int], dict[bytes, Sequence[bytes]]]:
    """Return the numbers of the frames that a file needs, and the keys of chunks that it needs without their
    frames, each with those of what it may be a delta against. Raises FileError."""
    found = set[int]()
    alone: dict[bytes, Sequence[bytes]] = {}
    tree = SnapshotTree(reader, snapshot)

    def add(ref: StreamRef, last: int) -> None:
        for level in range(ref.level, last - 1, -1):
            for part in reader.key_parts(ref, level):
                reader.add_frames(split_keys(part), found, set(), 0)

    # First what must be whole: bases of these frames are needed, too, whatever the readers have.
    add(snapshot.tree, 0)
    for ref in _contents(tree):
        add(ref, 1)
    needed: dict[int, dict[bytes, Sequence[bytes]]] = {}
    for key, bases in _new_chunks(reader, tree, had):
        check_stop()
        needed.setdefault(reader.facts(key).number, {})[key] = bases
    for _, keys in sorted(needed.items()):
        check_stop()
        frames = set[int]()
        reader.add_frames(keys, frames, set(), 0, had)
        frames -= found
        if sum([reader.frame(one).stored for one in frames]) > sum(map(reader.length, keys)):
            alone |= keys
        else:
            found |= frames
    return found, alone


def _new_chunks(
    reader: StoreReader, tree: SnapshotTree, had: _Had
) -> Iterator[tuple[bytes, Sequence[bytes]]]:
    """Yield the keys of the contents that readers lack, each with those of the chunks that lie in its place
    in the older snapshot. Raises FileError."""
    for path in tree:
        rows = tree.rows(path)
        if rows is None:
            continue
        former: dict[bytes, StreamRef] | None = None
        names = strings(rows.listing.names)
        for row, at in rows.file_numbers().items():
            ref = rows.files[at].content
            if all(key in had for part in reader.key_parts(ref) for key in split_keys(part)):
                continue
            former = had.files(path) if former is None else former
            keys, same = split_keys(reader.expand(ref)), former.get(names[row])
            gaps = Gaps(keys, () if same is None else split_keys(reader.expand(same)))
            for number, key in enumerate(keys):
                if key not in had:
                    yield key, gaps.bases(number, number + 1)


class _Part(Record):
    """A frame as a pack has it."""

    row: FrameRow
    keys: list[bytes]
    lengths: list[int]
    data: bytes


def _copied(reader: StoreReader, frames: list[int]) -> Iterator[_Part]:
    """Yield frames of the store. Raises FileError."""
    for number in frames:
        frame = reader.frame(number)
        directory = reader.directory(frame.pack)
        own = number - frame.pack.first_frame
        first, stop = directory.first_chunks[own], directory.first_chunks[own + 1]
        file = reader.store.open_pack(frame.pack.name)
        try:
            data = read_frame(file, frame.offset, frame.stored, frame.pack.path)
        finally:
            file.close()
        row = FrameRow(
            frame.kind, frame.stored, frame.size, stop - first, frame.generation, frame.depth, frame.bases
        )
        yield _Part(row, directory.keys_of(own), list(directory.lengths[first:stop]), data)


def _made(reader: StoreReader, alone: dict[bytes, Sequence[bytes]]) -> Iterator[_Part]:
    """Yield new frames with these chunks, as deltas if that pays. Raises FileError."""
    together: dict[bytes, bytes] = {}
    for key, bases in alone.items():
        chunk = reader.chunk(key)
        if (delta := _delta(reader, key, chunk, bases)) is not None:
            yield delta
            continue
        if sum(map(len, together.values())) + len(chunk) > FRAME_BYTES:
            yield _part(encode(b"".join(together.values())), together)
            together = {}
        together[key] = chunk
    if together:
        yield _part(encode(b"".join(together.values())), together)


def _delta(reader: StoreReader, key: bytes, chunk: bytes, bases: Sequence[bytes]) -> _Part | None:
    """Return a chunk as a delta; None if that does not pay, or would be too deep."""
    facts = [reader.facts(base) for base in bases]
    depth = 1 + max([one.depth for one in facts], default=DEPTH_MADE)
    if depth > DEPTH_MADE or sum(map(reader.length, bases)) > PREFIX_BYTES:
        return None
    frame = encode(chunk, b"".join(map(reader.chunk, bases)))
    if frame.kind is not FrameKind.DELTA:
        return None
    generation = min(0xFFFF, 1 + max([one.generation for one in facts]))
    return _part(frame, {key: chunk}, generation, depth, b"".join(bases))


def _part(
    frame: StoredFrame, chunks: dict[bytes, bytes], generation: int = 0, depth: int = 0, bases: bytes = b""
) -> _Part:
    lengths = list(map(len, chunks.values()))
    row = FrameRow(frame.kind, len(frame.data), sum(lengths), len(chunks), generation, depth, bases)
    return _Part(row, list(chunks), lengths, frame.data)


def _write_packs(
    reader: StoreReader, parts: Iterable[_Part], spool: IO[bytes], check_stop: Callable[[], None]
) -> tuple[dict[bytes, PackEnd], int]:
    """Write frames into packs, one after the other. Return the ends of the packs, and how many frames they
    have. Raises RdcError."""

    packs: dict[bytes, PackEnd] = {}
    rows, stored, count = DirectoryBuilder(), 0, 0

    def end() -> None:
        nonlocal rows, stored
        name = os.urandom(ID_BYTES)
        packs[name], tail = pack_end(rows.directory(), len(MAGIC) + stored, name, reader.store.head.key)
        spool.write(tail)
        rows, stored = DirectoryBuilder(), 0

    for part in parts:
        check_stop()
        if not stored:
            spool.write(MAGIC)
        spool.write(part.data)
        stored += len(part.data)
        count += 1
        rows.add(part.row, part.keys, part.lengths)
        if rows.is_full or stored >= PACK_BYTES:
            end()
    if stored:
        end()
    return packs, count
