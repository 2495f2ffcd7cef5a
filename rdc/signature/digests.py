"""The keyed digests of nodes and roots: one key each, so that no node can pass for a chunk or a root."""

from __future__ import annotations

from blake3 import blake3

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = ["DIGEST_BYTES", "node_digest", "root_digest"]

DIGEST_BYTES = 32

NODE_KEY = blake3(b"rdc 1 signature node").digest()
ROOT_KEY = blake3(b"rdc 1 signature root").digest()


def node_digest(level: int, digests: Buffer, lengths: Buffer, counts: Buffer) -> bytes:
    """Name of a node whose records lie on `level`: its columns, lengths and counts as little-endian u64."""
    return _over_columns(NODE_KEY, bytes([level]), digests, lengths, counts)


def root_digest(
    params_id: bytes, size: int, height: int, digests: Buffer, lengths: Buffer, counts: Buffer
) -> bytes:
    """Name of a whole file: parameters, length in bytes, levels above the chunk list, top level's columns."""
    head = params_id + size.to_bytes(8, "little") + bytes([height])
    return _over_columns(ROOT_KEY, head, digests, lengths, counts)


def _over_columns(key: bytes, head: bytes, *columns: Buffer) -> bytes:
    # One call: a node has 1,248 bytes at most, and calls cost more than hashing them.
    return blake3(b"".join((head, *columns)), key=key).digest()
