"""Polynomials over GF(2) as integers: the mathematics behind the kernel's constants.

Bit i of an integer is the coefficient of x^i; addition is XOR. Source: M. O. Rabin, "Fingerprinting by
Random Polynomials" (1981). rabin.py builds fingerprints and primitive polynomials from these.
"""

from __future__ import annotations


def degree(polynomial: int) -> int:
    """Return the degree of a polynomial; -1 for zero."""
    return polynomial.bit_length() - 1


def multiply(a: int, b: int) -> int:
    """Return the product a * b, not reduced."""
    product = 0
    while b:
        if b & 1:
            product ^= a
        a <<= 1
        b >>= 1
    return product


def remainder(a: int, p: int) -> int:
    """Return a mod p. ValueError for p = 0."""
    if p == 0:
        raise ValueError("division by the zero polynomial")
    k = degree(p)
    while (excess := degree(a) - k) >= 0:
        a ^= p << excess
    return a


def remainder_of_product(a: int, b: int, p: int) -> int:
    """Return a * b mod p."""
    return remainder(multiply(a, b), p)


def power_of_x(n: int, p: int) -> int:
    """Return x^n mod p by repeated squaring: O(log n) products. ValueError for n < 0."""
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
    """Return `bits` in the opposite order: bit i becomes bit width - 1 - i.

    The kernel stores x^(k-1) in the lowest bit, so a little-endian word has its bytes in reading order.
    ValueError for more than `width` bits.
    """
    if bits >> width:
        raise ValueError(f"{bits:#x} has more than {width} bits")
    return int(f"{bits:0{width}b}"[::-1], 2) if width else 0


def byte_table(multiplier: int, p: int) -> tuple[int, ...]:
    """Return b * multiplier mod p for every byte b. A product with a constant becomes one look-up."""
    table = [0] * 256
    for bit in range(8):
        step = remainder_of_product(1 << bit, multiplier, p)
        for low in range(1 << bit):
            table[1 << bit | low] = table[low] ^ step
    return tuple(table)
