"""Draws: random numbers from a seed, and a logarithm, that are the same on every machine and every version of
Python.

Both need IEEE 754 doubles and only + - * / and square roots of them, in the order that is written here. The
logarithms of C libraries differ in the last bit.
"""

from __future__ import annotations

import math

from rdc.kernel.constants import mix

__all__ = ["Draws", "logarithm"]

_LN2 = 0.6931471805599453
_ROOT_HALF = 0.7071067811865476
_TERMS = 11
_WORD = (1 << 64) - 1


class Draws:
    """A stream of random numbers: SplitMix64 of a counter (Steele, Lea, Flood 2014)."""

    __slots__ = ("_state",)

    def __init__(self, seed: int) -> None:
        self._state = mix(seed & _WORD)

    def word(self) -> int:
        """64 random bits."""
        self._state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        return mix(self._state)

    def below(self, limit: int) -> int:
        """A number from 0 to `limit` - 1, below 2^32; the bias is less than 2^-32."""
        return self.word() * limit >> 64

    def uniform(self) -> float:
        """A number between 0 and 1, neither of both."""
        return ((self.word() >> 12) + 0.5) * 2.0**-52

    def normals(self, count: int) -> list[float]:
        """Numbers of the standard normal distribution, by Marsaglia's polar method."""
        found: list[float] = []
        while len(found) < count:
            x, y = 2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0
            square = x * x + y * y
            if square < 1.0:
                factor = math.sqrt(-2.0 * logarithm(square) / square)
                found += [x * factor, y * factor]
        return found[:count]


def logarithm(x: float) -> float:
    """The natural logarithm of a finite x > 0, with a relative error below 2^-50.

    x = m 2^e with m from the root of 1/2 to the root of 2; ln m = 2 (s + s^3/3 + s^5/5 + ...) with
    s = (m - 1) / (m + 1). Eleven terms leave an error below 2^-55.
    """
    m, e = math.frexp(x)
    if m < _ROOT_HALF:
        m, e = 2.0 * m, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    p = 1.0 / (2 * _TERMS - 1)
    for term in range(_TERMS - 1, 0, -1):
        p = p * z + 1.0 / (2 * term - 1)
    return e * _LN2 + 2.0 * s * p
