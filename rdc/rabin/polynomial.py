"""Polynomials over GF(2) as integers: arithmetic, irreducibility, primitivity, a random primitive polynomial.

Bit i of an integer is the coefficient of x^i; addition is XOR. Source: M. O. Rabin, "Fingerprinting by
Random Polynomials" (1981); R. Lidl and H. Niederreiter, "Finite Fields", for primitivity.
"""

from __future__ import annotations

from collections.abc import Callable

__all__ = [
    "degree",
    "is_irreducible",
    "is_primitive",
    "multiply",
    "power_of_x",
    "random_primitive",
    "reflect",
    "remainder",
    "remainder_of_product",
]

# 2^64 - 1 is the only order needed beyond the reach of trial division.
_FACTORS_OF_MERSENNE_64 = (3, 5, 17, 257, 641, 65537, 6700417)
_TRIAL_DEGREE = 40  # trial division of 2^40 - 1 takes 2^20 steps at worst


def degree(polynomial: int) -> int:
    """Returns the degree of a polynomial; -1 for zero."""
    return polynomial.bit_length() - 1


def multiply(a: int, b: int) -> int:
    """Returns the product a * b, not reduced."""
    product = 0
    while b:
        if b & 1:
            product ^= a
        a <<= 1
        b >>= 1
    return product


def remainder(a: int, p: int) -> int:
    """Returns a mod p. ValueError for p = 0."""
    if p == 0:
        raise ValueError("division by the zero polynomial")
    k = degree(p)
    while (excess := degree(a) - k) >= 0:
        a ^= p << excess
    return a


def remainder_of_product(a: int, b: int, p: int) -> int:
    """Returns a * b mod p."""
    return remainder(multiply(a, b), p)


def power_of_x(n: int, p: int) -> int:
    """Returns x^n mod p by repeated squaring: O(log n) products. ValueError for n < 0."""
    if n < 0:
        raise ValueError(f"x^{n} is no polynomial")
    result, square = remainder(1, p), remainder(2, p)
    while n:
        if n & 1:
            result = remainder_of_product(result, square, p)
        square = remainder_of_product(square, square, p)
        n >>= 1
    return result


def reflect(bits: int, width: int) -> int:
    """Returns `bits` in the opposite order: bit i becomes bit width - 1 - i.

    The kernel stores x^(k-1) in the lowest bit, so a little-endian word has its bytes in reading order.
    ValueError for more than `width` bits.
    """
    if bits >> width:
        raise ValueError(f"{bits:#x} has more than {width} bits")
    return int(f"{bits:0{width}b}"[::-1], 2) if width else 0


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
