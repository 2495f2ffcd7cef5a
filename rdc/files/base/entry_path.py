"""Paths below /proc to entries of open directories."""

from __future__ import annotations

__all__ = ["path_of_entry"]


def path_of_entry(directory: int, name: bytes) -> bytes:
    """Return a path to the entry `name` of an open directory, for system calls that accept only paths."""
    return b"/proc/self/fd/%d/%s" % (directory, name)
