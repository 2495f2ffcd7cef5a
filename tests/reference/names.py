"""Keyed SipHash names of digests and paths in plain Python: the definition for keyed.c and
keyed_binding.c."""

from __future__ import annotations

from tests.reference.siphash import siphash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["name_ranks", "short_references"]


def short_references(key: bytes, records: ReadableBuffer, stride: int, width: int) -> bytes:
    """Returns short keyed names of digests: the first `width` bytes of SipHash-2-4 of each record's first 32
    bytes, packed.

    `key` has 16 bytes, `width` is 1 to 8. `records` has records of `stride` >= 32 bytes. ValueError
    otherwise.
    """
    packed = bytes(records)
    if len(key) != 16 or stride < 32 or not 1 <= width <= 8 or len(packed) % stride:
        raise ValueError(
            f"short references: a key of 16 bytes (found {len(key)}), a width of 1 to 8 ({width}), "
            f"records of >= 32 bytes ({stride}) without a rest ({len(packed)} bytes)"
        )
    return b"".join(
        siphash(key, packed[at : at + 32]).to_bytes(8, "little")[:width]
        for at in range(0, len(packed), stride)
    )


def name_ranks(key: ReadableBuffer, names: ReadableBuffer, /) -> bytes:
    """Returns the SipHash-2-4 under `key` of each name in `names`, packed as little-endian 64-bit numbers.

    `key` has 16 bytes. Each name is followed by NUL, which is not hashed. ValueError otherwise. With a secret
    key, nobody else can choose names with particular ranks.
    """
    secret, blob = bytes(key), bytes(names)
    if len(secret) != 16 or (blob and not blob.endswith(b"\0")):
        raise ValueError(
            f"name ranks: a key of 16 bytes (found {len(secret)}), "
            f"names each followed by NUL ({len(blob)} bytes)"
        )
    return b"".join(siphash(secret, name).to_bytes(8, "little") for name in blob.split(b"\0")[:-1])
