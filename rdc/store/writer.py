"""StoreWriter: puts chunks into frames and frames into packs, and streams into chunks.

New chunks share frames of up to FRAME_BYTES in the order in which they come. Where an old version of the
stream is known, each run of new chunks is tried as a delta against the chunks of the old version that lay
between the same neighbours.

Deltas skip: a run of generation g is made against generation g & (g - 1) or an older one, as in Subversion.
So a chain of a thousand versions is ten frames deep.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from itertools import accumulate

from rdc.errors import FileError
from rdc.kernel import cut_many
from rdc.kernel.blake3_many import name_parts
from rdc.lean.records import Record
from rdc.store.directory import BASES_MOST, KEY_BYTES, FrameRow, split_keys
from rdc.store.frames import FRAME_BYTES, LEVEL, PREFIX_BYTES, FrameKind, StoredFrame, encode
from rdc.store.pack_file import PackWriter
from rdc.store.reader import LIST_BYTES, StoreReader
from rdc.store.tree_rows import LIST_PARAMS, STREAM_LEVELS, StreamRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rdc.chunking import ChunkParams
    from rdc.store.reader import FrameFacts

DIGEST = 32
INLINE_KEYS = 64
"""Most keys that a row or a snapshot names itself. A longer list is a stream of its own."""

DEPTH_MADE = 12
"""No delta is written against a base of this depth. A reader takes DEPTH_MOST, which is more."""

WIDER_SHARE = 12
"""A delta of more than one part in this many of its content is tried again with more bases. A day of a
database takes one part in 200 if they are the right ones."""

SEARCHED_BASES = 4096
"""Most bases that are looked at for one delta."""


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
        """`skips`: whether deltas skip generations. In a published store they do not: a reader has the one
        before, and older ones lie in frames that it would have to fetch. `heal`: store chunks
        again that the store has and cannot read, each without bases."""
        self.reader = reader
        self._store = reader.store
        self._level = level
        self._deltas = deltas and not heal
        self._heal = heal
        self._skips = skips
        self._sound: set[bytes] = set()
        """Keys of chunks that were read while healing."""
        self._pending: set[bytes] = set()
        """Keys of chunks that are in no finished pack."""
        self._pack: PackWriter | None = None
        self._keys: list[bytes] = []
        """The keys of the chunks of the open frame."""
        self._chunks: list[bytes] = []
        self._size = 0
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

    def add(self, keys: Sequence[bytes], chunks: Sequence[bytes], bases: Sequence[bytes] = ()) -> None:
        """Store new chunks, at most FRAME_BYTES of them. `bases`: keys of chunks that resemble them.

        Raises RdcError.
        """
        self._pending.update(keys)
        self.new_bytes += sum(map(len, chunks))
        if bases and self._deltas and self._add_delta(list(keys), list(chunks), bases):
            return
        for key, chunk in zip(keys, chunks, strict=True):
            if self._size + len(chunk) > FRAME_BYTES:
                self._end_frame()
            self._keys.append(key)
            self._chunks.append(chunk)
            self._size += len(chunk)

    def _add_delta(self, keys: list[bytes], chunks: list[bytes], bases: Sequence[bytes]) -> bool:
        """Store chunks as a delta if that pays. Return whether they were stored."""
        content = b"".join(chunks)
        known = [key for key in bases if key in self.reader]
        generation = 1 + max([self.reader.facts(key).generation for key in known], default=0)
        room = min(PREFIX_BYTES, 3 * len(content) + (32 << 10))
        chosen = self._chosen_bases(known, generation, room)
        frame = self._delta(content, chosen)
        if frame is None or len(frame.data) * WIDER_SHARE > len(content):
            # What was replaced by its own bases may resemble others than the middle ones.
            wider = self._chosen_bases(known, generation, PREFIX_BYTES, wide=True)
            other = self._delta(content, wider) if wider != chosen else None
            if other is not None and (frame is None or len(other.data) < len(frame.data)):
                chosen, frame = wider, other
        if frame is None:
            return False
        facts = [self.reader.facts(base) for base in chosen]
        depth = 1 + max([one.depth for one in facts])
        row = FrameRow(
            frame.kind,
            len(frame.data),
            len(content),
            len(keys),
            min(0xFFFF, generation),
            depth,
            b"".join(chosen),
        )
        self._open_pack().add(frame, row, keys, list(map(len, chunks)))
        self.deltas_made += 1
        self._end_full_pack()
        return True

    def _delta(self, content: bytes, bases: Sequence[bytes]) -> StoredFrame | None:
        """Return a delta against these chunks, if it pays. Raises RdcError."""
        if not bases or not self.reader.needs_little(bases):
            return None
        frame = encode(content, b"".join(map(self.reader.chunk, bases)), level=self._level)
        return frame if frame.kind is FrameKind.DELTA else None

    def _chosen_bases(
        self, known: Sequence[bytes], generation: int, room: int, *, wide: bool = False
    ) -> list[bytes]:
        """Return the bases of a delta of this generation: at most `room` bytes, from the middle of `known`.
        `wide`: a base is replaced by all of its own.

        A base whose generation or depth is too high is replaced by those of its own that it resembles most.
        The depth is less than the number of ones in `generation`, so that of the delta is at most its
        logarithm, whatever it mixes.
        """
        reader = self.reader
        most = generation & (generation - 1) if self._skips else generation - 1
        depth = min(DEPTH_MADE, generation.bit_count()) if self._skips else DEPTH_MADE
        todo, seen, found = list(reversed(known)), set[bytes](), list[bytes]()
        bases = dict[int, _Bases]()
        while todo and len(seen) < SEARCHED_BASES:
            key = todo.pop()
            if key in seen:
                continue
            seen.add(key)
            facts = reader.facts(key)
            if facts.generation <= most and facts.depth < depth:
                found.append(key)
                continue
            own = bases.get(facts.number)
            if own is None:
                own = bases[facts.number] = _Bases(facts, reader)
            todo += reversed(own.keys if wide else own.like(*reader.extent(key)))
        return self._middle(found, room)

    def _middle(self, keys: list[bytes], room: int) -> list[bytes]:
        chosen: list[int] = []
        for number in sorted(range(len(keys)), key=lambda number: abs(2 * number + 1 - len(keys))):
            room -= self.reader.length(keys[number])
            if room < 0 or len(chosen) >= BASES_MOST:
                break
            chosen.append(number)
        return [keys[number] for number in sorted(chosen)]

    def _open_pack(self) -> PackWriter:
        if self._pack is None:
            self._pack = PackWriter(self._store.fileno(), self._store.label, self._store.head.key)
        return self._pack

    def _end_frame(self) -> None:
        if not self._chunks:
            return
        content = b"".join(self._chunks)
        frame = encode(content, level=self._level)
        row = FrameRow(frame.kind, len(frame.data), len(content), len(self._keys), 0, 0, b"")
        self._open_pack().add(frame, row, self._keys, list(map(len, self._chunks)))
        self._keys, self._chunks, self._size = [], [], 0
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
        self._end_frame()
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
        return self._ref(sum(lengths), keys)

    def put_content(
        self, keys: Sequence[bytes], lengths: Sequence[int], content: memoryview, old: Sequence[bytes] = ()
    ) -> StreamRef:
        """Store a stream that is in memory as it was cut, and return where it is. See put_stream."""
        if len(keys) == 1 and not old:  # most small files
            if keys[0] not in self:
                self.add(keys, (bytes(content),))
            return StreamRef(len(content), 0, keys[0])
        self.put_chunks(keys, lengths, lambda at, length: bytes(content[at : at + length]), old, again=False)
        return self._ref(len(content), keys)

    def _ref(self, size: int, keys: Sequence[bytes]) -> StreamRef:
        """Return where a stored stream is, and store the lists of its keys."""
        level, joined = 0, b"".join(keys)
        while len(joined) > INLINE_KEYS * KEY_BYTES and level + 1 < STREAM_LEVELS:
            joined = self._put_list(joined)
            level += 1
        return StreamRef(size, level, joined)

    def _put_list(self, keys: bytes) -> bytes:
        cut = cut_streams(keys, array("Q", [len(keys)]), LIST_PARAMS, self._store.head.key)
        self.put_chunks(cut.keys, cut.lengths, lambda at, length: keys[at : at + length], (), again=False)
        return b"".join(cut.keys)

    def put_chunks(
        self,
        keys: Sequence[bytes],
        lengths: Sequence[int],
        read: Callable[[int, int], bytes],
        old: Sequence[bytes],
        *,
        again: bool = False,
    ) -> None:
        """Store those chunks of a stream that are new. `again`: it is read another time here."""
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
            self._add_run(keys[first:stop], chunks, gaps.bases(first, stop), again=again)

    def _add_run(
        self, keys: Sequence[bytes], chunks: Sequence[bytes], bases: Sequence[bytes], *, again: bool
    ) -> None:
        # A file may change between the pass that cut it and this one, and its times may not show it.
        if again and [self.reader.key_of(chunk) for chunk in chunks] != list(keys):
            raise OtherContentError
        self.add(keys, chunks, bases)


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


class _Bases:
    """The bases of a delta, of which each part resembles another part of what the delta decodes to."""

    def __init__(self, facts: FrameFacts, reader: StoreReader) -> None:
        """Look up how long they are. Raises FileError."""
        self._size = facts.size
        self.keys = split_keys(facts.bases)
        self._ends = list(accumulate(map(reader.length, self.keys), initial=0))

    def like(self, start: int, length: int) -> list[bytes]:
        """Return the bases that the `length` bytes at `start` of the delta resemble, with half of its size
        around them on each side.

        A writer chooses bases around what it replaces, as many on each side. At an end of a file there are
        none on one side, which what is around makes up for.
        """
        ends = self._ends
        at = start + (ends[-1] - self._size) // 2
        around = max(self._size // 2, length)
        first = bisect_right(ends, at - around, 1) - 1
        stop = bisect_left(ends, at + length + around, 1)
        return self.keys[first:stop]


class Gaps:
    """The chunks of an old version that lie where new ones do: between the same neighbours."""

    def __init__(self, keys: Sequence[bytes], old: Sequence[bytes]) -> None:
        self._old = old
        places = {key: place for place, key in reversed(list(enumerate(old)))}
        self._before: list[tuple[int, int]] = []
        """For each chunk: how many chunks up to the last one that the old version has, and how many there."""
        self._after: list[tuple[int, int]] = []
        """For each chunk: the number of the next one that the old version has, and its number there."""
        if not old:
            return
        last = (0, 0)
        for number, key in enumerate(keys):
            self._before.append(last)
            if (place := places.get(key)) is not None:
                last = (number + 1, place + 1)
        following = (len(keys), len(old))
        for number in range(len(keys) - 1, -1, -1):
            if (place := places.get(keys[number])) is not None:
                following = (number, place)
            self._after.append(following)
        self._after.reverse()

    def bases(self, first: int, stop: int) -> Sequence[bytes]:
        """Return the keys of the old chunks to which the new ones [first, stop) correspond, and as many again
        around them, half of them on each side."""
        if not self._old:
            return ()
        begin, low = self._before[first]
        end, high = self._after[stop - 1]
        if high <= low:
            # Nothing was there, or chunks changed places: what is next to it resembles it most.
            low = max(0, min(low, len(self._old)) - 1)
            high = min(len(self._old), low + 2)
        # A new chunk that the old version has is one that cannot be read any more.
        new, old = max(end - begin, stop - first), high - low
        around = (stop - first) // 2 + 1
        start = low + max(0, (first - begin) * old // new - around)
        ending = low + min(old, -(-(stop - begin) * old // new) + around)
        return self._old[start:ending]
