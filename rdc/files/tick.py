"""Waits until the clock that stamps files has passed a file's last change: the next one leaves a trace then.

A change sets a file's ctime to that clock, which moves in ticks: 1 to 10 ms, and 1 s where no more is kept.
(Since Linux 6.13 some file systems stamp the first change after a look more finely.) What is read in the tick
of the last change may be changed again in that tick, with the stat of before: a comparison of two looks would
take it for unchanged, and the mtime that goes with it would stand for two contents for ever.
"""

from __future__ import annotations

import sys
import time

__all__ = ["file_clock", "outlast"]

_CLOCK_REALTIME_COARSE = 5
"""linux/time.h; Python has no name for it."""

_SECOND = 1_000_000_000
_PAUSE_NS = 1_000_000

FUTURE_NS = 2 * _SECOND
"""A change that is further ahead than this was stamped by another clock, or before this one was set back: to
wait for it would prove nothing, or take years."""


def file_clock() -> int:
    """Nanoseconds by the clock this kernel's file systems stamp with: the time of day, up to a tick late."""
    if sys.platform.startswith("linux"):
        return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
    return time.time_ns()


def outlast(ctime_ns: int) -> None:
    """Returns once a file that is changed gets another ctime than this one. Nearly always that is at once.

    A whole second is, but for once in 10^9 times, the mark of a file system that keeps no more.
    """
    end = ctime_ns if ctime_ns % _SECOND else ctime_ns + _SECOND - 1
    while end - FUTURE_NS <= (now := file_clock()) <= end:
        time.sleep(min(_PAUSE_NS, end - now + 1) / _SECOND)
