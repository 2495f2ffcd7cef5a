"""Signatures of many short streams as columns. rdc.signature.build.sign defines each; here no object per
stream is made."""

from __future__ import annotations

from array import array
from itertools import accumulate

from rdc.kernel import cut_many, root_messages
from rdc.kernel.blake3_many import name_parts
from rdc.limits.chunks import NODE_RECORDS_MAX
from rdc.records import dataclass
from rdc.signature.build import TreeBuilder, one_chunk_tree
from rdc.signature.digests import DIGEST_BYTES, ROOT_KEY
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
        starts = array("Q", accumulate(self.counts, initial=0))
        width, traits = DIGEST_BYTES, TRAITS_BYTES
        lengths = array("Q")
        for row in rows:
            lengths += self.lengths[starts[row] : starts[row + 1]]
        return ShortSignatures(
            self.params,
            array("Q", [self.sizes[row] for row in rows]),
            array("I", [self.counts[row] for row in rows]),
            lengths,
            b"".join([self.digests[starts[row] * width : starts[row + 1] * width] for row in rows]),
            b"".join([self.traits[row * traits : (row + 1) * traits] for row in rows]),
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
    # A stream of few chunks has one level, and its root is the digest of one short message (FORMAT.md). A
    # length of 0 in the column marks a stream with more levels.
    messages, column = root_messages(params.id, sizes, counts, lengths, digests, NODE_RECORDS_MAX)
    message_sizes = array("Q", column)
    roots = name_parts(messages, message_sizes, ROOT_KEY)
    if 0 not in message_sizes:
        return roots
    found, firsts = bytearray(roots), array("Q", accumulate(counts, initial=0))
    for row, length in enumerate(message_sizes):
        if not length:
            at, end = firsts[row], firsts[row + 1]
            own = digests[at * DIGEST_BYTES : end * DIGEST_BYTES]
            tree = _tree(params, lengths[at:end].tolist(), own, b"")
            found[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES] = tree.root
    return bytes(found)


def _tree(params: ChunkParams, lengths: list[int], digests: bytes, traits: bytes) -> SignatureTree:
    if len(lengths) == 1:
        return one_chunk_tree(digests, lengths[0], params, traits)
    builder = TreeBuilder(params)
    builder.add([digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)], lengths)
    return builder.finish(traits)
