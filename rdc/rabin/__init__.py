"""Polynomials over GF(2) and Rabin fingerprints: the mathematics behind the kernel's constants."""

from rdc.rabin.fingerprint import Fingerprint, SlidingWindow, byte_table
from rdc.rabin.polynomial import (
    degree,
    is_irreducible,
    is_primitive,
    multiply,
    power_of_x,
    random_primitive,
    reflect,
    remainder,
    remainder_of_product,
)

__all__ = [
    "Fingerprint",
    "SlidingWindow",
    "byte_table",
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
