"""The limit on bytes a second that a side writes: a token bucket."""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TokenBucket"]

BURST_SECONDS = 0.1
"""What may go at once, in seconds of the rate: short enough that other traffic on the line is not held up for
long, long enough that a wait is not for a few bytes."""

BURST_LEAST = 512
"""Bytes: at the lowest rates a frame's head and a small block still leave in one piece."""


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
        """Bytes that may be written now. After a wait of `delay` it is worth a write."""
        now = self._clock()
        self._tokens = min(self._burst, self._tokens + (now - self._filled) * self._rate)
        self._filled = now
        return max(0, int(self._tokens))

    def take(self, size: int) -> None:
        """`size` bytes were written; more than `room` makes a debt, which the next delay pays."""
        self._tokens -= size

    @property
    def delay(self) -> float:
        """Seconds until half a burst may go; 0 where it may now. Of a debt, the time until it is paid."""
        wanted = self._burst / 2 if self._tokens >= 0 else 1.0
        return max(0.0, wanted - self._tokens) / self._rate
