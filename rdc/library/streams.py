"""Chunks, signatures and similarity indices of streams: buffers, spans, and any binary file object.

A file object needs `read(size)` alone, which may return less than `size` bytes. So a pipe, a socket's file or
a file of fsspec will do; nothing seeks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from rdc import chunking
from rdc.chunking import SYNC_PARAMS, Chunk, ChunkParams
from rdc.errors import FileError
from rdc.lean.checks import check_argument, check_buffer, check_method, found_type
from rdc.lean.typed import Protocol
from rdc.library import public
from rdc.signature import tree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from array import array

    from typing_extensions import Buffer

    from rdc.catalog.store import SignatureStore
    from rdc.signature.tree import SignatureTree
    from rdc.similarity.index import SimilarityIndex


READ_BYTES = 512 << 10
"""Bytes that one read asks for."""


class BinaryReader(Protocol):
    """A binary file object, open for reading."""

    def read(self, size: int, /) -> bytes:
        """Return at most `size` bytes, as many as there are now, and b"" at the end only."""


@public
def cuts(data: Buffer, params: ChunkParams = SYNC_PARAMS) -> array[int]:
    """Return the ends of the chunks of `data`, in bytes, as an array of typecode 'Q'.

    The last is len(data); empty data has none. Raises TypeError.

        >>> import rdc
        >>> list(rdc.cuts(bytes(range(256)) * 16, rdc.ChunkParams(1024, 4096)))[-1]
        4096
    """
    check_buffer("cuts", "data", data)
    check_argument("cuts", "params", params, ChunkParams)
    return chunking.cuts(data, params)


@public
def chunks(
    source: Buffer | Iterable[Buffer] | BinaryReader, params: ChunkParams = SYNC_PARAMS
) -> Iterator[Chunk]:
    """Return the chunks of `source` in order. `source` is a buffer, the spans of a stream, or a binary file
    object.

    `params`: chunks of 16 KiB on average by default, as `rdc sync` has them. ChunkParams(2048, 65536) has the
    bounds that FastCDC usually has.

    It holds at most `params.max_size` bytes and one span. Raises TypeError, and what `source` raises.

        >>> import io, rdc
        >>> stream = io.BytesIO(b"content" * 1000)
        >>> sum(chunk.length for chunk in rdc.chunks(stream, rdc.ChunkParams(1024, 4096)))
        7000
    """
    check_argument("chunks", "params", params, ChunkParams)
    return _chunks(_spans("chunks", source), params)


def _chunks(spans: Iterator[Buffer], params: ChunkParams) -> Iterator[Chunk]:
    chunker = chunking.Chunker(params)
    for span in spans:
        yield from chunker.feed(span)
    yield from chunker.finish()


@public
def sign(source: Buffer | BinaryReader, params: ChunkParams = SYNC_PARAMS) -> SignatureTree:
    """Return the signature tree of a buffer, or of what is left of a binary file object.

    Equal contents have equal trees, however the bytes arrive. The memory is that of the tree, 48 bytes a
    chunk. Raises TypeError, and what `source` raises.

        >>> import io, rdc
        >>> params = rdc.ChunkParams.for_mean(16384)
        >>> data = b"content" * 10000
        >>> rdc.sign(io.BytesIO(data), params) == rdc.sign(data, params)
        True
    """
    check_argument("sign", "params", params, ChunkParams)
    if not _is_file(source):
        check_buffer("sign", "source", source)
        return tree.sign(source, params)  # type: ignore[arg-type] # it is no file, so a buffer
    chunker, builder = chunking.Chunker(params), tree.TreeBuilder(params)
    for span in _spans("sign", source):
        columns = chunker.feed_columns(span)
        builder.add(columns.digests, columns.lengths)
    columns = chunker.finish_columns()
    builder.add(columns.digests, columns.lengths)
    return builder.finish(chunker.traits())


@public
def sign_file(
    path: str | bytes | os.PathLike[str],
    params: ChunkParams = SYNC_PARAMS,
    catalog: SignatureStore | None = None,
) -> SignatureTree:
    """Return the signature tree of the regular file at `path`. Symlinks are followed.

    Raises FileError if it cannot be read, FileChangedError if it changed while it was read.

        >>> import rdc
        >>> with open("file", "wb") as file:
        ...     _ = file.write(b"content")
        >>> rdc.sign_file("file").size
        7
    """
    check_argument("sign_file", "path", path, str, bytes, os.PathLike)
    check_argument("sign_file", "params", params, ChunkParams)
    if catalog is not None:
        check_method("sign_file", "catalog", catalog, "flush")
    from rdc.catalog.signer import FileSigner
    from rdc.files.root.root import Root

    directory, name = os.path.split(os.path.realpath(os.fsencode(path)))
    root = Root.open(directory)
    try:
        with root.open_read(name) as source:
            return FileSigner(params, catalog).sign(source)
    except FileError as error:
        # Its path is relative to that directory.
        raise type(error)(os.fsencode(path), str(error), code=error.code) from error.__cause__
    finally:
        root.close()


@public
def open_index(source: str | bytes | os.PathLike[str] | BinaryReader) -> SimilarityIndex:
    """Read what `SimilarityIndex.save` wrote, from a path or a binary file object.

    Reads a file object to its end. Raises SimilarityIndexError for anything else, OSError if the file cannot
    be read, and TypeError.

        >>> import rdc
        >>> index = rdc.SimilarityIndex()
        >>> index.add(7, rdc.Traits(bytes(9)), size=100)
        >>> with open("traits.index", "wb") as file:
        ...     index.save(file)
        >>> list(rdc.open_index("traits.index").keys())
        [7]
    """
    import io

    from rdc.similarity.index import SimilarityIndex

    if isinstance(source, (str, bytes, os.PathLike)):
        with open(source, "rb") as file:
            return SimilarityIndex.load(file)
    if not _is_file(source):
        raise TypeError(f"open_index.source: expected a path or a binary file, found {found_type(source)}")
    return SimilarityIndex.load(io.BytesIO(b"".join(map(bytes, _spans("open_index", source)))))


def _is_file(source: object) -> bool:
    return callable(getattr(source, "read", None))


def _spans(function: str, source: object) -> Iterator[Buffer]:
    """Return the spans of a buffer, of a file object, or of an iterable of buffers. Raises TypeError for
    others."""
    if isinstance(source, (bytes, bytearray, memoryview)):
        return iter((source,))
    if _is_file(source):
        return _read_spans(function, source)  # type: ignore[arg-type] # it has read()
    try:
        memoryview(source).release()  # type: ignore[arg-type] # this is the question
    except TypeError:
        if isinstance(source, Iterable) and not isinstance(source, str):
            return _checked_spans(function, source)
        expected = "a buffer, spans or a binary file"
        raise TypeError(f"{function}.source: expected {expected}, found {found_type(source)}") from None
    return iter((source,))  # type: ignore[arg-type] # memoryview() took it


def _read_spans(function: str, file: BinaryReader) -> Iterator[Buffer]:
    while True:
        span: object = file.read(READ_BYTES)
        if not isinstance(span, (bytes, bytearray, memoryview)):
            # A text file, or a file without data now, which must be waited for.
            raise TypeError(f"{function}.source.read: expected bytes, found {found_type(span)}")
        if not span:
            return
        yield span


def _checked_spans(function: str, spans: Iterable[Buffer]) -> Iterator[Buffer]:
    for number, span in enumerate(spans):
        check_buffer(function, f"source[{number}]", span)
        yield span
