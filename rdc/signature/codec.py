"""A signature at rest: the encoder, and a decoder that checks everything (FORMAT.md, "A signature at
rest")."""

from __future__ import annotations

import struct
from array import array

from rdc.chunking.params import ChunkParams
from rdc.errors import RdcError, UsageError
from rdc.signature.build import MemoryColumn, TreeBuilder, one_chunk_tree
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.trait_column import TRAITS_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from rdc.signature.build import Column
    from rdc.signature.tree import SignatureTree

__all__ = ["SIGNATURE_HEAD", "TRAITS_LENGTH_AT", "SignatureError", "decode_signature", "encode_signature"]

_HEAD = struct.Struct("<4sBIIQB")
_COUNTS = struct.Struct("<QQ")
_RUN = struct.Struct("<QQ")
_BATCH = 4096  # records passed to the builder at a time

MAGIC = b"RDCS"
VERSION = 1

SIGNATURE_HEAD = MAGIC + bytes([VERSION])
"""The first bytes of every encoded signature."""

TRAITS_LENGTH_AT = _HEAD.size - 1
"""Offset of the byte with the length of the traits (0 or 9), which follow it."""


class SignatureError(RdcError):
    """Bytes that should be a signature are not one, are damaged, or were written by another version."""


def encode_signature(tree: SignatureTree) -> bytes:
    """Encodes a signature: 36 bytes per chunk record and about 90 more."""
    level = tree.levels[0]
    runs = [(i, count) for i, count in enumerate(level.counts) if count > 1]
    params = tree.params
    return b"".join(
        (
            _HEAD.pack(MAGIC, VERSION, params.min_size, params.max_size, tree.size, len(tree.traits)),
            tree.traits,
            tree.root,
            _COUNTS.pack(level.records, len(runs)),
            level.digests,
            array("I", level.lengths),
            *(_RUN.pack(record, count) for record, count in runs),
        )
    )


def decode_signature(data: bytes, column: Callable[[], Column] = MemoryColumn) -> SignatureTree:
    """Decodes what `encode_signature` wrote. Raises SignatureError for anything else, before allocating
    memory for it. `column` makes the columns of the tree."""
    # long because it checks stored bytes field by field, each check before the next read
    try:
        magic, version, min_size, max_size, size, traits_bytes = _HEAD.unpack_from(data)
        if magic != MAGIC or version != VERSION:
            raise SignatureError(f"expected a signature of version {VERSION}, found {bytes(data[:5])!r}")
        params = ChunkParams(min_size, max_size)
        at = _HEAD.size
        if traits_bytes not in (0, TRAITS_BYTES):
            raise SignatureError(f"expected 0 or {TRAITS_BYTES} bytes of traits, found {traits_bytes}")
        traits, at = data[at : at + traits_bytes], at + traits_bytes
        root, at = data[at : at + DIGEST_BYTES], at + DIGEST_BYTES
        records, runs = _COUNTS.unpack_from(data, at)
        at += _COUNTS.size
    except struct.error as e:
        raise SignatureError(f"a signature cut short: {len(data)} bytes") from e
    except UsageError as e:
        raise SignatureError(f"a signature with impossible parameters: {e}") from e
    expected = at + records * (DIGEST_BYTES + 4) + runs * _RUN.size
    if runs > records or len(data) != expected:
        raise SignatureError(
            f"a signature of {records} records and {runs} runs: expected {expected} bytes, found {len(data)}"
        )
    digests = data[at : at + records * DIGEST_BYTES]
    lengths = array("I", data[at + len(digests) : at + len(digests) + records * 4])
    counts = array("Q", [1]) * records
    before = -1
    for record, count in _RUN.iter_unpack(data[expected - runs * _RUN.size :]):
        if not before < record < records or count < 2:
            raise SignatureError(f"run of {count} at record {record} of {records}, after record {before}")
        counts[record] = count
        before = record
    total = sum(map(int.__mul__, lengths, counts))
    if total != size or (records and not (min(lengths) > 0 and max(lengths) <= params.max_size)):
        raise SignatureError(
            f"a signature of {size} bytes whose chunks add up to {total} or have impossible lengths"
        )
    tree = _build(params, digests, lengths, counts, traits, column)
    if tree.root != root or tree.levels[0].records != records:
        raise SignatureError("a signature whose records do not lead to its root; it is damaged: make it anew")
    return tree


def _build(
    params: ChunkParams,
    digests: bytes,
    lengths: array[int],
    counts: array[int],
    traits: bytes,
    column: Callable[[], Column],
) -> SignatureTree:
    if len(lengths) == 1 and counts[0] == 1:
        return one_chunk_tree(digests, lengths[0], params, traits)
    builder = TreeBuilder(params, column)
    for start in range(0, len(lengths), _BATCH):
        stop = min(start + _BATCH, len(lengths))
        names = [digests[i * DIGEST_BYTES : (i + 1) * DIGEST_BYTES] for i in range(start, stop)]
        if all(count == 1 for count in counts[start:stop]):
            builder.add(names, lengths[start:stop].tolist())
        else:
            for name, length, count in zip(names, lengths[start:stop], counts[start:stop], strict=True):
                builder.repeat(name, length, count)
    return builder.finish(traits)
