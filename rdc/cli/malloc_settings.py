"""Makes the C library keep freed memory, for the many allocations of half a megabyte."""

from __future__ import annotations

import contextlib

from rdc.files.base.syscalls import set_malloc_option

__all__ = ["keep_freed_memory"]

# Parameters of mallopt(3).
TRIM_THRESHOLD, MMAP_THRESHOLD = -1, -3

UNTRIMMED_BYTES = 16 << 20
"""Free memory at the end of the heap that stays with the process: the size of a queue of messages."""

MAPPED_BYTES = 4 << 20
"""The least size of an allocation that has its own mapping. No message is as large."""


def keep_freed_memory(mapped: int = MAPPED_BYTES, untrimmed: int = UNTRIMMED_BYTES) -> None:
    """Sets malloc options for the whole process; only a program may call this, not a library.

    By default each message's pages return to the kernel and are cleared on reuse. That costs a fifth of
    the CPU time of receiving. Does nothing if the C library is not glibc. `mapped` and `untrimmed`: as the
    constants of this module.
    """
    with contextlib.suppress(OSError):
        set_malloc_option(MMAP_THRESHOLD, mapped)
        set_malloc_option(TRIM_THRESHOLD, untrimmed)
