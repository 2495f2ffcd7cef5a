"""The windows of a content as numbers in plain Python: the definition for windows.c."""

from __future__ import annotations

from array import array

from rdc.kernel.constants import GOLDEN, SKETCH_BYTES, WINDOW_BYTES, mix
from tests.reference.number_column import number_column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["shared_numbers", "window_hashes", "window_sketch"]

_WORDS = tuple(mix(byte) for byte in range(256))
_MASK = (1 << 64) - 1


def window_hashes(data: ReadableBuffer, last: int, /) -> bytes:
    """The hashes (u64, native) of all windows of 32 bytes that are at most `last`, in their order in `data`.

    The fingerprint of a window is the exclusive or of a word for each byte, rotated by the byte's distance
    from the end: a cyclic polynomial (Cohen, "Recursive Hashing Functions for n-Grams", 1997). The hash is
    its product with GOLDEN, the upper half added to the lower one by exclusive or.
    """
    content = bytes(memoryview(data).cast("B"))
    hashes = (_hash(content[at : at + WINDOW_BYTES]) for at in range(len(content) - WINDOW_BYTES + 1))
    return array("Q", [number for number in hashes if number <= last]).tobytes()


def window_sketch(data: ReadableBuffer, /) -> bytes:
    """32 min-wise samples of all windows, a byte each: samples of two contents agree nearly as often as their
    windows resemble.

    Sample b is made of the 8 bits above the lowest 5 of the smallest hash whose lowest 5 bits are b; 0
    without one.
    """
    smallest: dict[int, int] = {}
    for number in number_column("Q", window_hashes(data, _MASK)):
        if number != _MASK:
            smallest[number % SKETCH_BYTES] = min(number, smallest.get(number % SKETCH_BYTES, _MASK))
    return bytes([smallest.get(sample, 0) >> 5 & 255 for sample in range(SKETCH_BYTES)])


def shared_numbers(first: ReadableBuffer, second: ReadableBuffer, /) -> int:
    """How many numbers two columns (u64, native) have in common. Both must ascend, without repeated numbers;
    ValueError for an incomplete number."""
    return len(set(number_column("Q", first)) & set(number_column("Q", second)))


def _hash(window: bytes) -> int:
    fingerprint = 0
    for byte in window:
        fingerprint = (fingerprint << 1 | fingerprint >> 63) & _MASK ^ _WORDS[byte]
    product = fingerprint * GOLDEN & _MASK
    return product ^ product >> 32
