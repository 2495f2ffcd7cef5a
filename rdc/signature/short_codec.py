"""Encodes and decodes many short signatures as columns (FORMAT.md, "A signature at rest").
rdc.signature.codec defines each."""

from __future__ import annotations

import struct
from array import array
from operator import eq

from rdc.signature.codec import MAGIC, VERSION, encode_signature
from rdc.signature.digests import DIGEST_BYTES
from rdc.signature.short import ShortSignatures, root_column
from rdc.signature.trait_column import NO_TRAITS, TRAITS_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.chunking.params import ChunkParams

__all__ = ["decode_short", "encode_short"]

_HEAD = struct.Struct("<4sBIIQB")
_COUNTS = struct.Struct("<QQ")
_RUN = struct.Struct("<QQ")

CHUNKS_MOST = 4096
"""Most chunks of one stream: some hundred kilobytes with the smallest chunks. Longer signatures are decoded
one by one."""


def encode_short(signatures: ShortSignatures) -> list[bytes]:
    """Encodes each row as `encode_signature` would encode its tree."""
    params, digests, lengths = signatures.params, signatures.digests, array("I", signatures.lengths)
    ranks = array("Q", digests)[:: DIGEST_BYTES // 8]
    encoded = []
    at = 0
    for row, count in enumerate(signatures.counts):
        end = at + count
        if count > 1 and any(map(eq, ranks[at:end], ranks[at + 1 : end])):
            encoded.append(encode_signature(signatures.tree(row, at)))
        else:
            traits = signatures.traits_of(row)
            size = signatures.sizes[row]
            head = _HEAD.pack(MAGIC, VERSION, params.min_size, params.max_size, size, len(traits))
            own = digests[at * DIGEST_BYTES : end * DIGEST_BYTES], lengths[at:end].tobytes()
            encoded.append(b"".join((head, traits, signatures.root_of(row), _COUNTS.pack(count, 0), *own)))
        at = end
    return encoded


def decode_short(encoded: Sequence[bytes], params: ChunkParams) -> tuple[list[int], ShortSignatures]:
    """Decodes the sound signatures with these parameters. Returns their positions in `encoded`, and the
    signatures. Raises nothing: damaged ones and those with other parameters are left out."""
    good: list[int] = []
    sizes, counts, lengths = array("Q"), array("I"), array("Q")
    digests, traits, roots = [], [], []
    for row, data in enumerate(encoded):
        try:
            found = _fields(data, params)
        except (struct.error, ValueError):
            continue
        good.append(row)
        sizes.append(found.size)
        counts.append(len(found.lengths))
        lengths.extend(found.lengths.tolist())
        digests.append(found.digests)
        traits.append(found.traits or NO_TRAITS)
        roots.append(found.root)
    joined, claimed = b"".join(digests), b"".join(roots)
    computed = root_column(params, sizes, counts, lengths, joined)
    signatures = ShortSignatures(params, sizes, counts, lengths, joined, b"".join(traits), computed)
    if computed == claimed:
        return good, signatures
    # A root differs from its claim: damage that left the fields readable. The recursion ends, since each call
    # has fewer rows.
    sound = [row for number, row in enumerate(good) if signatures.root_of(number) == roots[number]]
    rows, signatures = decode_short([encoded[row] for row in sound], params)
    return [sound[row] for row in rows], signatures


class _Fields:
    __slots__ = ("digests", "lengths", "root", "size", "traits")

    def __init__(self, size: int, traits: bytes, root: bytes, lengths: array[int], digests: bytes) -> None:
        self.size, self.traits, self.root = size, traits, root
        self.lengths, self.digests = lengths, digests


def _fields(data: bytes, params: ChunkParams) -> _Fields:
    """The fields of one encoded signature. Raises ValueError or struct.error if it is none or has too many
    chunks."""
    *head, size, traits_bytes = _HEAD.unpack_from(data)
    if head != [MAGIC, VERSION, params.min_size, params.max_size] or traits_bytes not in {0, TRAITS_BYTES}:
        raise ValueError("another format")
    at = _HEAD.size + traits_bytes
    traits, root = data[_HEAD.size : at], data[at : at + DIGEST_BYTES]
    at += DIGEST_BYTES
    records, runs = _COUNTS.unpack_from(data, at)
    at += _COUNTS.size
    middle = at + records * DIGEST_BYTES
    end = middle + 4 * records
    if records > CHUNKS_MOST or runs > records or len(data) != end + runs * _RUN.size:
        raise ValueError("another length")
    lengths, digests = array("I", data[middle:end]), data[at:middle]
    if runs:
        lengths, digests = _spread(lengths, digests, _RUN.iter_unpack(data[end:]))
    if sum(lengths) != size or (lengths and not (min(lengths) > 0 and max(lengths) <= params.max_size)):
        raise ValueError("other lengths")
    return _Fields(size, traits, root, lengths, digests)


def _spread(lengths: array[int], digests: bytes, runs: Iterator[tuple[int, ...]]) -> tuple[array[int], bytes]:
    """Expands runs: repeats each record of a run as often as it counts. Raises ValueError for impossible
    runs."""
    counts = [1] * len(lengths)
    for record, count in runs:
        if record >= len(counts) or not 1 < count <= CHUNKS_MOST:
            raise ValueError("an impossible run")
        counts[record] = count
    if sum(counts) > CHUNKS_MOST:
        raise ValueError("too many chunks")
    parts = [digests[at : at + DIGEST_BYTES] for at in range(0, len(digests), DIGEST_BYTES)]
    return (
        array("I", [length for length, count in zip(lengths, counts, strict=True) for _ in range(count)]),
        b"".join([part * count for part, count in zip(parts, counts, strict=True)]),
    )
