"""Signatures of many short streams as columns. rdc.signature.build.sign defines each; here no object per
stream is made."""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.kernel import cut_many, node_messages, root_messages
from rdc.kernel.blake3_many import name_parts
from rdc.lean.records import dataclass
from rdc.limits.chunks import NODE_RECORDS_MAX, NODE_RECORDS_MIN
from rdc.signature.build import TreeBuilder, one_chunk_tree
from rdc.signature.digests import DIGEST_BYTES, NODE_KEY, ROOT_KEY
from rdc.signature.trait_column import TRAITS_BYTES, traits_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from typing_extensions import Buffer

    from rdc.chunking.params import ChunkParams
    from rdc.signature.tree import SignatureTree

__all__ = ["ShortSignatures", "root_column", "sign_short"]


@dataclass(frozen=True, slots=True)
class ShortSignatures:
    """The signatures of streams, row by row. The chunks of all streams follow one another."""

    params: ChunkParams
    sizes: array[int]
    """Typecode 'Q': bytes of each stream."""
    counts: array[int]
    """Typecode 'I': number of chunks of each stream, repeated ones included."""
    lengths: array[int]
    """Typecode 'Q': length of each chunk."""
    digests: bytes
    """DIGEST_BYTES per chunk."""
    traits: bytes
    """TRAITS_BYTES per stream; NO_TRAITS for a stream without features."""
    roots: bytes
    """DIGEST_BYTES per stream."""

    def __len__(self) -> int:
        return len(self.sizes)

    def traits_of(self, row: int) -> bytes:
        """The traits of one row; b'' for a stream without features."""
        return traits_at(self.traits, row)

    def root_of(self, row: int) -> bytes:
        return self.roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]

    def tree(self, row: int, first: int) -> SignatureTree:
        """The signature of one row, equal to `sign` of the stream. `first`: number of its first chunk."""
        end = first + self.counts[row]
        digests = self.digests[first * DIGEST_BYTES : end * DIGEST_BYTES]
        return _tree(self.params, self.lengths[first:end].tolist(), digests, self.traits_of(row))

    def chosen(self, rows: Sequence[int]) -> ShortSignatures:
        """The signatures of these rows, which must increase."""
        counts, lengths, digests = _items_of(rows, self.counts, self.lengths, self.digests)
        width = TRAITS_BYTES
        return ShortSignatures(
            self.params,
            array("Q", [self.sizes[row] for row in rows]),
            counts,
            lengths,
            digests,
            b"".join([self.traits[row * width : (row + 1) * width] for row in rows]),
            b"".join([self.root_of(row) for row in rows]),
        )


def sign_short(
    data: Buffer, sizes: array[int], params: ChunkParams, *, plain: bool = False
) -> ShortSignatures:
    """Signs streams that follow one another in `data`. `sizes`: typecode 'Q', bytes of each. `plain`: without
    traits, for callers that only compare roots.

    Cutting and hashing release the interpreter's lock, so threads can run this in parallel. Raises ValueError
    if the sizes do not add up to `data`.
    """
    counts, lengths, traits = cut_many(data, sizes, params.min_size, params.max_size, plain)
    of_chunks, of_streams = array("Q", lengths), array("I", counts)
    digests = name_parts(data, of_chunks)
    roots = root_column(params, sizes, of_streams, of_chunks, digests)
    return ShortSignatures(params, sizes, of_streams, of_chunks, digests, traits, roots)


def root_column(
    params: ChunkParams, sizes: array[int], counts: array[int], lengths: array[int], digests: bytes
) -> bytes:
    """The root of each stream, DIGEST_BYTES each, from columns as in ShortSignatures."""
    # The root of a stream whose items are one node is the digest of one short message (FORMAT.md). A length
    # of 0 in the column marks the others. The nodes of all of these are the items of the next level.
    messages, column = root_messages(params.id, sizes, counts, lengths, digests, NODE_RECORDS_MAX, 0)
    message_sizes = array("Q", column)
    roots = name_parts(messages, message_sizes, ROOT_KEY)
    if 0 not in message_sizes:
        return roots
    found, level = bytearray(roots), 0
    rows: Sequence[int] = range(len(sizes))
    while 0 in message_sizes:
        left = [number for number, size in enumerate(message_sizes) if not size]
        if len(left) < len(counts):
            counts, lengths, digests = _items_of(left, counts, lengths, digests)
        rows, sizes = [rows[number] for number in left], array("Q", [sizes[number] for number in left])
        messages, *columns = node_messages(
            level, counts, lengths, digests, NODE_RECORDS_MIN, NODE_RECORDS_MAX
        )
        digests = name_parts(messages, array("Q", columns[0]), NODE_KEY)
        lengths, counts, level = array("Q", columns[1]), array("I", columns[2]), level + 1
        messages, column = root_messages(params.id, sizes, counts, lengths, digests, NODE_RECORDS_MAX, level)
        message_sizes = array("Q", column)
        roots = name_parts(messages, message_sizes, ROOT_KEY)
        for number, row in enumerate(rows):
            if message_sizes[number]:
                root = roots[number * DIGEST_BYTES : (number + 1) * DIGEST_BYTES]
                found[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES] = root
    return bytes(found)


def _items_of(
    rows: Sequence[int], counts: array[int], lengths: array[int], digests: bytes
) -> tuple[array[int], array[int], bytes]:
    """The columns of these rows, which must increase: number of items, and each item's length and digest."""
    starts, width = array("Q", accumulate(counts, initial=0)), DIGEST_BYTES
    chosen = array("Q")
    for row in rows:
        chosen += lengths[starts[row] : starts[row + 1]]
    return (
        array("I", [counts[row] for row in rows]),
        chosen,
        b"".join([digests[starts[row] * width : starts[row + 1] * width] for row in rows]),
    )


def _tree(params: ChunkParams, lengths: list[int], digests: bytes, traits: bytes) -> SignatureTree:
    if len(lengths) == 1:
        return one_chunk_tree(digests, lengths[0], params, traits)
    builder = TreeBuilder(params)
    builder.add([digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)], lengths)
    return builder.finish(traits)
