"""The numbers that define cut points and traits (rdc/signature/FORMAT.md). A change needs a new parameter
version."""

from __future__ import annotations

from collections.abc import Sequence

LEAD_WINDOW = 16
"""Bytes that lead() covers: four doublings of one byte."""

LOW_WINDOW = 64
"""Bytes that low() covers: one cache line, eight words for carry-less multiplication."""

QUIET_BYTES = b"\x00\xff \t\n-=*#"
"""Bytes that real files repeat at length. A constant run of one of them should not look like a cut point."""

LEAD_POLYNOMIAL = 0x1F5
LEAD_CONSTANT = 0xE6
"""Chosen among the 16 primitive polynomials of degree 8 and 256 constants. The pair maximizes the smallest
lead over constant runs of QUIET_BYTES (123), and then the sum of these leads."""

LOW_POLYNOMIAL = 0x1_AAE3_F5FB_0075_F2E7
"""The first primitive polynomial 1 << 64 | h << 1 | 1 for N = 0, 1, ... Here h is the first 8 bytes,
big-endian and without their top bit, of SHA-256("rdc cuts v1 N"). Nothing was chosen by hand."""

TRAIT_COUNT = 12
TRAIT_MULTIPLIERS = (0xDFDB_F662_66B8_0725, 0xF965_FB12_67BC_8179, 0xC7DC_6D47_F2E2_8AEB)
"""The first 8 bytes, big-endian, of SHA-256("rdc traits v1 N"), N = 0, 1, 2, made odd."""

LEAD_FEW = 4
FEW_FEATURES_BELOW = 65_536
"""A shorter stream uses windows with lead < 4 as features: one position in 64 instead of 256."""

WINDOW_BYTES = 32
"""Bytes of a window by which two files are compared. No format depends on it."""

SKETCH_BYTES = 32
"""Bytes of a file's sketch, a sample each. No format depends on it."""

GOLDEN = 0x9E37_79B9_7F4A_7C15
"""2^64 divided by the golden ratio, odd. It is the step of SplitMix64 and the step between traits."""

_MASK = (1 << 64) - 1


def mix(x: int) -> int:
    """The bijection that turns a window's fingerprint into low(): SplitMix64's output for the state x
    (Steele, Lea, Flood 2014).

    The added constant keeps a window of zeros, whose fingerprint is 0, away from rank 0.
    """
    x = (x + GOLDEN) & _MASK
    x = (x ^ x >> 30) * 0xBF58_476D_1CE4_E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D0_49BB_1331_11EB & _MASK
    return x ^ x >> 31


def trait_mix(x: int) -> int:
    """The bijection that reduces a sample to a trait: MurmurHash3's 64-bit finaliser (Appleby)."""
    x = (x ^ x >> 33) * 0xFF51_AFD7_ED55_8CCD & _MASK
    x = (x ^ x >> 33) * 0xC4CE_B9FE_1A85_EC53 & _MASK
    return x ^ x >> 33


def reflected_table(polynomial: int, exponent: int) -> tuple[int, ...]:
    """Returns b * x^exponent mod polynomial for every byte b. Bytes and results have the kernel's bit
    order."""
    from rdc.rabin import byte_table, power_of_x, reflect  # most callers need no table

    k = polynomial.bit_length() - 1
    table = byte_table(power_of_x(exponent, polynomial), polynomial)
    return tuple(reflect(table[reflect(byte, 8)], k) for byte in range(256))


def bit_matrix(table: Sequence[int]) -> int:
    """Returns a linear map of bytes as the 8 x 8 bit matrix for GF2P8AFFINEQB: row i is byte 7 - i."""
    rows = [sum((table[1 << j] >> i & 1) << j for j in range(8)) for i in range(8)]
    return int.from_bytes(bytes(reversed(rows)), "little")


def fold_multipliers() -> list[int]:
    """Returns x^(64 (7 - j) + 63) for the words j = 0 .. 7 of a window.

    A carry-less product of reflected words is the product times x in 128 reflected bits. The reduction
    divides by x^64. Hence 63.
    """
    from rdc.rabin import power_of_x, reflect

    return [reflect(power_of_x(64 * (7 - j) + 63, LOW_POLYNOMIAL), 64) for j in range(8)]


def reduction_multipliers() -> tuple[int, int]:
    """Returns (1/P - 1)/x and (P - x^64 - 1)/x modulo x^64, where P is the low polynomial: Montgomery's
    reduction.

    Let V = H x^64 + L have a degree < 128, and let m = L / P mod x^64. Then V + m P is divisible by x^64, and
    the quotient H + m + floor(m (P - x^64) / x^64) is V x^-64 mod P. Both factors have the constant term 1.
    It is removed here and added back as an XOR. The product's own factor x makes up for the division by x.
    """
    from rdc.rabin import multiply, reflect

    inverse = 1
    for _ in range(6):  # Newton: 1/P modulo x^2, x^4, ..., x^64; each step doubles the precision
        inverse = multiply(multiply(inverse, inverse), LOW_POLYNOMIAL) & _MASK
    return reflect(inverse >> 1, 64), reflect((LOW_POLYNOMIAL & _MASK) >> 1, 64)
