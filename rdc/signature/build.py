"""Builds signature trees: chunks are grouped into nodes, level by level, as they arrive."""

from __future__ import annotations

from array import array
from itertools import accumulate, pairwise
from operator import eq, mul

from blake3 import blake3

from rdc.chunking.chunker import name_chunks
from rdc.errors import UsageError
from rdc.kernel import Cutter, Winnower
from rdc.lean.typed import Protocol
from rdc.limits.chunks import NODE_RECORDS_MAX, NODE_RECORDS_MIN, TREE_HEIGHT
from rdc.signature.digests import DIGEST_BYTES, node_digest, root_digest
from rdc.signature.tree import Level, SignatureTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from typing_extensions import Buffer

    from rdc.chunking.params import ChunkParams

FOLD_CHUNKS = 256
"""Chunks grouped at a time. A call per chunk would cost more than cutting and hashing it."""

MEMORY_RUNS = 1024
"""Records of a level, 49 bytes each, that are kept in plain memory. Only larger levels need columns."""

_ONE = (1).to_bytes(8, "little")

__all__ = ["FOLD_CHUNKS", "Column", "MemoryColumn", "TreeBuilder", "one_chunk_tree", "sign"]


class Column(Protocol):
    """Append-only bytes. An implementation may move large columns out of memory."""

    def append(self, data: bytes, /) -> None: ...

    def view(self) -> memoryview: ...


class MemoryColumn:
    """A Column that stays in memory."""

    def __init__(self) -> None:
        self._data = bytearray()

    def append(self, data: bytes) -> None:
        self._data += data

    def view(self) -> memoryview:
        return memoryview(self._data)


_Items: TypeAlias = "tuple[list[bytes], list[int], list[int]]"
"""Consecutive items of one level, as columns: digests, lengths, and sizes. A size is, on levels above 0, the
number of records in the node that an item names; 0 on level 0."""


class _LevelBuilder:
    """Builds one level: joins equal neighbouring items into runs, groups the runs, and computes the groups'
    digests.

    Invariant: the last run is kept in `_last`, since the next item may continue it. `_digests`, `_lengths`
    and `_counts` hold the runs after the last group's end; all of them were passed to the winnower.
    """

    def __init__(self, number: int, column: Callable[[], Column]) -> None:
        self.number = number
        self.runs = 0
        self.groups = 0
        self._column = column
        self._records = bytearray(), bytearray(), bytearray(), bytearray()
        """The level's columns, while it has few records."""
        self._columns: tuple[Column, ...] | None = None
        """The same once it has more than MEMORY_RUNS."""
        self._winnower = Winnower(NODE_RECORDS_MIN, NODE_RECORDS_MAX)
        self._group_start = 0
        self._digests = bytearray()
        self._lengths: array[int] = array("Q")
        self._counts: array[int] = array("Q")
        self._last: _Items = [], [], []
        self._last_count = 0

    def add(self, items: _Items) -> _Items:
        """Takes items in order. Returns the groups they complete, which are items of the level above."""
        digests, lengths, sizes = items
        if not digests:
            return items
        last_digests, last_lengths, last_sizes = self._last
        if any(map(eq, digests, digests[1:])) or last_digests == digests[:1]:
            final: _Items = [], [], []
            counts = array("Q")
            last = self._last
            for digest, length, size in zip(digests, lengths, sizes, strict=True):
                # Equal digests imply equal lengths and sizes, unless BLAKE3 is broken.
                if last[0] == [digest]:
                    self._last_count += 1
                    continue
                final[0].extend(last[0])
                final[1].extend(last[1])
                final[2].extend(last[2])
                counts.extend([self._last_count] * len(last[0]))
                last, self._last_count = ([digest], [length], [size]), 1
        else:
            # The common case avoids a loop in Python: there are no runs, so all items but the last are final.
            final = last_digests + digests[:-1], last_lengths + lengths[:-1], last_sizes + sizes[:-1]
            counts = array("Q", [1]) * len(final[0])
            if last_digests:
                counts[0] = self._last_count
            last, self._last_count = (digests[-1:], lengths[-1:], sizes[-1:]), 1
        self._last = last
        return self._append_final(final, counts)

    def repeat(self, count: int) -> None:
        """Counts the last item `count` more times."""
        self._last_count += count

    def finish(self) -> _Items:
        """Adds the last run. Unless the level is the top, the remaining runs become the last group."""
        last, self._last = self._last, ([], [], [])
        counts, self._last_count = array("Q", [self._last_count] * len(last[0])), 0
        return self._append_final(last, counts, ends=True)

    def _append_final(self, items: _Items, counts: array[int], *, ends: bool = False) -> _Items:
        """Appends runs. `ends`: no more will follow."""
        cuts: list[int] = []
        if items[0]:
            digests, lengths = b"".join(items[0]), array("Q", items[1])
            self.runs += len(lengths)
            if self._columns is None:
                kept, kept_lengths, kept_counts, kept_sizes = self._records
                kept += digests
                kept_lengths += lengths.tobytes()
                kept_counts += counts.tobytes()
                kept_sizes += bytes(items[2])
                if self.runs > MEMORY_RUNS:
                    self._columns = (self._column(), self._column(), self._column(), self._column())
                    self._store(*self._records)
                    self._records = bytearray(), bytearray(), bytearray(), bytearray()
            else:
                self._store(digests, lengths.tobytes(), counts.tobytes(), bytes(items[2]))
            self._digests += digests
            self._lengths += lengths
            self._counts += counts
            # A record's rank is the first 8 bytes of its digest, big-endian.
            ranks = array("Q", digests)[:: DIGEST_BYTES // 8]
            ranks.byteswap()
            cuts = self._winnower.feed(ranks)
        if ends and (cuts or self.groups):
            cuts += self._winnower.finish()
        return self._group(cuts) if cuts else ([], [], [])

    def _store(self, *records: bytes | bytearray) -> None:
        """Appends records, given as columns, to those of a long level."""
        for column, data in zip(self._columns or (), records, strict=True):
            column.append(bytes(data))

    def _group(self, ends: list[int]) -> _Items:
        groups: _Items = [], [], []
        begin = 0
        for end in ends:
            stop = end - self._group_start
            lengths, counts = self._lengths[begin:stop], self._counts[begin:stop]
            digests = self._digests[begin * DIGEST_BYTES : stop * DIGEST_BYTES]
            groups[0].append(node_digest(self.number, digests, lengths, counts))
            groups[1].append(sum(map(mul, lengths, counts)))
            groups[2].append(stop - begin)
            begin = stop
        del self._digests[: begin * DIGEST_BYTES], self._lengths[:begin], self._counts[:begin]
        self._group_start += begin
        self.groups += len(ends)
        return groups

    def level(self) -> Level:
        """The whole level, once it is finished."""
        if self._columns is None:
            columns = [memoryview(each) for each in self._records]
        else:
            columns = [column.view() for column in self._columns]
        digests, lengths, counts, sizes = columns
        starts = array("Q")
        if self.number:
            # Equal nodes have equally many records, so a run of them covers count * size records of the level
            # below.
            starts.extend(accumulate(map(mul, counts.cast("Q"), sizes), initial=0))
            starts.pop()
        return Level(digests, lengths.cast("Q"), counts.cast("Q"), memoryview(starts), sizes)


class TreeBuilder:
    """Builds a SignatureTree from chunks in order. Between calls it holds up to FOLD_CHUNKS chunks and
    MEMORY_RUNS records per level.

    `column` makes the columns of longer levels: about 49 bytes per chunk.
    """

    def __init__(self, params: ChunkParams, column: Callable[[], Column] = MemoryColumn) -> None:
        self._params = params
        self._column = column
        self._levels: list[_LevelBuilder] = []
        """Empty until FOLD_CHUNKS chunks have arrived. Most files have fewer."""
        self._digests: list[bytes] = []
        self._lengths: list[int] = []
        self.size = 0

    def add(self, digests: list[bytes], lengths: list[int]) -> None:
        """Takes the next chunks: 32-byte digests and lengths in bytes, one each."""
        self.size += sum(lengths)
        self._digests += digests
        self._lengths += lengths
        if len(self._digests) >= FOLD_CHUNKS:
            self._fold()

    def repeat(self, digest: bytes, length: int, count: int) -> None:
        """Takes a run of `count` >= 1 equal chunks in constant time."""
        self.add([digest], [length])
        if count > 1:
            self._fold()
            self._levels[0].repeat(count - 1)
            self.size += length * (count - 1)

    def _fold(self) -> None:
        digests, lengths = self._digests, self._lengths
        self._digests, self._lengths = [], []
        if not self._levels:
            self._levels.append(_LevelBuilder(0, self._column))
        self._cascade(0, (digests, lengths, [0] * len(digests)))

    def _one_level(self, traits: bytes) -> SignatureTree:
        """The tree of at most NODE_RECORDS_MAX chunks: winnowing does not divide so few."""
        digests: list[bytes] = []
        lengths, counts = array("Q"), array("Q")
        for digest, length in zip(self._digests, self._lengths, strict=True):
            if digests and digests[-1] == digest:
                counts[-1] += 1
                continue
            digests.append(digest)
            lengths.append(length)
            counts.append(1)
        names = memoryview(b"".join(digests))
        lasting, repeated = memoryview(lengths), memoryview(counts)
        root = root_digest(self._params.id, self.size, 0, names, lasting, repeated)
        level = Level(names, lasting, repeated, _NO_STARTS, memoryview(bytes(len(digests))))
        return SignatureTree(root, self.size, self._params, (level,), traits)

    def finish(self, traits: bytes = b"") -> SignatureTree:
        """The tree of all chunks added. The builder must not be used afterwards."""
        if not self._levels and len(self._digests) <= NODE_RECORDS_MAX:
            return self._one_level(traits)
        self._fold()
        level = 0
        while level < len(self._levels):
            self._cascade(level + 1, self._levels[level].finish())
            level += 1
        levels = tuple(map(_LevelBuilder.level, self._levels))
        top = levels[-1]
        root = root_digest(self._params.id, self.size, len(levels) - 1, top.digests, top.lengths, top.counts)
        return SignatureTree(root, self.size, self._params, levels, traits)

    def _cascade(self, level: int, items: _Items) -> None:
        while items[0]:
            if level == len(self._levels):
                if level > TREE_HEIGHT:
                    raise UsageError(f"a stream needs more than {TREE_HEIGHT} signature levels")
                self._levels.append(_LevelBuilder(level, self._column))
            items = self._levels[level].add(items)
            level += 1


def sign(data: Buffer, params: ChunkParams) -> SignatureTree:
    """The signature tree of `data`."""
    view = memoryview(data).cast("B")
    if 0 < len(view) <= params.max_size:
        return _sign_chunk(view, params)
    cutter, builder = Cutter(params.min_size, params.max_size), TreeBuilder(params)
    ends = cutter.feed(view) + cutter.finish()
    columns = name_chunks([view[start:end] for start, end in pairwise([0, *ends])])
    builder.add(columns.digests, columns.lengths)
    return builder.finish(cutter.traits())


def _sign_chunk(chunk: memoryview, params: ChunkParams) -> SignatureTree:
    """The tree of a stream of at most max_size bytes, which is one chunk."""
    cutter = Cutter(params.min_size, params.max_size)
    cutter.feed(chunk)
    cutter.finish()
    return one_chunk_tree(blake3(chunk).digest(), len(chunk), params, cutter.traits())


def one_chunk_tree(digest: bytes, length: int, params: ChunkParams, traits: bytes) -> SignatureTree:
    """The tree that TreeBuilder makes of a single chunk, computed directly. Most files of most trees are that
    small."""
    lengths = memoryview(array("Q", (length,)))
    root = root_digest(params.id, length, 0, digest, lengths, _ONE)
    level = Level(memoryview(digest), lengths, memoryview(_ONE).cast("Q"), _NO_STARTS, _NO_SIZES)
    return SignatureTree(root, length, params, (level,), traits)


_NO_STARTS = memoryview(array("Q"))
_NO_SIZES = memoryview(b"\0")
