"""The memory limit for the entries that a source announces."""

from __future__ import annotations

import os

from rdc.limits.sessions import ENTRIES_MEMORY_DEFAULT, ENTRIES_MEMORY_SHARE

__all__ = ["entries_memory"]


def entries_memory(asked: int | None) -> int:
    """The limit in bytes: --max-memory, all of this machine's memory for 0, or a share of it for None."""
    if asked:
        return asked
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return ENTRIES_MEMORY_DEFAULT
    if physical <= 0:
        return ENTRIES_MEMORY_DEFAULT
    return physical if asked == 0 else physical // ENTRIES_MEMORY_SHARE
