"""ReadRate: a bound on the bytes read from storage in a second, for storage that others need as well."""

from __future__ import annotations

import time
from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["ReadRate"]

BURST_SECONDS = 0.1
"""A run that read less than its rate may catch up at once, by so many seconds of the rate at most."""


class ReadRate:
    """Lets `rate` bytes a second pass on average. All threads of a run share one.

    Each caller gets a time of its own behind those before it, and sleeps until then. So after t seconds at
    most rate * (t + BURST_SECONDS) bytes were let pass, and what the last callers asked for.
    """

    def __init__(
        self,
        rate: int,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`rate`: bytes a second, above 0. `clock`: seconds that never go back."""
        self._rate = rate
        self._clock = clock
        self._sleep = sleep
        self._next = clock()
        """When the bytes that were let pass are paid for."""
        self._lock = allocate_lock()

    def take(self, size: int) -> None:
        """Return when `size` more bytes may be read."""
        with self._lock:
            now = self._clock()
            start = max(self._next, now - BURST_SECONDS)
            self._next = start + size / self._rate
        if start > now:
            self._sleep(start - now)
