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


def text_ranks(text: ReadableBuffer, digests: ReadableBuffer, /) -> bytes:
    """Returns the ranks of all names of a manifest's text: for each directory NUL, its path, NUL, then its
    names, each followed by NUL.

    The key of a directory's names is the first half of its digest of 32 bytes. ValueError if the text is
    none, or has another number of directories.
    """
    blob, keys = bytes(text), bytes(digests)
    at, ranks, refused = 0, [], ValueError("text ranks: a digest of 32 bytes for each directory")
    if len(keys) % 32 or (blob and blob[-1]):
        raise refused
    for start in range(0, len(keys), 32):
        end = blob.find(b"\0", at + 1)
        if end < 0 or blob[at]:
            raise refused
        stop = blob.find(b"\0\0", end)
        at = stop + 1 if stop > end else len(blob) if stop < 0 else end + 1
        ranks.append(name_ranks(keys[start : start + 16], blob[end + 1 : at]))
    if at != len(blob):
        raise refused
    return b"".join(ranks)
