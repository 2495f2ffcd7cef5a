"""Waits until the clock that stamps files has passed a file's last change, so that the next change is
visible.

A change sets the ctime from this clock, which moves in ticks of 1 to 10 ms, or 1 s on coarse file systems.
(Since Linux 6.13 some file systems stamp the first change after a stat more finely.) A file that is read in
the tick of its last change may change again with the same stat. A comparison of two stats would call it
unchanged, and one mtime would stand for two contents.
"""

from __future__ import annotations

import sys
import time

__all__ = ["file_clock", "outlast"]

_CLOCK_REALTIME_COARSE = 5
"""The value in linux/time.h; Python has no name for it."""

_SECOND = 1_000_000_000
_PAUSE_NS = 1_000_000

FUTURE_NS = 2 * _SECOND
"""A ctime further ahead than this was stamped by another clock, or before this clock was set back. Waiting
for it would prove nothing, or take years."""


def file_clock() -> int:
    """Return the clock that this kernel's file systems stamp with, in nanoseconds: the time of day, up to a
    tick late."""
    if sys.platform.startswith("linux"):
        return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
    return time.time_ns()


def outlast(ctime_ns: int) -> None:
    """Return once any change of the file gives it another ctime than `ctime_ns`. That is nearly always at
    once.

    A ctime of whole seconds is taken for the mark of a file system that keeps no finer times. That is wrong
    once in 10^9 times.
    """
    end = ctime_ns if ctime_ns % _SECOND else ctime_ns + _SECOND - 1
    while end - FUTURE_NS <= (now := file_clock()) <= end:
        time.sleep(min(_PAUSE_NS, end - now + 1) / _SECOND)
