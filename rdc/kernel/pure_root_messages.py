"""What the roots of short streams are the digests of, as plain loops: the truth for root_messages.c."""

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
    """The messages of streams one behind another, and a column of their bytes, native 64-bit numbers.

    Columns: native 64-bit sizes and 32-bit numbers of chunks, one a stream; native 64-bit lengths and
    digests of 32 bytes, one a chunk. A stream whose chunks are one node, at most `most` and no two neighbours
    with one digest, has the message in signature/FORMAT.md: `head`, its size, a zero, the digests, the
    lengths, and as often the number 1, each number in 8 bytes. Others have none: b"". ValueError where
    columns do not fit together.
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
