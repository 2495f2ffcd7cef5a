"""The bytes of a file, unpacked if its name ends in .gz or .zst."""

from __future__ import annotations

import gzip
import zlib

from rdc.errors import RdcError
from rdc.limits.documents import READ_BYTES
from rdc.typed import Protocol

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

__all__ = ["UNPACK_ERRORS", "Readable", "spans_of"]

UNPACK_ERRORS = (OSError, EOFError, zlib.error, RdcError)
"""The exceptions of a stream that cannot be read to its end."""


ZSTD_BYTES = 1 << 10
"""Bytes unpacked at a time. Four bytes can be a block of 128 KiB, so they become 32 MiB at most."""


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


def spans_of(path: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """Yields the content in spans of at most READ_BYTES. Raises one of UNPACK_ERRORS."""
    source: Readable = stream
    if path.endswith(b".gz"):
        source = gzip.GzipFile(fileobj=stream, mode="rb")
    elif path.endswith(b".zst"):
        yield from _unpacked(stream)
        return
    while span := source.read(READ_BYTES):
        yield span


def _unpacked(stream: BinaryIO) -> Iterator[bytes]:
    """The frames of a .zst file one after another. A last frame without its end is an error."""
    # Only such files need it, and it takes some milliseconds.
    import zstandard

    unpacker = zstandard.ZstdDecompressor().decompressobj()
    begun = False
    while packed := stream.read(ZSTD_BYTES):
        while packed:
            if unpacker.eof:
                unpacker = zstandard.ZstdDecompressor().decompressobj()
            try:
                span = unpacker.decompress(packed)
            except zstandard.ZstdError as error:
                raise RdcError(str(error)) from error
            begun = not unpacker.eof
            packed = unpacker.unused_data if unpacker.eof else b""
            if span:
                yield span
    if begun:
        raise EOFError("the last frame has no end")
