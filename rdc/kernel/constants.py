"""Numbers of cut points and traits (rdc/signature/FORMAT.md). A change needs a new parameter version.
rdc/kernel/cut/reference.py has the others, which only the definition needs."""

from __future__ import annotations

LOW_WINDOW = 64
"""Bytes that low() covers: one cache line, eight words for carry-less multiplication."""

TRAIT_COUNT = 12
"""Traits of a file, of six bits each."""

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
    """Return the bijection that turns a window's fingerprint into low(): SplitMix64's output for the state x
    (Steele, Lea, Flood 2014).

    The added constant keeps a window of zeros, whose fingerprint is 0, away from rank 0.
    """
    x = (x + GOLDEN) & _MASK
    x = (x ^ x >> 30) * 0xBF58_476D_1CE4_E5B9 & _MASK
    x = (x ^ x >> 27) * 0x94D0_49BB_1331_11EB & _MASK
    return x ^ x >> 31
