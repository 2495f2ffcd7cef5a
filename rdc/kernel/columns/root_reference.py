"""The input of the root digests of short streams in plain Python: the definition for root_messages.c."""

from __future__ import annotations

from array import array
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["root_messages"]

DIGEST_BYTES = 32


def root_messages(
    head: Buffer, sizes: Buffer, counts: Buffer, lengths: Buffer, digests: Buffer, most: int, /
) -> tuple[bytes, bytes]:
    """Returns the messages of streams one after another, and a column of their lengths in bytes (native 64
    bits).

    Columns per stream: sizes (native 64 bits), number of chunks (native 32 bits). Columns per chunk: lengths
    (native 64 bits), digests of 32 bytes. A stream has a message if it has at most `most` chunks and no two
    neighbours have the same digest; then its chunks are one node. The message is that of signature/FORMAT.md:
    `head`, the size, a zero byte, the digests, the lengths, and the number 1 per chunk, each number in 8
    bytes. Other streams get b"". ValueError if columns do not fit together.
    """
    try:
        of_streams, of_chunks = array("Q", bytes(sizes)), array("Q", bytes(lengths))
        chunks = array("I", bytes(counts))
    except ValueError:
        of_streams, of_chunks, chunks = array("Q"), array("Q"), array("I", [1])
    names, begin = bytes(digests), bytes(head)
    fits = (len(chunks), sum(chunks), len(names)) == (
        len(of_streams),
        len(of_chunks),
        len(of_chunks) * DIGEST_BYTES,
    )
    if most < 0 or not fits:
        raise ValueError("root messages: columns of streams and of their chunks that fit together")
    messages, at = [], 0
    for size, count in zip(of_streams, chunks, strict=True):
        own = [names[DIGEST_BYTES * row : DIGEST_BYTES * (row + 1)] for row in range(at, at + count)]
        if count <= most and all(before != after for before, after in pairwise(own)):
            numbers = [length.to_bytes(8, "little") for length in of_chunks[at : at + count]]
            ones = (1).to_bytes(8, "little") * count
            messages.append(b"".join((begin, size.to_bytes(8, "little"), b"\0", *own, *numbers, ones)))
        else:
            messages.append(b"")
        at += count
    return b"".join(messages), array("Q", map(len, messages)).tobytes()
