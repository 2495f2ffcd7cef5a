"""The memory limit for the entries that a source announces."""

from __future__ import annotations

import os

from rdc.limits.sessions import ENTRIES_MEMORY_DEFAULT, ENTRIES_MEMORY_SHARE

__all__ = ["entries_memory"]


def entries_memory(asked: int | None) -> int:
    """The limit in bytes: --max-memory, or else a share of this machine's memory."""
    if asked is not None:
        return asked
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return ENTRIES_MEMORY_DEFAULT
    return physical // ENTRIES_MEMORY_SHARE if physical > 0 else ENTRIES_MEMORY_DEFAULT
