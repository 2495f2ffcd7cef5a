"""StoreWriter: puts chunks into frames and frames into packs, and streams into chunks.

New chunks share frames of up to FRAME_BYTES in the order in which they come. Trees and lists of keys have
frames of their own: who has the contents needs only those, and `rdc store pack` copies whole frames. Where an
old version of the stream is known, each run of new chunks is tried as a delta against the chunks of the old
version that lay between the same neighbours.
"""

from __future__ import annotations

from array import array

from rdc.errors import FileError
from rdc.kernel import cut_many
from rdc.kernel.blake3_many import name_parts
from rdc.lean.records import Record
from rdc.store.bases import BaseChooser, Gaps
from rdc.store.directory import KEY_BYTES, FrameRow, split_keys
from rdc.store.frames import FRAME_BYTES, LEVEL, FrameKind, encode
from rdc.store.pack_file import PackWriter
from rdc.store.reader import LIST_BYTES, StoreReader
from rdc.store.tree_rows import LIST_PARAMS, STREAM_LEVELS, StreamRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.chunking import ChunkParams

DIGEST = 32
INLINE_KEYS = 64
"""Most keys that a row or a snapshot names itself. A longer list is a stream of its own."""


class CutStreams(Record):
    """The chunks of several streams, one after the other."""

    counts: array[int]
    """Chunks of each stream."""
    lengths: array[int]
    """Bytes of each chunk."""
    keys: tuple[bytes, ...]


def cut_streams(data: memoryview | bytes, sizes: array[int], params: ChunkParams, key: bytes) -> CutStreams:
    """Cut streams that lie one after another in `data`, and name their chunks."""
    counts, lengths, _ = cut_many(data, sizes, params.min_size, params.max_size, True)
    measured = array("Q", lengths)
    digests = name_parts(data, measured, key)
    keys = tuple(digests[at : at + KEY_BYTES] for at in range(0, len(digests), DIGEST))
    return CutStreams(array("I", counts), measured, keys)


class _OpenFrame(Record, frozen=False):
    """Chunks that will be one frame."""

    keys: list[bytes]
    chunks: list[bytes]
    size: int = 0


class OtherContentError(Exception):
    """A stream was read again and is not what was cut. Nothing of it was stored under a wrong key."""


class StoreWriter:
    """Adds chunks to a store. `finish` makes them durable; `close` ends it in any case."""

    def __init__(
        self,
        reader: StoreReader,
        *,
        level: int = LEVEL,
        deltas: bool = True,
        heal: bool = False,
        skips: bool = True,
    ) -> None:
        """`skips`: whether deltas skip generations. In a published store most do not: a reader has the one
        before, and older ones lie in frames that it would have to fetch. `heal`: store chunks
        again that the store has and cannot read, each without bases."""
        self.reader = reader
        self._store = reader.store
        self._level = level
        self._deltas = deltas and not heal
        self._heal = heal
        self._chooser = BaseChooser(reader, skips=skips)
        self._list_deltas = skips
        """True if lists of keys are stored as deltas. Whoever follows a published store has old contents, but
        would have to fetch the old lists."""
        self._sound: set[bytes] = set()
        """Keys of chunks that were read while healing."""
        self._pending: set[bytes] = set()
        """Keys of chunks that are in no finished pack."""
        self._pack: PackWriter | None = None
        self._contents, self._lists = _OpenFrame([], []), _OpenFrame([], [])
        self.stored = 0
        """Bytes of all packs that were finished."""
        self.deltas_made = 0
        self.new_bytes = 0
        """Bytes of all new chunks."""

    def __contains__(self, key: bytes) -> bool:
        if key in self._pending:
            return True
        return self._can_be_read(key) if self._heal else key in self.reader

    def _can_be_read(self, key: bytes) -> bool:
        if key not in self._sound:
            if key not in self.reader:
                return False
            try:
                self.reader.chunk(key)
            except FileError:
                return False
            self._sound.add(key)
        return True

    def add(
        self,
        keys: Sequence[bytes],
        chunks: Sequence[bytes],
        bases: Sequence[bytes] = (),
        *,
        lists: bool = False,
    ) -> None:
        """Store new chunks, at most FRAME_BYTES of them. `bases`: keys of chunks that resemble them. `lists`:
        they are of a tree or of a list of keys.

        Raises RdcError.
        """
        self._pending.update(keys)
        self.new_bytes += sum(map(len, chunks))
        if bases and self._deltas and self._add_delta(list(keys), list(chunks), bases):
            return
        frame = self._lists if lists else self._contents
        for key, chunk in zip(keys, chunks, strict=True):
            if frame.size + len(chunk) > FRAME_BYTES:
                self._end_frame(frame)
            frame.keys.append(key)
            frame.chunks.append(chunk)
            frame.size += len(chunk)

    def _add_delta(self, keys: list[bytes], chunks: list[bytes], bases: Sequence[bytes]) -> bool:
        """Store chunks as a delta if that pays. Return whether they were stored."""
        content = b"".join(chunks)
        found = self._chooser.choose(content, bases)
        if found is None:
            return False
        prefix = b"".join(map(self.reader.chunk, found.keys))
        frame = encode(content, prefix, level=self._level)
        if frame.kind is not FrameKind.DELTA:
            return False
        row = FrameRow(
            frame.kind,
            len(frame.data),
            len(content),
            len(keys),
            min(0xFFFF, found.generation),
            found.depth,
            b"".join(found.keys),
        )
        self._open_pack().add(frame, row, keys, list(map(len, chunks)))
        self.deltas_made += 1
        self._end_full_pack()
        return True

    def _open_pack(self) -> PackWriter:
        if self._pack is None:
            self._pack = PackWriter(self._store.fileno(), self._store.label, self._store.head.key)
        return self._pack

    def _end_frame(self, opened: _OpenFrame) -> None:
        if not opened.chunks:
            return
        content = b"".join(opened.chunks)
        frame = encode(content, level=self._level)
        row = FrameRow(frame.kind, len(frame.data), len(content), len(opened.keys), 0, 0, b"")
        self._open_pack().add(frame, row, opened.keys, list(map(len, opened.chunks)))
        opened.keys, opened.chunks, opened.size = [], [], 0
        self._end_full_pack()

    def _end_full_pack(self) -> None:
        if self._pack is not None and self._pack.is_full:
            self._end_pack()

    def _end_pack(self) -> None:
        if self._pack is None:
            return
        pack = self._pack.finish()
        self._pack = None
        self.stored += pack.end.size
        self.reader.add(pack)
        self._pending.difference_update(split_keys(pack.directory.keys))

    def finish(self) -> None:
        """Make all chunks durable. Raises RdcError."""
        self._end_frame(self._contents)
        self._end_frame(self._lists)
        self._end_pack()

    def close(self) -> None:
        """Discard what was not made durable. May be called again."""
        if self._pack is not None:
            self._pack.discard()
            self._pack = None

    # Streams.

    def put_stream(
        self,
        keys: Sequence[bytes],
        lengths: Sequence[int],
        read: Callable[[int, int], bytes],
        old: Sequence[bytes] = (),
    ) -> StreamRef:
        """Store a stream that was cut into chunks, and return where it is.

        `read`: returns the bytes of an offset and a length. `old`: keys of the chunks of an older version or
        of a similar stream. Raises OtherContentError if what is read is not what was cut.
        """
        if len(keys) * KEY_BYTES > LIST_BYTES:
            raise FileError(
                self._store.label,
                f"a file of {len(keys):,} chunks: expected at most {LIST_BYTES // KEY_BYTES:,}, which are"
                " some 2 TiB; leave it out",
            )
        self.put_chunks(keys, lengths, read, old, again=True)
        return self._ref(sum(lengths), keys, old)

    def put_content(
        self,
        keys: Sequence[bytes],
        lengths: Sequence[int],
        content: memoryview,
        old: Sequence[bytes] = (),
        *,
        lists: bool = False,
    ) -> StreamRef:
        """Store a stream that is in memory as it was cut, and return where it is. See put_stream. `lists`: it
        is a tree."""
        if len(keys) == 1 and not old:  # most small files
            if keys[0] not in self:
                self.add(keys, (bytes(content),), lists=lists)
            return StreamRef(len(content), 0, keys[0])
        self.put_chunks(keys, lengths, lambda at, length: bytes(content[at : at + length]), old, lists=lists)
        return self._ref(len(content), keys, old)

    def _ref(self, size: int, keys: Sequence[bytes], old: Sequence[bytes]) -> StreamRef:
        """Return where a stored stream is, and store the lists of its keys. `old`: as in put_stream."""
        level, joined, before = 0, b"".join(keys), b"".join(old)
        while len(joined) > INLINE_KEYS * KEY_BYTES and level + 1 < STREAM_LEVELS:
            former = self.list_keys(before)
            joined, before = self._put_list(joined, former), b"".join(former)
            level += 1
        return StreamRef(size, level, joined)

    def _put_list(self, keys: bytes, former: Sequence[bytes]) -> bytes:
        cut = cut_streams(keys, array("Q", [len(keys)]), LIST_PARAMS, self._store.head.key)
        self.put_chunks(cut.keys, cut.lengths, lambda at, length: keys[at : at + length], former, lists=True)
        return b"".join(cut.keys)

    def list_keys(self, keys: bytes) -> tuple[bytes, ...]:
        """Return the keys of the chunks of a list of keys, for a delta of a newer one; none if it has no
        chunks. The store lacks them if this was no whole list."""
        if not self._list_deltas or len(keys) <= INLINE_KEYS * KEY_BYTES:
            return ()
        return cut_streams(keys, array("Q", [len(keys)]), LIST_PARAMS, self._store.head.key).keys

    def put_chunks(
        self,
        keys: Sequence[bytes],
        lengths: Sequence[int],
        read: Callable[[int, int], bytes],
        old: Sequence[bytes],
        *,
        again: bool = False,
        lists: bool = False,
    ) -> None:
        """Store those chunks of a stream that are new. `again`: it is read another time here. `lists`: it is
        a tree or a list of keys."""
        new, met = [], set[bytes]()
        for key in keys:
            new.append(key not in self and key not in met)
            met.add(key)
        if not any(new):
            return
        offsets = array("Q", [0])
        for length in lengths:
            offsets.append(offsets[-1] + length)
        gaps = Gaps(keys, () if self._heal else old)
        for first, stop in _runs(new, lengths):
            content = memoryview(read(offsets[first], offsets[stop] - offsets[first]))
            start = offsets[first]
            chunks = [
                bytes(content[offsets[at] - start : offsets[at + 1] - start]) for at in range(first, stop)
            ]
            own = keys[first:stop]
            # A file may change between the pass that cut it and this one, and its times may not show it.
            if again and [self.reader.key_of(chunk) for chunk in chunks] != list(own):
                raise OtherContentError
            self.add(own, chunks, gaps.bases(first, stop), lists=lists)


def _runs(new: Sequence[bool], lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the ranges of neighbouring new chunks, none of more than FRAME_BYTES."""
    first = 0
    while first < len(new):
        if not new[first]:
            first += 1
            continue
        stop, size = first, 0
        while stop < len(new) and new[stop] and size + lengths[stop] <= FRAME_BYTES:
            size += lengths[stop]
            stop += 1
        yield first, stop
        first = stop
