"""Cuts bytes into chunks: parameters, the streaming chunker, and chunk digests."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from blake3 import blake3

from rdc.errors import UsageError
from rdc.lean.checks import check_argument, check_fields
from rdc.lean.records import Record
from rdc.limits import CHUNK_MAX_LIMIT, CHUNK_MIN_LIMIT, CHUNK_RATIO_LIMIT, NODE_RECORDS_MAX, NODE_RECORDS_MIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from typing_extensions import Buffer


# ChunkParams: the chunk sizes, and the id that names them together with every algorithm they imply.

WINDOW_RATIO = 4
"""max_size / min_size of `for_mean`. Among 2 to 7, it is the best or nearly the best ratio at equal mean
(signature/FORMAT.md)."""

MEAN_IN_MINIMA = 2.63
"""Mean chunk length divided by min_size, if max_size is 4 * min_size. Measured on random data. It is more
than 2.5, the middle of (min, max], because positions that a window shares with the window before lost
there."""

MEAN_MIN = 168
MEAN_MAX = 10 << 20
"""Limits of `for_mean`: the means of the smallest min_size, 64, and of nearly the largest max_size, 16
MiB."""

FORMAT_VERSION = 1


class ChunkParams(Record):
    """Chunk sizes in bytes. Every chunk but a stream's last is longer than `min_size`; none is longer than
    `max_size`.

    Raises UsageError unless 64 <= min_size < max_size <= 32 * min_size and max_size <= 16 MiB.

        >>> import rdc
        >>> params = rdc.ChunkParams.for_mean(16384)
        >>> params.min_size, params.max_size
        (6230, 24920)
    """

    __slots__ = ("__dict__",)  # for cached_property
    min_size: int
    max_size: int
    version: int = FORMAT_VERSION

    def __post_init__(self) -> None:
        check_fields(self)
        if self.version != FORMAT_VERSION:
            raise UsageError(f"chunk parameters of version {self.version}: this rdc knows {FORMAT_VERSION}")
        if not (
            CHUNK_MIN_LIMIT <= self.min_size < self.max_size <= CHUNK_RATIO_LIMIT * self.min_size
            and self.max_size <= CHUNK_MAX_LIMIT
        ):
            raise UsageError(
                f"chunk sizes {self.min_size} to {self.max_size}: expected {CHUNK_MIN_LIMIT} <= min < max"
                f" <= {CHUNK_RATIO_LIMIT} * min and max <= {CHUNK_MAX_LIMIT}"
            )

    @classmethod
    def for_mean(cls, size: int) -> ChunkParams:
        """Parameters for chunks of `size` bytes on average, on data without repetition. Raises UsageError
        unless `size` is 168 bytes to 10 MiB."""
        check_argument("ChunkParams.for_mean", "size", size, int)
        if not MEAN_MIN <= size <= MEAN_MAX:
            raise UsageError(f"chunks of {size} bytes on average: expected {MEAN_MIN} to {MEAN_MAX}")
        min_size = round(size / MEAN_IN_MINIMA)
        return cls(min_size, min_size * WINDOW_RATIO)

    @property
    def mean(self) -> float:
        """Expected chunk length in bytes on data without repetition, for max_size = 4 * min_size."""
        return self.min_size * MEAN_IN_MINIMA

    @cached_property
    def id(self) -> bytes:
        """32 bytes that two sides compare before they compare digests (FORMAT.md, "Parameter id")."""
        text = (
            f"rdc signature {self.version}; cuts winnow rabin lead 8/16 low 64/64"
            f" min {self.min_size} max {self.max_size}; chunks blake3-256;"
            f" nodes winnow be64 min {NODE_RECORDS_MIN} max {NODE_RECORDS_MAX} blake3-256 keyed;"
            " traits 12x6"
        )
        return blake3(text.encode()).digest()


SYNC_PARAMS = ChunkParams.for_mean(16 << 10)
"""The parameters of `rdc sync`: about 16 KiB per chunk. Both sides must agree, so there is no option for
them."""


# The streaming chunker: takes spans of a stream, returns chunks with their BLAKE3 digests, in bounded memory.


class Chunk(Record):
    """Bytes offset to offset + length of a stream, and their BLAKE3-256 digest."""

    offset: int
    length: int
    digest: bytes


class ChunkColumns(Record):
    """Consecutive chunks as columns, for bulk work without an object per chunk."""

    lengths: list[int]
    digests: list[bytes]


class Chunker:
    """Cuts a stream that arrives in spans of any sizes. The cuts do not depend on the spans.

    It holds at most max_size bytes between calls: a cut is known once more than max_size bytes follow the cut
    before it.

        >>> import rdc
        >>> chunker = rdc.Chunker(rdc.ChunkParams(1024, 4096))
        >>> found = [*chunker.feed(b"a" * 3000), *chunker.feed(b"a" * 3000), *chunker.finish()]
        >>> sum(chunk.length for chunk in found)
        6000
    """

    def __init__(self, params: ChunkParams) -> None:
        if not isinstance(params, ChunkParams):
            check_argument("Chunker", "params", params, ChunkParams)
        from rdc.kernel import Cutter  # a side that only greets needs the parameters, and no kernel

        self._cutter = Cutter(params.min_size, params.max_size)
        self._rest = bytearray()
        self._start = 0  # stream offset of _rest, and of the next chunk

    def chunk_views(self, span: Buffer) -> list[Buffer]:
        """Return the chunks that `span` completes, cut but not yet hashed, for callers that hash in other
        threads.

        They are views of `span` where possible, so `span` must not change until they have been used.
        """
        view = memoryview(span).cast("B")
        return self._take(self._cutter.feed(view), view)

    def last_chunk_views(self) -> list[Buffer]:
        """Return the rest of the stream: at most one chunk. The chunker must not be used afterwards."""
        return self._take(self._cutter.finish(), memoryview(b""))

    def feed_columns(self, span: Buffer) -> ChunkColumns:
        """Return the chunks that `span` completes."""
        view = memoryview(span).cast("B")
        return name_chunks(self._take(self._cutter.feed(view), view))

    def finish_columns(self) -> ChunkColumns:
        """Return the rest of the stream: at most one chunk. The chunker must not be used afterwards."""
        return name_chunks(self._take(self._cutter.finish(), memoryview(b"")))

    def feed(self, span: Buffer) -> list[Chunk]:
        """Return the chunks that `span` completes, in stream order."""
        start = self._start
        return _rows(start, self.feed_columns(span))

    def finish(self) -> list[Chunk]:
        """Return the rest of the stream: one chunk, or none for an empty rest."""
        start = self._start
        return _rows(start, self.finish_columns())

    def traits(self) -> bytes:
        """Return the stream's similarity samples, to be called after the finish: 9 bytes, or b'' for a stream
        without features."""
        return self._cutter.traits()

    def _take(self, ends: list[int], view: memoryview) -> list[Buffer]:
        # Stream offsets [start, start + len(rest)) lie in _rest, the following ones in view. A chunk may span
        # both.
        rest, start = self._rest, self._start
        border = start + len(rest)
        chunk_views: list[Buffer] = []
        for end in ends:
            if start >= border:
                chunk_views.append(view[start - border : end - border])
            else:
                # Copied only until _rest is used up, which affects at most a few chunks of a span.
                origin = border - len(rest)
                chunk_views.append(bytes(rest[start - origin : end - origin]) + view[: max(0, end - border)])
            start = end
        if start >= border:
            self._rest = bytearray(view[start - border :])
        else:
            del rest[: start - self._start]
            rest += view
        self._start = start
        return chunk_views


def name_chunks(chunk_views: list[Buffer]) -> ChunkColumns:
    """Name chunks that were cut. Threads may name chunks of one stream in parallel."""
    from rdc.kernel.blake3_many import NAME_BYTES, equal_parts, name_many

    names = name_many(chunk_views)
    return ChunkColumns(
        list(map(len, chunk_views)),  # type: ignore[arg-type] # Buffer promises no len(), each of ours has it
        equal_parts(names, NAME_BYTES),
    )


def _rows(start: int, columns: ChunkColumns) -> list[Chunk]:
    rows = []
    for length, digest in zip(columns.lengths, columns.digests, strict=True):
        rows.append(Chunk(start, length, digest))
        start += length
    return rows


def chunks(source: Buffer | Iterable[Buffer], params: ChunkParams) -> Iterator[Chunk]:
    """Yield the chunks of `source` in order. `source` is a buffer or the spans of a stream."""
    chunker = Chunker(params)
    spans = [source] if isinstance(source, bytes | bytearray | memoryview) else source
    for span in spans:  # type: ignore[union-attr] # mypy takes any Buffer for left over, not these three alone
        yield from chunker.feed(span)
    yield from chunker.finish()


def cuts(data: Buffer, params: ChunkParams) -> array[int]:
    """Return the ends of the chunks of `data`, typecode 'Q'. The last is len(data); empty data has none."""
    from array import array

    from rdc.kernel import Cutter

    cutter = Cutter(params.min_size, params.max_size)
    return array("Q", cutter.feed(data) + cutter.finish())
