"""SipHash-2-4 in plain Python: the definition for sip.h."""

from __future__ import annotations

import struct

__all__ = ["siphash"]

_MASK = (1 << 64) - 1


def _rotate(x: int, by: int) -> int:
    return (x << by | x >> 64 - by) & _MASK


def siphash(key: bytes, message: bytes) -> int:
    """Returns SipHash-2-4 of `message` (Aumasson, Bernstein 2012). `key` has 16 bytes."""
    k0: int
    k1: int
    k0, k1 = struct.unpack("<2Q", key)
    v0, v1 = k0 ^ 0x736F_6D65_7073_6575, k1 ^ 0x646F_7261_6E64_6F6D
    v2, v3 = k0 ^ 0x6C79_6765_6E65_7261, k1 ^ 0x7465_6462_7974_6573

    def rounds(count: int) -> None:
        nonlocal v0, v1, v2, v3
        for _ in range(count):
            v0, v2 = (v0 + v1) & _MASK, (v2 + v3) & _MASK
            v1, v3 = _rotate(v1, 13) ^ v0, _rotate(v3, 16) ^ v2
            v0 = _rotate(v0, 32)
            v2, v0 = (v2 + v1) & _MASK, (v0 + v3) & _MASK
            v1, v3 = _rotate(v1, 17) ^ v2, _rotate(v3, 21) ^ v0
            v2 = _rotate(v2, 32)

    whole = len(message) // 8
    words = struct.unpack_from(f"<{whole}Q", message)
    # The last word has the remaining bytes of the message, with its length in the highest byte.
    last = int.from_bytes(message[8 * whole :], "little") | (len(message) & 0xFF) << 56
    for word in (*words, last):
        v3 ^= word
        rounds(2)
        v0 ^= word
    v2 ^= 0xFF
    rounds(4)
    return v0 ^ v1 ^ v2 ^ v3
