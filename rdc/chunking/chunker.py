"""The streaming chunker: takes spans of a stream, returns chunks with their BLAKE3 digests, in bounded
memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rdc.chunking.params import ChunkParams
from rdc.kernel import Cutter
from rdc.kernel.blake3_many import NAME_BYTES, name_many
from rdc.lean.checks import check_argument
from rdc.lean.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from typing_extensions import Buffer


__all__ = ["Chunk", "ChunkColumns", "Chunker", "chunks", "cuts", "name_chunks"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes offset to offset + length of a stream, and their BLAKE3-256 digest."""

    offset: int
    length: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class ChunkColumns:
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
        self._cutter = Cutter(params.min_size, params.max_size)
        self._rest = bytearray()
        self._start = 0  # stream offset of _rest, and of the next chunk

    def chunk_views(self, span: Buffer) -> list[Buffer]:
        """The chunks that `span` completes, cut but not yet hashed, for callers that hash in other threads.

        They are views of `span` where possible, so `span` must not change until they have been used.
        """
        view = memoryview(span).cast("B")
        return self._take(self._cutter.feed(view), view)

    def last_chunk_views(self) -> list[Buffer]:
        """The rest of the stream: at most one chunk. The chunker must not be used afterwards."""
        return self._take(self._cutter.finish(), memoryview(b""))

    def feed_columns(self, span: Buffer) -> ChunkColumns:
        """The chunks that `span` completes."""
        return name_chunks(self.chunk_views(span))

    def finish_columns(self) -> ChunkColumns:
        """The rest of the stream: at most one chunk. The chunker must not be used afterwards."""
        return name_chunks(self.last_chunk_views())

    def feed(self, span: Buffer) -> list[Chunk]:
        """The chunks that `span` completes, in stream order."""
        start = self._start
        return _rows(start, self.feed_columns(span))

    def finish(self) -> list[Chunk]:
        """The rest of the stream: one chunk, or none for an empty rest."""
        start = self._start
        return _rows(start, self.finish_columns())

    def traits(self) -> bytes:
        """The stream's similarity samples, to be called after the finish: 9 bytes, or b'' for a stream
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
    """Names chunks that were cut. Threads may name chunks of one stream in parallel."""
    names = name_many(chunk_views)
    return ChunkColumns(
        list(map(len, chunk_views)),  # type: ignore[arg-type] # Buffer promises no len(), each of ours has it
        [names[at : at + NAME_BYTES] for at in range(0, len(names), NAME_BYTES)],
    )


def _rows(start: int, columns: ChunkColumns) -> list[Chunk]:
    rows = []
    for length, digest in zip(columns.lengths, columns.digests, strict=True):
        rows.append(Chunk(start, length, digest))
        start += length
    return rows


def chunks(source: Buffer | Iterable[Buffer], params: ChunkParams) -> Iterator[Chunk]:
    """The chunks of `source` in order. `source` is a buffer or the spans of a stream."""
    chunker = Chunker(params)
    spans = [source] if isinstance(source, bytes | bytearray | memoryview) else source
    for span in spans:  # type: ignore[union-attr] # mypy takes any Buffer for left over, not these three alone
        yield from chunker.feed(span)
    yield from chunker.finish()


def cuts(data: Buffer, params: ChunkParams) -> array[int]:
    """Ends of the chunks of `data`, typecode 'Q'. The last is len(data); empty data has none."""
    from array import array

    cutter = Cutter(params.min_size, params.max_size)
    return array("Q", cutter.feed(data) + cutter.finish())
