"""Rabin fingerprints of byte strings: extend, concatenate, slide.

A byte string is a polynomial whose coefficients are its bits, the first byte's highest bit first. There are
two variants of length k = degree(p):

    fingerprint(A) = (x^(8|A|) + A) * x^k  mod p     the leading 1 makes leading zeros count
    window(A)      =              A        mod p     linear: it slides, and it ranks cut points

So fingerprint(A) = (x^(8|A|) + window(A)) * x^k mod p. Sources: Rabin (1981); A. Broder, "Some applications
of Rabin's fingerprinting method" (1993). Neither variant resists an adversary who knows p, and both are
linear. Mix them before ranking or sampling.
"""

from __future__ import annotations

from collections import deque

from rdc.rabin.polynomial import degree, power_of_x, remainder, remainder_of_product
from rdc.records import dataclass, field

__all__ = ["Fingerprint", "SlidingWindow", "byte_table"]


def byte_table(multiplier: int, p: int) -> tuple[int, ...]:
    """Returns b * multiplier mod p for every byte b. A product with a constant becomes one look-up."""
    table = [0] * 256
    for bit in range(8):
        step = remainder_of_product(1 << bit, multiplier, p)
        for low in range(1 << bit):
            table[1 << bit | low] = table[low] ^ step
    return tuple(table)


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Computes fingerprints modulo one polynomial of degree 8 to 64. Use a primitive polynomial."""

    polynomial: int
    degree: int = field(init=False)
    _carry: tuple[int, ...] = field(
        init=False, repr=False
    )  # top byte * x^8, as the fingerprint shifts by one byte

    def __post_init__(self) -> None:
        k = degree(self.polynomial)
        if not 8 <= k <= 64:
            raise ValueError(f"fingerprints have 8 to 64 bits, not {k}")
        object.__setattr__(self, "degree", k)
        object.__setattr__(self, "_carry", byte_table(power_of_x(k, self.polynomial), self.polynomial))

    def window(self, data: bytes) -> int:
        """Returns the linear variant: `data` mod p. Leading zero bytes do not count."""
        return self._append(0, data)

    def fingerprint(self, data: bytes) -> int:
        """Returns the fingerprint proper: a 1 before the data, k zero bits after it."""
        return self.extend(self.empty, data)

    @property
    def empty(self) -> int:
        """The fingerprint of b"": x^k mod p."""
        return power_of_x(self.degree, self.polynomial)

    def extend(self, fingerprint: int, data: bytes) -> int:
        """Returns fingerprint(A + data) from fingerprint(A), with one look-up per byte."""
        mask, shift = (1 << self.degree) - 1, self.degree - 8
        for byte in data:
            # (f + byte * x^shift) * x^8: the byte enters k bits above the end, where the zero bits follow it.
            fingerprint ^= byte << shift
            fingerprint = (fingerprint << 8 & mask) ^ self._carry[fingerprint >> shift]
        return fingerprint

    def concat(self, left: int, right: int, right_length: int) -> int:
        """Returns fingerprint(A + B) from both fingerprints and the length of B in bytes.

        Shifting moves both leading ones to x^(8|B|). The one of B is removed again.
        """
        shift = power_of_x(8 * right_length, self.polynomial)
        moved = remainder_of_product(left, shift, self.polynomial)
        return moved ^ right ^ remainder_of_product(self.empty, shift, self.polynomial)

    def from_window(self, window: int, length: int) -> int:
        """Returns fingerprint(A) from window(A) and the length of A in bytes."""
        one = power_of_x(8 * length, self.polynomial)
        return remainder_of_product(one ^ window, self.empty, self.polynomial)

    def sliding(self, width: int) -> SlidingWindow:
        """Returns a window over the last `width` bytes, all zero at first."""
        return SlidingWindow(self, width)

    def _append(self, window: int, data: bytes) -> int:
        mask, shift = (1 << self.degree) - 1, self.degree - 8
        for byte in data:
            window = (window << 8 & mask) ^ self._carry[window >> shift] ^ byte
        return remainder(window, self.polynomial)


class SlidingWindow:
    """The value of window() over the last `width` bytes, with two look-ups per byte for any width."""

    __slots__ = ("_bytes", "_fingerprint", "_leaving", "value")

    def __init__(self, fingerprint: Fingerprint, width: int) -> None:
        if width < 1:
            raise ValueError(f"a window of {width} bytes")
        p = fingerprint.polynomial
        self._fingerprint = fingerprint
        self._leaving = byte_table(power_of_x(8 * width, p), p)
        self._bytes = deque([0] * width, maxlen=width)
        self.value = 0

    def slide(self, byte: int) -> int:
        """Adds one byte, drops the oldest, and returns the window's fingerprint."""
        leaving = self._bytes[0]
        self._bytes.append(byte)
        self.value = self._fingerprint._append(self.value, bytes((byte,))) ^ self._leaving[leaving]
        return self.value
