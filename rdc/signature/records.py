"""Node records on the wire, with short keyed references for digests: FORMAT.md, "Records on the wire"."""

from __future__ import annotations

from array import array

from rdc.errors import ProtocolError
from rdc.kernel import pack_varints, short_references, unpack_varints
from rdc.kernel.blake3_many import name_parts
from rdc.lean.records import dataclass
from rdc.limits.chunks import NODE_RECORDS_MAX
from rdc.protocol.wire.integers import encode_varint
from rdc.signature.digests import DIGEST_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.signature.tree import Level

__all__ = [
    "SHORT_REFERENCE_BYTES",
    "NodeRecords",
    "decode_records",
    "encode_records",
    "group_references",
    "reference_column",
    "reference_width",
    "root_reference",
]

SHORT_REFERENCE_BYTES = 8
"""Widest keyed reference. A wider reference is the whole digest."""


SHORTEST_REFERENCE_BYTES = 4
CERTAINTY_BITS = 20
"""A false match of two nodes happens in at most one of 2^20 files. Such a file is described again with full
digests."""


def reference_width(size: int, mean: float) -> int:
    """Bytes per reference for a file of `size` bytes in chunks of `mean` bytes. With this width, two
    different chunks among as many on each side agree with probability at most 2^-CERTAINTY_BITS."""
    pairs = 2 * (int(size / mean) + 1).bit_length()
    return min(SHORT_REFERENCE_BYTES, max(SHORTEST_REFERENCE_BYTES, -(-(pairs + CERTAINTY_BITS) // 8)))


@dataclass(frozen=True, slots=True)
class NodeRecords:
    """The records of one node, or of a tree's top. Entry i of each column is record `first` + i of the
    level."""

    first: int
    references: tuple[bytes, ...]
    lengths: tuple[int, ...]
    counts: tuple[int, ...]


def reference_column(level: Level, key: bytes, width: int, rows: range | None = None) -> bytes:
    """References of the records `rows` of a level (default: all), `width` bytes each.

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
    """The reference of a root. Up to 8 bytes it is made like those of a level's digests; beyond, it is the
    root's first bytes."""
    return root[:width] if width > SHORT_REFERENCE_BYTES else short_references(key, root, DIGEST_BYTES, width)


def group_references(roots: bytes | bytearray, key: bytes, width: int, group: int) -> bytes:
    """References of groups of `group` roots each. `roots` has DIGEST_BYTES per root. With `group` > 1, each
    reference is made of the BLAKE3 digest of the group's roots in order."""
    digests = bytes(roots)
    if group > 1:
        whole, rest = divmod(len(digests), group * DIGEST_BYTES)
        sizes = array("Q", [group * DIGEST_BYTES]) * whole + array("Q", [rest] if rest else [])
        digests = name_parts(digests, sizes)
    if width <= SHORT_REFERENCE_BYTES:
        return short_references(key, digests, DIGEST_BYTES, width)
    return b"".join([digests[at : at + width] for at in range(0, len(digests), DIGEST_BYTES)])


def encode_records(level: Level, rows: range, key: bytes, width: int) -> bytes:
    """Encodes the records `rows` of a level for the wire; at most 26."""
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


def decode_records(data: bytes, width: int) -> NodeRecords:
    """Decodes what `encode_records` wrote with the same `width`. Raises ProtocolError for anything else."""
    if not data:
        raise ProtocolError("node records of no bytes")
    records, plain = data[0] >> 1, not data[0] & 1
    if records > NODE_RECORDS_MAX:
        raise ProtocolError(f"a node of {records} records: at most {NODE_RECORDS_MAX} are allowed")
    (first,), at = _varints(data, 1, 1)
    end = at + records * width
    if len(data) < end:
        raise ProtocolError(f"node records cut short: {len(data)} bytes, {records} references of {width}")
    references = tuple([data[i : i + width] for i in range(at, end, width)])
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
