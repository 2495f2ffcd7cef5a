"""The index of a published store: what a reader far away has to know of its files, signed if there is a key.

    RDCINDX1   of a store that a web server publishes: its snapshots and packs are files beside it
    RDCFILE1   of some snapshots in one file, which has them and their packs after the index

A snapshot is named with its digest and a pack with its directory's, and every chunk has its key. So whoever
trusts an index can take the rest from anybody.
"""

from __future__ import annotations

import struct
from datetime import UTC, datetime

from rdc.errors import TrustError
from rdc.lean.records import Record
from rdc.store.directory import DIRECTORY_BYTES, FIRST_OFFSET, KEY_BYTES, chunks_at_most
from rdc.store.pack_file import BEGIN_BYTES, ID_BYTES, PACK_BYTES_MOST, TRAILER_BYTES, PackEnd
from rdc.store.snapshots import SNAPSHOT_BYTES
from rdc.store.tree_rows import Parts

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from rdc.transport.keys import Certificate

PUBLISHED, CARRIED = b"RDCINDX1", b"RDCFILE1"

INDEX_BYTES = 16 << 20
"""Most bytes of an index: those of 230,000 packs, which are 58 TB."""

CHUNKS_MOST = 20_000_000
"""Most chunks of a store that is read from far away. Its table of keys is in memory."""

SIGNED_MOST = 1 << 13
"""Most bytes of a certificate and a signature."""

_LENGTH = struct.Struct("<I")
_FIXED = struct.Struct("<68sQqII")
"""The head of the store, number and time of the index, snapshots, packs."""
_SNAPSHOT = struct.Struct("<QqI32sB")
"""Number, time, bytes, BLAKE3 of the file, bytes of the series, which is after it."""
_PACK = struct.Struct(f"<{ID_BYTES}sQI32s{BEGIN_BYTES}s")
"""Name, offset, length and digest of the directory, its first bytes."""
_SIGNED = struct.Struct("<HH")
"""Bytes of the certificate and of the signature."""


class PublishedSnapshot(Record):
    """The entry of a snapshot in an index."""

    number: int
    seconds: int
    series: bytes
    size: int
    """Bytes of its file."""
    digest: bytes
    """The BLAKE3 of its file."""


class StoreIndex(Record):
    """The content of an index."""

    magic: bytes
    """PUBLISHED or CARRIED."""
    head: bytes
    """The head of the store."""
    number: int
    """Grows from index to index of a store, at least with the time."""
    seconds: int
    """The time at which it was made, by the clock of its maker."""
    snapshots: tuple[PublishedSnapshot, ...]
    packs: dict[bytes, PackEnd]
    """By name."""


class SignedIndex(Record):
    """An index with its proof."""

    index: StoreIndex
    signed: bytes
    """The bytes that were signed."""
    certificate: bytes
    """DER; b"" if nobody signed."""
    signature: bytes
    size: int
    """Bytes of all that."""


def encode_index(index: StoreIndex, directory: Path | None) -> bytes:
    """Return the bytes of an index. `directory`: of the key that signs it; None: nobody does. Raises
    TrustError."""
    body = bytearray(
        _FIXED.pack(index.head, index.number, index.seconds, len(index.snapshots), len(index.packs))
    )
    for one in index.snapshots:
        body += _SNAPSHOT.pack(one.number, one.seconds, one.size, one.digest, len(one.series)) + one.series
    for name, end in index.packs.items():
        body += _PACK.pack(name, end.offset, end.length, end.digest, end.begin)
    if len(body) > INDEX_BYTES - SIGNED_MOST:
        raise ValueError(f"an index of {len(body)} bytes: expected at most {INDEX_BYTES - SIGNED_MOST}")
    signed = index.magic + _LENGTH.pack(len(body)) + bytes(body)
    certificate, signature = (b"", b"") if directory is None else _sign(signed, directory)
    return signed + _SIGNED.pack(len(certificate), len(signature)) + certificate + signature


def decode_index(data: bytes) -> SignedIndex:
    """Return the index at the beginning of `data`. Raises ValueError for anything that encode_index does not
    write."""
    if not data.startswith((PUBLISHED, CARRIED)):
        raise ValueError(f"{len(data)} bytes that begin with {data[:8]!r}")
    magic, parts = data[:8], Parts(data[8:])
    (length,) = _LENGTH.unpack(parts.take(_LENGTH.size))
    body = Parts(parts.take(length))
    head, number, seconds, snapshots, packs = _FIXED.unpack(body.take(_FIXED.size))
    certificate_bytes, signature_bytes = _SIGNED.unpack(parts.take(_SIGNED.size))
    index = StoreIndex(
        magic,
        head,
        number,
        seconds,
        tuple([_snapshot(body) for _ in range(_count(body, snapshots, _SNAPSHOT.size))]),
        dict([_pack(body) for _ in range(_count(body, packs, _PACK.size))]),
    )
    if body.left or len(index.packs) != packs or len({one.number for one in index.snapshots}) != snapshots:
        raise ValueError("rows that do not add up")
    if sum([chunks_at_most(end.begin) for end in index.packs.values()]) > CHUNKS_MOST:
        raise ValueError(f"a store of more than {CHUNKS_MOST:,} chunks, which is too large to read so")
    certificate, signature = parts.take(certificate_bytes), parts.take(signature_bytes)
    size = len(data) - parts.left
    return SignedIndex(index, data[: 8 + _LENGTH.size + length], certificate, signature, size)


def _count(body: Parts, rows: int, width: int) -> int:
    if rows * width > body.left:
        raise ValueError(f"{rows} rows in {body.left} bytes")
    return rows


def _snapshot(body: Parts) -> PublishedSnapshot:
    number, seconds, size, digest, series = _SNAPSHOT.unpack(body.take(_SNAPSHOT.size))
    if not number or size > SNAPSHOT_BYTES:
        raise ValueError(f"snapshot {number} of {size} bytes")
    return PublishedSnapshot(number, seconds, body.take(series), size, digest)


def _pack(body: Parts) -> tuple[bytes, PackEnd]:
    name, offset, length, digest, begin = _PACK.unpack(body.take(_PACK.size))
    size = offset + length + TRAILER_BYTES
    # What a directory decodes to is bounded with the sum of all; as stored it is hardly longer.
    most = min(DIRECTORY_BYTES, KEY_BYTES * 4 * (chunks_at_most(begin) + 64))
    if offset < FIRST_OFFSET or not 0 < length <= most or size >= PACK_BYTES_MOST:
        raise ValueError(f"pack {name.hex()} with a directory of {length} bytes at {offset}")
    return name, PackEnd(offset, length, digest, size, begin[: min(length, BEGIN_BYTES)])


# Signatures, by the keys of `rdc keys`.


def _sign(data: bytes, directory: Path) -> tuple[bytes, bytes]:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from rdc.transport.keys import Certificate, read_key_file

    path = directory / "identity.pem"
    pem = read_key_file(path, private=True)
    if pem is None:
        return b"", b""
    try:
        key = serialization.load_pem_private_key(pem, None)
    except ValueError as error:
        raise TrustError(f"{path}: cannot read the key: {error}") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise TrustError(f"{path}: expected an Ed25519 key, as rdc keys new makes; found another one")
    return Certificate.from_pem(pem, str(path)).der, key.sign(data)


def check_signature(found: SignedIndex, trusted: Iterable[Certificate], shown: str, advice: str) -> None:
    """Raise TrustError unless one of `trusted` signed an index. `advice`: what else a user can do."""
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    from rdc.transport.keys import pin_of

    if not found.certificate:
        raise TrustError(f"{shown}: expected a signed store, found one without a signature; {advice}")
    if all(one.der != found.certificate for one in trusted):
        raise TrustError(
            f"{shown}: expected a store that a trusted key signed, found {pin_of(found.certificate)};"
            f" compare that with what its owner shows, then rdc keys trust it; {advice}"
        )
    try:
        certificate = x509.load_der_x509_certificate(found.certificate)
        key = certificate.public_key()
        if not isinstance(key, Ed25519PublicKey):
            raise ValueError("no Ed25519 key")
        key.verify(found.signature, found.signed)
    except (ValueError, InvalidSignature) as error:
        raise TrustError(
            f"{shown}: expected the signature of {pin_of(found.certificate)}, found other bytes: the store"
            " was changed on its way, or its files are not of one time; try again later"
        ) from error
    if certificate.not_valid_after_utc < datetime.now(UTC):
        raise TrustError(
            f"{shown}: the key that signed it has expired on {certificate.not_valid_after_utc:%Y-%m-%d}; its"
            f" owner makes a new one with rdc keys new; {advice}"
        )
