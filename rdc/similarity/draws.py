"""Draws: random numbers from a seed that are the same on every machine and every version of Python."""

from __future__ import annotations

import math

from rdc.kernel.constants import mix
from rdc.kernel.samples.weighted_reference import logarithm

__all__ = ["Draws"]

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
        """Numbers of the standard normal distribution, by Marsaglia's polar method.

        It needs + - * /, a square root, which IEEE 754 rounds correctly, and rdc's own logarithm.
        """
        found: list[float] = []
        while len(found) < count:
            x, y = 2.0 * self.uniform() - 1.0, 2.0 * self.uniform() - 1.0
            square = x * x + y * y
            if square < 1.0:
                factor = math.sqrt(-2.0 * logarithm(square) / square)
                found += [x * factor, y * factor]
        return found[:count]
