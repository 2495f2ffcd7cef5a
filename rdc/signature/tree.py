"""SignatureTree: a file's chunk list, the levels of nodes above it, and the root digest; its builder."""

from __future__ import annotations

import struct
from array import array
from itertools import accumulate, pairwise
from operator import eq, mul

from blake3 import blake3

from rdc.chunking import ChunkParams, name_chunks
from rdc.errors import UsageError
from rdc.kernel import Cutter, Winnower
from rdc.kernel.constants import TRAIT_COUNT
from rdc.lean.records import Record
from rdc.lean.typed import Protocol
from rdc.limits import NODE_RECORDS_MAX, NODE_RECORDS_MIN, TREE_HEIGHT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from typing_extensions import Buffer


# The keyed digests of nodes and roots. Each has its own key, so a node's digest can never equal a chunk's or
# root's.

DIGEST_BYTES = 32

NODE_KEY = blake3(b"rdc 1 signature node").digest()
ROOT_KEY = blake3(b"rdc 1 signature root").digest()


def node_digest(level: int, digests: Buffer, lengths: Buffer, counts: Buffer) -> bytes:
    """Return the digest of a node whose records lie on `level`. Columns: digests, and lengths and counts as
    little-endian u64."""
    # One call: a node has at most 1,248 bytes, and calls cost more than hashing them.
    return blake3(b"".join((bytes([level]), digests, lengths, counts)), key=NODE_KEY).digest()


def root_digest(
    params_id: bytes, size: int, height: int, digests: Buffer, lengths: Buffer, counts: Buffer
) -> bytes:
    """Return the digest of a whole file: parameters, length in bytes, levels above the chunk list, and the
    top level's columns."""
    head = params_id + size.to_bytes(8, "little") + bytes([height])
    return blake3(b"".join((head, digests, lengths, counts)), key=ROOT_KEY).digest()


# SignatureTree: a file's chunk list, the levels of nodes above it, and the root digest.

MAGIC = b"RDCS"
VERSION = 1

# The fixed parts of a signature at rest, which rdc.signature.codec reads.
SIGNATURE_STRUCT = struct.Struct("<4sBIIQB")
COUNTS_STRUCT = struct.Struct("<QQ")
RUN_STRUCT = struct.Struct("<QQ")


class Level(Record):
    """The records of one level as columns. Record i stands for `counts[i]` equal items of `lengths[i]` bytes.

    On level 0 an item is a chunk. Above, it is a node, which groups the records `starts[i]` to `starts[i] +
    sizes[i]` of the level below; for a run of equal nodes, these are the records of the first.
    """

    digests: memoryview
    """32 bytes per record."""
    lengths: memoryview
    """Format 'Q': bytes of the file that one item covers."""
    counts: memoryview
    """Format 'Q': at least 1."""
    starts: memoryview
    """Format 'Q'; empty at level 0."""
    sizes: memoryview
    """Format 'B'; empty at level 0."""

    @property
    def records(self) -> int:
        return len(self.lengths)

    def digest(self, record: int) -> bytes:
        return bytes(self.digests[record * DIGEST_BYTES : (record + 1) * DIGEST_BYTES])

    def children(self, record: int) -> range:
        """Return the record numbers, one level below, of the node that `record` stands for."""
        start = self.starts[record]
        return range(start, start + self.sizes[record])

    @property
    def bytes(self) -> int:
        """Bytes of the level's digests, lengths and counts: 48 per record."""
        return self.records * (DIGEST_BYTES + 16)

    @property
    def items(self) -> int:
        """Number of chunks or nodes that the records stand for."""
        return sum(self.counts)


class SignatureTree(Record):
    """A file's signature. Files with equal roots have equal length, parameters and content (BLAKE3).

    >>> import rdc
    >>> tree = rdc.sign(b"content" * 1000, rdc.ChunkParams(1024, 4096))
    >>> tree.size, len(tree.root)
    (7000, 32)
    """

    root: bytes
    """32 bytes."""
    size: int
    """File length in bytes."""
    params: ChunkParams
    levels: tuple[Level, ...]
    """From level 0, the chunk list, to the top, which has at most 26 records. An empty file has one empty
    level."""
    traits: bytes
    """9 bytes of similarity samples; b'' for a file without features."""

    def to_bytes(self) -> bytes:
        """Return the signature as `rdc signature` writes it (FORMAT.md, "A signature at rest"): 36 bytes a
        chunk."""
        level, params = self.levels[0], self.params
        runs = [(record, count) for record, count in enumerate(level.counts) if count > 1]
        head = (MAGIC, VERSION, params.min_size, params.max_size, self.size, len(self.traits))
        return b"".join(
            (
                SIGNATURE_STRUCT.pack(*head),
                self.traits,
                self.root,
                COUNTS_STRUCT.pack(level.records, len(runs)),
                level.digests,
                array("I", level.lengths),
                *(RUN_STRUCT.pack(record, count) for record, count in runs),
            )
        )

    @property
    def height(self) -> int:
        """Number of levels above the chunk list."""
        return len(self.levels) - 1

    @property
    def top(self) -> Level:
        return self.levels[-1]

    def described_by(self, most: int) -> int:
        """Return the number of the lowest level that describes the whole file in at most `most` records; the
        top for none. Each level does, and has more records than the one above."""
        at = self.height
        while at and self.levels[at - 1].records <= most:
            at -= 1
        return at

    @property
    def memory(self) -> int:
        """Bytes of all columns, in memory or mapped."""
        return sum(level.bytes + 9 * level.records for level in self.levels)

    @property
    def mean(self) -> float:
        """Mean chunk length in bytes; 0 for an empty file."""
        return self.size / self.levels[0].items if self.size else 0.0


def chunk_offsets(tree: SignatureTree) -> array[int]:
    """Return where the chunks of each record of level 0 begin in the file, and behind them the file's
    size."""
    chunks = tree.levels[0]
    return array("Q", accumulate(map(mul, chunks.lengths, chunks.counts), initial=0))


# A column of traits: nine bytes per stream (FORMAT.md, "Traits").

TRAIT_BITS = 6
TRAITS_BYTES = TRAIT_COUNT * TRAIT_BITS // 8

NO_TRAITS = bytes(TRAITS_BYTES)
"""Marks a stream without features. By chance, one of 2^72 streams with features has the same bytes, and is
then similar to nothing."""


def traits_at(column: bytes | bytearray, row: int) -> bytes:
    """Return the traits of one row; b'' for a stream without features."""
    traits = bytes(column[row * TRAITS_BYTES : (row + 1) * TRAITS_BYTES])
    return b"" if traits == NO_TRAITS else traits


# Builds signature trees: chunks are grouped into nodes, level by level, as they arrive.

FOLD_CHUNKS = 256
"""Chunks grouped at a time. A call per chunk would cost more than cutting and hashing it."""

MEMORY_RUNS = 1024
"""Records of a level, 49 bytes each, that are kept in plain memory. Only larger levels need columns."""

_ONE = (1).to_bytes(8, "little")


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
        """The columns once there are more than MEMORY_RUNS records."""
        self._winnower = Winnower(NODE_RECORDS_MIN, NODE_RECORDS_MAX)
        self._group_start = 0
        self._digests = bytearray()
        self._lengths: array[int] = array("Q")
        self._counts: array[int] = array("Q")
        self._last: _Items = [], [], []
        self._last_count = 0

    def add(self, items: _Items) -> _Items:
        """Take items in order. Returns the groups they complete, which are items of the level above."""
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
        """Count the last item `count` more times."""
        self._last_count += count

    def finish(self) -> _Items:
        """Add the last run. Unless the level is the top, the remaining runs become the last group."""
        last, self._last = self._last, ([], [], [])
        counts, self._last_count = array("Q", [self._last_count] * len(last[0])), 0
        return self._append_final(last, counts, ends=True)

    def _append_final(self, items: _Items, counts: array[int], *, ends: bool = False) -> _Items:
        """Append runs, and return the groups that they complete. `ends`: no more will follow."""
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
        groups: _Items = [], [], []
        begin = 0
        for end in cuts:
            stop = end - self._group_start
            lengths, counts = self._lengths[begin:stop], self._counts[begin:stop]
            names = self._digests[begin * DIGEST_BYTES : stop * DIGEST_BYTES]
            groups[0].append(node_digest(self.number, names, lengths, counts))
            groups[1].append(sum(map(mul, lengths, counts)))
            groups[2].append(stop - begin)
            begin = stop
        if cuts:
            del self._digests[: begin * DIGEST_BYTES], self._lengths[:begin], self._counts[:begin]
            self._group_start += begin
            self.groups += len(cuts)
        return groups

    def _store(self, *records: bytes | bytearray) -> None:
        """Append records, given as columns, to those of a long level."""
        for column, data in zip(self._columns or (), records, strict=True):
            column.append(bytes(data))

    def level(self) -> Level:
        """Return the whole level, once it is finished."""
        if self._columns is None:
            kept, spans, repeats, grouped = self._records
            columns = [memoryview(kept), memoryview(spans), memoryview(repeats), memoryview(grouped)]
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
        """Take the next chunks: 32-byte digests and lengths in bytes, one each."""
        self.size += sum(lengths)
        self._digests += digests
        self._lengths += lengths
        if len(self._digests) >= FOLD_CHUNKS:
            self._fold()

    def repeat(self, digest: bytes, length: int, count: int) -> None:
        """Take a run of `count` >= 1 equal chunks in constant time."""
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
        """Return the tree of at most NODE_RECORDS_MAX chunks: winnowing does not divide so few."""
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
        """Return the tree of all chunks added. The builder must not be used afterwards."""
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
    """Return the signature tree of `data`."""
    view = memoryview(data).cast("B")
    if 0 < len(view) <= params.max_size:
        return _sign_chunk(view, params)
    cutter, builder = Cutter(params.min_size, params.max_size), TreeBuilder(params)
    ends = cutter.feed(view) + cutter.finish()
    columns = name_chunks([view[start:end] for start, end in pairwise([0, *ends])])
    builder.add(columns.digests, columns.lengths)
    return builder.finish(cutter.traits())


def _sign_chunk(chunk: memoryview, params: ChunkParams) -> SignatureTree:
    """Return the tree of a stream of at most max_size bytes, which is one chunk."""
    cutter = Cutter(params.min_size, params.max_size)
    cutter.feed(chunk)
    cutter.finish()
    return one_chunk_tree(blake3(chunk).digest(), len(chunk), params, cutter.traits())


def one_chunk_tree(digest: bytes, length: int, params: ChunkParams, traits: bytes) -> SignatureTree:
    """Return the tree that TreeBuilder makes of a single chunk, computed directly. Most files of most trees
    are that small."""
    lengths = memoryview(array("Q", (length,)))
    root = root_digest(params.id, length, 0, digest, lengths, _ONE)
    level = Level(memoryview(digest), lengths, memoryview(_ONE).cast("Q"), _NO_STARTS, _NO_SIZES)
    return SignatureTree(root, length, params, (level,), traits)


_NO_STARTS = memoryview(array("Q"))
_NO_SIZES = memoryview(b"\0")


# HollowDigest: the digest of a file with holes, to whose time its holes add nothing (PROTOCOL.md, Holes).

SEGMENT_BYTES = 64 << 10
"""Bytes that are looked at at once. Only whole segments of zeros are left out, so the digest of a content
is the same wherever its holes are."""

_ZEROS = bytes(SEGMENT_BYTES)
_RUN = struct.Struct("<QQ")
"""Bytes of a run of other segments, and zeros after it. With them no two contents are one message."""


class HollowDigest:
    """Takes a content in order: `update` its bytes, `skip` its holes."""

    __slots__ = ("_data", "_hasher", "_partial", "_zeros")

    def __init__(self) -> None:
        self._hasher = blake3()
        self._partial = bytearray()
        """The begun segment."""
        self._data = 0
        """Bytes of the run of segments that was hashed last."""
        self._zeros = 0
        """Bytes of the segments of zeros after it."""

    def update(self, content: Buffer) -> None:
        """Take the next bytes."""
        view = memoryview(content).cast("B")
        if self._partial:
            taken = min(SEGMENT_BYTES - len(self._partial), len(view))
            self._partial += view[:taken]
            view = view[taken:]
            if len(self._partial) == SEGMENT_BYTES:
                self._take(self._partial)
                self._partial = bytearray()
        whole = len(view) - len(view) % SEGMENT_BYTES
        for at in range(0, whole, SEGMENT_BYTES):
            self._take(view[at : at + SEGMENT_BYTES])
        self._partial += view[whole:]

    def skip(self, length: int) -> None:
        """Take `length` zeros."""
        if self._partial:
            taken = min(SEGMENT_BYTES - len(self._partial), length)
            self.update(_ZEROS[:taken])
            length -= taken
        self._zeros += length - length % SEGMENT_BYTES
        self._partial += _ZEROS[: length % SEGMENT_BYTES]

    def digest(self) -> bytes:
        """Return the digest of everything that was taken, 32 bytes. Nothing may be taken afterwards."""
        if self._partial:
            self._take(self._partial)
        self._hasher.update(_RUN.pack(self._data, self._zeros))
        return self._hasher.digest()

    def _take(self, segment: memoryview | bytearray) -> None:
        # Converted to bytes, because bytes compare in one step and memoryviews item by item.
        if not segment[0] and not segment[-1] and bytes(segment) == _ZEROS[: len(segment)]:
            self._zeros += len(segment)
            return
        if self._zeros:
            self._hasher.update(_RUN.pack(self._data, self._zeros))
            self._data = self._zeros = 0
        self._hasher.update(segment)
        self._data += len(segment)
