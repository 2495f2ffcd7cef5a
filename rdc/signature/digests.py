"""The keyed digests of nodes and roots. Each has its own key, so a node's digest can never equal a chunk's or
root's."""

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
    """The digest of a node whose records lie on `level`. Columns: digests, and lengths and counts as
    little-endian u64."""
    # One call: a node has at most 1,248 bytes, and calls cost more than hashing them.
    return blake3(b"".join((bytes([level]), digests, lengths, counts)), key=NODE_KEY).digest()


def root_digest(
    params_id: bytes, size: int, height: int, digests: Buffer, lengths: Buffer, counts: Buffer
) -> bytes:
    """The digest of a whole file: parameters, length in bytes, levels above the chunk list, and the top
    level's columns."""
    head = params_id + size.to_bytes(8, "little") + bytes([height])
    return blake3(b"".join((head, digests, lengths, counts)), key=ROOT_KEY).digest()
