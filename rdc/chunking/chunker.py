"""The streaming chunker: spans of a stream in, chunks with their BLAKE3 names out, bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rdc.kernel import Cutter
from rdc.kernel.naming import NAME_BYTES, name_many
from rdc.records import dataclass

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from typing_extensions import Buffer

    from rdc.chunking.params import ChunkParams

__all__ = ["Chunk", "ChunkColumns", "Chunker", "chunks", "cuts", "name_pieces"]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Bytes offset to offset + length of a stream, named by the BLAKE3-256 of them."""

    offset: int
    length: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class ChunkColumns:
    """Consecutive chunks as columns: what bulk consumers use instead of an object a chunk."""

    lengths: list[int]
    digests: list[bytes]


class Chunker:
    """Cuts a stream that arrives in spans of any sizes; the cuts do not depend on the spans.

    Holds at most max_size bytes between calls: a cut is decided once more than max_size bytes follow the
    one before it.
    """

    def __init__(self, params: ChunkParams) -> None:
        self._cutter = Cutter(params.min_size, params.max_size)
        self._held = bytearray()
        self._start = 0  # stream offset of _held, and of the next chunk

    def pieces(self, span: Buffer) -> list[Buffer]:
        """The chunks that `span` completes, cut and not yet hashed: for who hashes elsewhere meanwhile.

        They are views of `span` where possible, so it must stay as it is until they were used.
        """
        view = memoryview(span).cast("B")
        return self._take(self._cutter.feed(view), view)

    def last_pieces(self) -> list[Buffer]:
        """The rest of the stream, at most one chunk; the chunker is used up."""
        return self._take(self._cutter.finish(), memoryview(b""))

    def feed_columns(self, span: Buffer) -> ChunkColumns:
        """The chunks that `span` completes."""
        return name_pieces(self.pieces(span))

    def finish_columns(self) -> ChunkColumns:
        """The rest of the stream, at most one chunk; the chunker is used up."""
        return name_pieces(self.last_pieces())

    def feed(self, span: Buffer) -> list[Chunk]:
        """The chunks that `span` completes, in stream order."""
        start = self._start
        return _rows(start, self.feed_columns(span))

    def finish(self) -> list[Chunk]:
        """The rest of the stream: one chunk, or none for an empty rest."""
        start = self._start
        return _rows(start, self.finish_columns())

    def traits(self) -> bytes:
        """After the finish: the stream's similarity samples, 9 bytes, or b'' where it has no feature."""
        return self._cutter.traits()

    def _take(self, ends: list[int], view: memoryview) -> list[Buffer]:
        # Stream offsets [start, start + held) lie in _held, the rest in view; a chunk may span both.
        held, start = self._held, self._start
        border = start + len(held)
        pieces: list[Buffer] = []
        for end in ends:
            if start >= border:
                pieces.append(view[start - border : end - border])
            else:
                # Copied only while _held lasts, that is for at most a few chunks of a span.
                origin = border - len(held)
                pieces.append(bytes(held[start - origin : end - origin]) + view[: max(0, end - border)])
            start = end
        if start >= border:
            self._held = bytearray(view[start - border :])
        else:
            del held[: start - self._start]
            held += view
        self._start = start
        return pieces


def name_pieces(pieces: list[Buffer]) -> ChunkColumns:
    """The chunks with these bytes. Threads may name pieces of one stream side by side."""
    names = name_many(pieces)
    return ChunkColumns(
        list(map(len, pieces)),  # type: ignore[arg-type] # Buffer promises no len(), each of ours has it
        [names[at : at + NAME_BYTES] for at in range(0, len(names), NAME_BYTES)],
    )


def _rows(start: int, columns: ChunkColumns) -> list[Chunk]:
    rows = []
    for length, digest in zip(columns.lengths, columns.digests, strict=True):
        rows.append(Chunk(start, length, digest))
        start += length
    return rows


def chunks(source: Buffer | Iterable[Buffer], params: ChunkParams) -> Iterator[Chunk]:
    """The chunks of `source`, a buffer or the spans of a stream, in order."""
    chunker = Chunker(params)
    spans = [source] if isinstance(source, bytes | bytearray | memoryview) else source
    for span in spans:  # type: ignore[union-attr] # mypy takes any Buffer for left over, not these three alone
        yield from chunker.feed(span)
    yield from chunker.finish()


def cuts(data: Buffer, params: ChunkParams) -> array[int]:
    """Ends of the chunks of `data`, typecode 'Q': the last is len(data), empty data has none."""
    from array import array

    cutter = Cutter(params.min_size, params.max_size)
    return array("Q", cutter.feed(data) + cutter.finish())
