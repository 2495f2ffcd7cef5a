"""Tells the C library to keep what was freed: messages of half a megabyte are allocated all the time."""

from __future__ import annotations

import contextlib

from rdc.files.syscalls import set_malloc_option

__all__ = ["keep_freed_memory"]

# Parameters of mallopt(3).
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3

KEPT_BYTES = 16 << 20
"""Free memory at the end of the heap that is not given back: a queue of messages that fills and empties."""

MAPPED_BYTES = 4 << 20
"""From this size on an allocation is mapped by itself, and given back: no message is as large."""


def keep_freed_memory() -> None:
    """Otherwise each message's pages are given back, asked for again, and cleared by the kernel: a fifth of
    the time that receiving takes. For programs, not for libraries: it is the whole process's. Does nothing
    where the C library is not glibc.
    """
    with contextlib.suppress(OSError):
        set_malloc_option(MMAP_THRESHOLD, MAPPED_BYTES)
        set_malloc_option(TRIM_THRESHOLD, KEPT_BYTES)
