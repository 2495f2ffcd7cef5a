"""Blocks of a stream, written and read."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from rdc.limits import BLOCK_CONTENT_BYTES
from rdc.protocol.wire.stream import (
    BlockReader,
    BlockWriter,
    CompressionLevel,
)

Split = Callable[[bytes], Iterator[bytes]]


def whole(data: bytes) -> Iterator[bytes]:
    yield data


def blocks_of(stream: bytes, compression: CompressionLevel, parts: Split = whole) -> bytes:
    writer = BlockWriter(compression)
    for part in parts(stream):
        writer.write(part)
    writer.flush()
    return writer.take()


def read_all(wire: bytes, split: Split = whole) -> bytes:
    reader = BlockReader()
    found = b""
    for part in split(wire):
        reader.feed(part)
        while (piece := reader.next()) is not None:
            assert 0 < len(piece) <= BLOCK_CONTENT_BYTES
            found += piece
    assert len(reader) == 0
    return found


NOISE = random.Random(1).randbytes(300_000)
TEXT = b"".join(b"line %d of some text\n" % (i % 5000) for i in range(20_000))
