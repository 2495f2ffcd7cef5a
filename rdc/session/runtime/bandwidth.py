"""The bandwidth limit of a session: a token bucket."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TokenBucket"]

BURST_SECONDS = 0.1
"""Size of a burst, in seconds of the rate. A longer burst would delay other traffic on the line; a shorter
one would cause a wait every few bytes."""

BURST_LEAST = 512
"""Smallest burst, in bytes. Even at the lowest rates, a frame's head and a small block leave in one piece."""


class TokenBucket:
    """Grants `rate` bytes a second on average and at most a burst at once. One thread at a time."""

    def __init__(self, rate: int, clock: Callable[[], float] = time.monotonic) -> None:
        """`rate`: bytes a second, above 0. `clock`: seconds that never go back."""
        self._rate = rate
        self._clock = clock
        self._burst = max(BURST_LEAST, int(rate * BURST_SECONDS))
        self._tokens = float(self._burst)
        self._filled = clock()

    @property
    def room(self) -> int:
        """Bytes that may be written now. After a wait of `delay` seconds a write is worthwhile."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        return max(0, int(self._tokens))

    def take(self, size: int) -> None:
        """Counts `size` written bytes. More than `room` makes a debt, which lengthens the next delay."""
        self._tokens -= size

    @property
    def delay(self) -> float:
        """Seconds until half a burst may be written, or until a debt is paid; 0 if that is now."""
        wanted = self._burst / 2 if self._tokens >= 0 else 1.0
        return max(0.0, wanted - self._tokens) / self._rate
