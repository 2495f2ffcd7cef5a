"""The choice between compressed and plain new files: the source of a session tries both, and compares.

Through a pipe, or over a line of several Gbit/s, to compress a file takes longer than to send it. Only the
bytes of content that get through in a second tell: the destination may be what takes the time. So a window of
content goes without compression now and then. What does better goes on for a longer run, and the other is
tried again after that, because another kind of content may follow. A wrong choice thereby costs a small share
of a session's time.
"""

from __future__ import annotations

TRIED_BYTES = 4 << 20
"""Bytes of content that are sent in the other way, to compare. A pipe takes a fourth of them at once."""

FIRST_RUN_BYTES = 32 << 20
"""Bytes of content that then go in the better way."""

RUN_GROWTH = 4
"""The length of the next run, as a multiple of the last one."""

BETTER = 1.25
"""The speed that content must reach without compression, as a multiple. Content that cannot be compressed at
all gets through at the same rate in both ways."""


class PackingTrials:
    """Says how the next content goes, and measures how the last went. Times are seconds of any clock."""

    def __init__(self) -> None:
        self.plain = False
        """The content of this window goes without compression."""
        self._better = False
        """Content without compression did better."""
        self._tries = True
        """This window is there to compare. The first one is, too."""
        self._room = TRIED_BYTES
        self._run = FIRST_RUN_BYTES
        self._sent = 0
        """Bytes of content in this window so far."""
        self._begun: float | None = None
        self._rates: dict[bool, float] = {}
        """Bytes of content a second in the last window without compression, and with it."""

    def count(self, size: int, now: float, *, fast: bool) -> None:
        """Take `size` bytes of content that are about to be sent. `fast`: the line may be tried without
        compression."""
        if self._begun is None:
            self._begun = now
        if self._sent >= self._room:
            self._end(now - self._begun, fast=fast)
            self._begun, self._sent = now, 0
        self._sent += size

    def _end(self, seconds: float, *, fast: bool) -> None:
        """End a window that took `seconds`, and choose how the next one goes."""
        if seconds > 0:
            self._rates[self.plain] = self._sent / seconds
        plain, packed = self._rates.get(True, 0.0), self._rates.get(False, 0.0)
        self._better = fast and plain > BETTER * packed
        if fast and not (self._tries and len(self._rates) == 2):
            self.plain, self._tries, self._room = not self._better, True, TRIED_BYTES
            return
        self.plain, self._tries, self._room = self._better, False, self._run
        self._run *= RUN_GROWTH
