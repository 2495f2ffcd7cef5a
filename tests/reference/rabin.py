"""Rabin fingerprints of byte strings: extend, concatenate, slide; and the polynomials that suit them.

A byte string is a polynomial whose coefficients are its bits, the first byte's highest bit first. There are
two variants of length k = degree(p):

    fingerprint(A) = (x^(8|A|) + A) * x^k  mod p     the leading 1 makes leading zeros count
    window(A)      =              A        mod p     linear: it slides, and it ranks cut points

So fingerprint(A) = (x^(8|A|) + window(A)) * x^k mod p. Sources: Rabin (1981); A. Broder, "Some applications
of Rabin's fingerprinting method" (1993); for primitivity R. Lidl and H. Niederreiter, "Finite Fields".
Neither variant resists an adversary who knows p, and both are linear. Mix them before ranking or sampling.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from rdc.lean.records import Record, field
from rdc.rabin import byte_table, degree, power_of_x, remainder, remainder_of_product


class Fingerprint(Record):
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


# 2^64 - 1 is the only order needed beyond the reach of trial division.
_FACTORS_OF_MERSENNE_64 = (3, 5, 17, 257, 641, 65537, 6700417)
_TRIAL_DEGREE = 40  # trial division of 2^40 - 1 takes 2^20 steps at worst


def _prime_factors(n: int) -> set[int]:
    factors, q = set(), 2
    while q * q <= n:
        while n % q == 0:
            factors.add(q)
            n //= q
        q += 1
    if n > 1:
        factors.add(n)
    return factors


def _factors_of_order(k: int) -> tuple[int, ...]:
    if k == 64:
        return _FACTORS_OF_MERSENNE_64
    if not 1 <= k <= _TRIAL_DEGREE:
        raise ValueError(f"degree {k}: primitivity is known here for degrees 1 to {_TRIAL_DEGREE} and 64")
    return tuple(sorted(_prime_factors((1 << k) - 1)))


def _coprime(a: int, b: int) -> bool:
    while b:
        a, b = b, remainder(a, b)
    return a == 1


def is_irreducible(p: int) -> bool:
    """Returns whether only 1 and p itself divide p.

    x^(2^i) - x is the product of all irreducible polynomials whose degrees divide i. So a reducible p has a
    common factor with one of them for some i up to half of p's degree, mostly for a small i (M. Ben-Or,
    "Probabilistic Algorithms in Finite Fields", 1981).
    """
    power = 2
    for _ in range(degree(p) // 2):
        # The coefficients of a square are those of its root, with a zero before each.
        power = remainder(int(f"{power:b}", 4), p)
        if not _coprime(p, power ^ 2):
            return False
    return degree(p) >= 1


def is_primitive(p: int) -> bool:
    """Returns whether x generates every non-zero residue modulo p.

    If x^(2^k - 1) = 1, then the order of x divides 2^k - 1. If no x^((2^k - 1)/q) is 1, it is no proper
    divisor. An order of 2^k - 1 leaves no room for zero divisors, so p is irreducible as well. ValueError for
    degrees other than 1 to 40 and 64: this module cannot factor their orders.
    """
    k = degree(p)
    factors = _factors_of_order(k)
    if not p & 1:
        return False
    order = (1 << k) - 1
    if power_of_x(order, p) != remainder(1, p):
        return False
    return k == 1 or all(power_of_x(order // q, p) != 1 for q in factors)


def random_primitive(k: int, random_bits: Callable[[int], int]) -> int:
    """Returns a uniformly random primitive polynomial of degree k.

    `random_bits(n)` returns n random bits as an integer, like `random.Random.getrandbits`. About one
    candidate in k is primitive, so about k candidates are tried. ValueError as for `is_primitive`.
    """
    _factors_of_order(k)
    while True:
        candidate = 1 << k | (random_bits(k - 1) << 1 if k > 1 else 0) | 1
        if is_primitive(candidate):
            return candidate
