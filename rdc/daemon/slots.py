"""How many sessions are in a module: counted by locks that the kernel takes back when a process ends."""

from __future__ import annotations

import fcntl
import os

__all__ = ["Slots"]

SLOTS_PER_MODULE = 4_096
"""Bytes of the lock file a module has: its largest `connections`."""


class Slots:
    """An anonymous file of which each session locks one byte. POSIX record locks belong to a process and end
    with it, also when it is killed, so that no count is ever left too high."""

    def __init__(self) -> None:
        self._fd = os.memfd_create("rdc-slots")
        self._numbers: dict[str, int] = {}

    def know(self, module: str) -> None:
        """In the daemon's own process, before sessions of `module` begin: it keeps its place in the file."""
        self._numbers.setdefault(module, len(self._numbers))

    def take(self, module: str, limit: int) -> bool:
        """In a session's process: False when `limit` others are in the module."""
        first = self._numbers[module] * SLOTS_PER_MODULE
        for offset in range(first, first + min(limit, SLOTS_PER_MODULE)):
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except OSError:
                continue
            return True
        return False
