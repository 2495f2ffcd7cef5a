"""`rdc store pack`: a snapshot in one file, whole or without what an older one has.

The file is an index, the snapshot, and packs: a published store in one piece. Frames are copied as they are.
The tree is always whole. Contents that the older snapshot has are left out, so a reader needs a copy of that
snapshot.
"""

from __future__ import annotations

import os
import tempfile
import time

from rdc.errors import UsageError
from rdc.files.own.output_file import Output, OutputKind, claim_outputs, write_output
from rdc.store.directory import PACK_BYTES, DirectoryBuilder, FrameRow, split_keys
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
    from collections.abc import Callable, Iterator
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
            frames = _frames(reader, snapshot, had, check_stop)
            with tempfile.TemporaryFile() as spool:
                packs = _write_packs(reader, sorted(frames), spool, check_stop)
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
    return PackReport(number=number, base=base, bytes=size, frames=len(frames))


def _parts(first: bytes, spool: IO[bytes]) -> Iterator[bytes]:
    yield first
    while data := spool.read(COPIED_BYTES):
        yield data


class _Had:
    """The chunks of the contents of a snapshot that readers of the file have."""

    def __init__(self, reader: StoreReader, snapshot: Snapshot | None) -> None:
        self._reader = reader
        self._marks = bytearray(reader.chunks)
        if snapshot is not None:
            for ref in _contents(SnapshotTree(reader, snapshot)):
                for part in reader.key_parts(ref):
                    for key in split_keys(part):
                        for number in reader.chunks_with(key):
                            self._marks[number] = 1

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and any(self._marks[number] for number in self._reader.chunks_with(key))


def _contents(tree: SnapshotTree) -> Iterator[StreamRef]:
    for path in tree:
        rows = tree.rows(path)
        if rows is not None:
            yield from [file.content for file in rows.files]


def _frames(reader: StoreReader, snapshot: Snapshot, had: _Had, check_stop: Callable[[], None]) -> set[int]:
    """Return the numbers of the frames that a file needs. Raises FileError."""
    found = set[int]()
    tree = SnapshotTree(reader, snapshot)

    def add(ref: StreamRef, last: int) -> None:
        for level in range(ref.level, last - 1, -1):
            for part in reader.key_parts(ref, level):
                reader.add_frames(split_keys(part), found, set(), 0)

    # First what must be whole: bases of these frames are needed, too, whatever the readers have.
    add(snapshot.tree, 0)
    for ref in _contents(tree):
        add(ref, 1)
    for ref in _contents(tree):
        check_stop()
        for part in reader.key_parts(ref):
            reader.add_frames(split_keys(part), found, set(), 0, had)
    return found


def _write_packs(
    reader: StoreReader, frames: list[int], spool: IO[bytes], check_stop: Callable[[], None]
) -> dict[bytes, PackEnd]:
    """Copy frames into packs, one after the other. Return their ends. Raises RdcError."""

    packs: dict[bytes, PackEnd] = {}
    rows, stored = DirectoryBuilder(), 0

    def end() -> None:
        nonlocal rows, stored
        name = os.urandom(ID_BYTES)
        packs[name], tail = pack_end(rows.directory(), len(MAGIC) + stored, name, reader.store.head.key)
        spool.write(tail)
        rows, stored = DirectoryBuilder(), 0

    for number in frames:
        check_stop()
        frame = reader.frame(number)
        directory = reader.directory(frame.pack)
        own = number - frame.pack.first_frame
        first, stop = directory.first_chunks[own], directory.first_chunks[own + 1]
        file = reader.store.open_pack(frame.pack.name)
        try:
            data = read_frame(file, frame.offset, frame.stored, frame.pack.path)
        finally:
            file.close()
        if not stored:
            spool.write(MAGIC)
        spool.write(data)
        stored += len(data)
        row = FrameRow(
            frame.kind, frame.stored, frame.size, stop - first, frame.generation, frame.depth, frame.bases
        )
        rows.add(row, directory.keys_of(own), list(directory.lengths[first:stop]))
        if rows.is_full or stored >= PACK_BYTES:
            end()
    if stored:
        end()
    return packs
