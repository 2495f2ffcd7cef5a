"""Signatures at rest and on the wire, of one stream or of many short ones as columns (FORMAT.md)."""

from __future__ import annotations

import struct
from array import array
from itertools import accumulate
from operator import eq

from rdc.chunking import ChunkParams
from rdc.errors import ProtocolError, RdcError, UsageError
from rdc.kernel import cut_many, node_messages, pack_varints, root_messages, short_references, unpack_varints
from rdc.kernel.blake3_many import equal_parts, name_parts
from rdc.lean.records import Record
from rdc.limits import NODE_RECORDS_MAX, NODE_RECORDS_MIN
from rdc.protocol.wire.fields import encode_varint
from rdc.signature.tree import (
    COUNTS_STRUCT,
    DIGEST_BYTES,
    MAGIC,
    NO_TRAITS,
    NODE_KEY,
    ROOT_KEY,
    RUN_STRUCT,
    SIGNATURE_STRUCT,
    TRAITS_BYTES,
    VERSION,
    Column,
    Level,
    MemoryColumn,
    SignatureTree,
    TreeBuilder,
    one_chunk_tree,
    traits_at,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from typing_extensions import Buffer


# A signature at rest: the encoder, and a decoder that checks everything (FORMAT.md, "A signature at rest").

_BATCH = 4096  # records passed to the builder at a time

SIGNATURE_HEAD = MAGIC + bytes([VERSION])
"""The first bytes of every encoded signature."""

TRAITS_LENGTH_AT = SIGNATURE_STRUCT.size - 1
"""Offset of the byte with the length of the traits (0 or 9), which follow it."""


class SignatureError(RdcError):
    """Bytes that should be a signature are not one, are damaged, or were written by another version."""


def encode_signature(tree: SignatureTree) -> bytes:
    """Encode a signature: 36 bytes per chunk record and about 90 more."""
    return tree.to_bytes()


def decode_signature(data: bytes, column: Callable[[], Column] = MemoryColumn) -> SignatureTree:
    """Decode what `encode_signature` wrote. Raises SignatureError for anything else, before allocating
    memory for it. `column` makes the columns of the tree."""
    # long because it checks stored bytes field by field, each check before the next read
    try:
        magic, version, min_size, max_size, size, traits_bytes = SIGNATURE_STRUCT.unpack_from(data)
        if magic != MAGIC or version != VERSION:
            raise SignatureError(f"expected a signature of version {VERSION}, found {bytes(data[:5])!r}")
        params = ChunkParams(min_size, max_size)
        at = SIGNATURE_STRUCT.size
        if traits_bytes not in (0, TRAITS_BYTES):
            raise SignatureError(f"expected 0 or {TRAITS_BYTES} bytes of traits, found {traits_bytes}")
        traits, at = data[at : at + traits_bytes], at + traits_bytes
        root, at = data[at : at + DIGEST_BYTES], at + DIGEST_BYTES
        records, runs = COUNTS_STRUCT.unpack_from(data, at)
        at += COUNTS_STRUCT.size
    except struct.error as e:
        raise SignatureError(f"a signature cut short: {len(data)} bytes") from e
    except UsageError as e:
        raise SignatureError(f"a signature with impossible parameters: {e}") from e
    expected = at + records * (DIGEST_BYTES + 4) + runs * RUN_STRUCT.size
    if runs > records or len(data) != expected:
        raise SignatureError(
            f"a signature of {records} records and {runs} runs: expected {expected} bytes, found {len(data)}"
        )
    digests = data[at : at + records * DIGEST_BYTES]
    lengths = array("I", data[at + len(digests) : at + len(digests) + records * 4])
    counts = array("Q", [1]) * records
    before = -1
    for record, count in RUN_STRUCT.iter_unpack(data[expected - runs * RUN_STRUCT.size :]):
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
        raise SignatureError(
            "a signature whose records do not lead to its root; it is damaged: create it again"
        )
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


# Signatures of many short streams as columns. rdc.signature.tree.sign defines each; here no object per stream
# is made.


class ShortSignatures(Record):
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
        """Return the traits of one row; b'' for a stream without features."""
        return traits_at(self.traits, row)

    def root_of(self, row: int) -> bytes:
        return self.roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES]

    def tree(self, row: int, first: int) -> SignatureTree:
        """Return the signature of one row, equal to `sign` of the stream. `first`: number of its first
        chunk."""
        end = first + self.counts[row]
        digests = self.digests[first * DIGEST_BYTES : end * DIGEST_BYTES]
        return _tree(self.params, self.lengths[first:end].tolist(), digests, self.traits_of(row))

    def chosen(self, rows: Sequence[int]) -> ShortSignatures:
        """Return the signatures of these rows, which must increase."""
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
    """Sign streams that follow one another in `data`. `sizes`: typecode 'Q', bytes of each. `plain`: without
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
    """Return the root of each stream, DIGEST_BYTES each, from columns as in ShortSignatures."""
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
    """Return the columns of these rows, which must increase: number of items, and each item's length and
    digest."""
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


# Encodes and decodes many short signatures as columns (FORMAT.md, "A signature at rest"). rdc.signature.codec
# defines each.

CHUNKS_MOST = 4096
"""Most chunks of one stream: some hundred kilobytes with the smallest chunks. Longer signatures are decoded
one by one."""


def encode_short(signatures: ShortSignatures) -> list[bytes]:
    """Encode each row as `encode_signature` would encode its tree."""
    # long because it runs once for each file, where calls cost more than the work
    params, digests, roots = signatures.params, signatures.digests, signatures.roots
    lengths = array("I", signatures.lengths).tobytes()
    least, most = params.min_size, params.max_size
    ranks = array("Q", digests)[:: DIGEST_BYTES // 8]
    encoded = []
    at = 0
    for row, (count, size) in enumerate(zip(signatures.counts, signatures.sizes, strict=True)):
        end = at + count
        if count > 1 and any(map(eq, ranks[at:end], ranks[at + 1 : end])):
            encoded.append(encode_signature(signatures.tree(row, at)))
        else:
            traits = traits_at(signatures.traits, row)
            encoded.append(
                b"".join(
                    (
                        SIGNATURE_STRUCT.pack(MAGIC, VERSION, least, most, size, len(traits)),
                        traits,
                        roots[row * DIGEST_BYTES : (row + 1) * DIGEST_BYTES],
                        COUNTS_STRUCT.pack(count, 0),
                        digests[at * DIGEST_BYTES : end * DIGEST_BYTES],
                        lengths[4 * at : 4 * end],
                    )
                )
            )
        at = end
    return encoded


def decode_short(encoded: Sequence[bytes], params: ChunkParams) -> tuple[list[int], ShortSignatures]:
    """Decode the sound signatures with these parameters. Returns their positions in `encoded`, and the
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
    """Return the fields of one encoded signature. Raises ValueError or struct.error if it is none or has too
    many chunks."""
    *head, size, traits_bytes = SIGNATURE_STRUCT.unpack_from(data)
    if head != [MAGIC, VERSION, params.min_size, params.max_size] or traits_bytes not in {0, TRAITS_BYTES}:
        raise ValueError("another format")
    at = SIGNATURE_STRUCT.size + traits_bytes
    traits, root = data[SIGNATURE_STRUCT.size : at], data[at : at + DIGEST_BYTES]
    at += DIGEST_BYTES
    records, runs = COUNTS_STRUCT.unpack_from(data, at)
    at += COUNTS_STRUCT.size
    middle = at + records * DIGEST_BYTES
    end = middle + 4 * records
    if records > CHUNKS_MOST or runs > records or len(data) != end + runs * RUN_STRUCT.size:
        raise ValueError("another length")
    lengths, digests = array("I", data[middle:end]), data[at:middle]
    if runs:
        lengths, digests = _spread(lengths, digests, RUN_STRUCT.iter_unpack(data[end:]))
    if sum(lengths) != size or (lengths and not (min(lengths) > 0 and max(lengths) <= params.max_size)):
        raise ValueError("other lengths")
    return _Fields(size, traits, root, lengths, digests)


def _spread(lengths: array[int], digests: bytes, runs: Iterator[tuple[int, ...]]) -> tuple[array[int], bytes]:
    """Expand runs: repeats each record of a run as often as it counts. Raises ValueError for impossible
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


# Node records on the wire, with short keyed references for digests: FORMAT.md, "Records on the wire".

SHORT_REFERENCE_BYTES = 8
"""Widest keyed reference. A wider reference is the whole digest."""


SHORTEST_REFERENCE_BYTES = 4
CERTAINTY_BITS = 20
"""A false match of two nodes happens in at most one of 2^20 files. Such a file is described again with full
digests."""


def reference_width(size: int, mean: float) -> int:
    """Return the bytes per reference for a file of `size` bytes in chunks of `mean` bytes. With this width,
    two different chunks among as many on each side agree with probability at most 2^-CERTAINTY_BITS."""
    pairs = 2 * (int(size / mean) + 1).bit_length()
    return min(SHORT_REFERENCE_BYTES, max(SHORTEST_REFERENCE_BYTES, -(-(pairs + CERTAINTY_BITS) // 8)))


class NodeRecords(Record):
    """The records of one node, or of a tree's top. Entry i of each column is record `first` + i of the
    level."""

    first: int
    references: tuple[bytes, ...]
    lengths: tuple[int, ...]
    counts: tuple[int, ...]


def reference_column(level: Level, key: bytes, width: int, rows: range | None = None) -> bytes:
    """Return references to the records `rows` of a level (default: all), `width` bytes each.

    Width 1 to 8: SipHash-2-4 of the digest under the session's 16-byte `key`, cut to `width` bytes. Width 32:
    the digest itself.
    """
    digests = level.digests
    if rows is not None:
        digests = digests[rows.start * DIGEST_BYTES : rows.stop * DIGEST_BYTES]
    if width == DIGEST_BYTES:
        return bytes(digests)
    return short_references(key, digests, DIGEST_BYTES, width)


def root_reference(root: bytes, key: bytes, width: int) -> bytes:
    """Return the reference of a root. Up to 8 bytes it is made like those of a level's digests; beyond, it is
    the root's first bytes."""
    return root[:width] if width > SHORT_REFERENCE_BYTES else short_references(key, root, DIGEST_BYTES, width)


def group_references(roots: bytes | bytearray, key: bytes, width: int, group: int) -> bytes:
    """Return references to groups of `group` roots each. `roots` has DIGEST_BYTES per root. With `group` > 1,
    each reference is made of the BLAKE3 digest of the group's roots in order."""
    digests = bytes(roots)
    if group > 1:
        whole, rest = divmod(len(digests), group * DIGEST_BYTES)
        sizes = array("Q", [group * DIGEST_BYTES]) * whole + array("Q", [rest] if rest else [])
        digests = name_parts(digests, sizes)
    if width <= SHORT_REFERENCE_BYTES:
        return short_references(key, digests, DIGEST_BYTES, width)
    return b"".join([digests[at : at + width] for at in range(0, len(digests), DIGEST_BYTES)])


def encode_records(level: Level, rows: range, key: bytes, width: int) -> bytes:
    """Encode the records `rows` of a level for the wire; at most 26."""
    counts = level.counts[rows.start : rows.stop]
    plain = counts.tolist().count(1) == len(rows)
    return b"".join(
        (
            bytes([len(rows) << 1 | (not plain)]),
            encode_varint(rows.start),
            reference_column(level, key, width, rows),
            pack_varints(level.lengths[rows.start : rows.stop]),
            b"" if plain else pack_varints(counts),
        )
    )


def decode_records(data: bytes, width: int, most: int = NODE_RECORDS_MAX) -> NodeRecords:
    """Decode what `encode_records` wrote with the same `width`. Raises ProtocolError for anything else."""
    if not data:
        raise ProtocolError("node records of no bytes")
    records, plain = data[0] >> 1, not data[0] & 1
    if records > most:
        raise ProtocolError(f"a node of {records} records: at most {most} are allowed")
    (first,), at = _varints(data, 1, 1)
    end = at + records * width
    if len(data) < end:
        raise ProtocolError(f"node records cut short: {len(data)} bytes, {records} references of {width}")
    references = tuple(equal_parts(data[at:end], width))
    lengths, at = _varints(data, end, records)
    counts, at = ((1,) * records, at) if plain else _varints(data, at, records)
    if at != len(data) or not all(lengths) or not all(counts):
        raise ProtocolError(f"node records of {len(data)} bytes with a zero or with bytes left over")
    return NodeRecords(first, references, lengths, counts)


def _varints(data: bytes, at: int, number: int) -> tuple[tuple[int, ...], int]:
    try:
        values, at = unpack_varints(data, at, number)
    except ValueError as error:
        raise ProtocolError(f"node records of {len(data)} bytes: {error}") from None
    return tuple(array("Q", values)), at
