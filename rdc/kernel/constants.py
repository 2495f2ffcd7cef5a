"""The numbers that define cut points and traits (rdc/signature/FORMAT.md). A change needs a new parameter
version."""

from __future__ import annotations

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
