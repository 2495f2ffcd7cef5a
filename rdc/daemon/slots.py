"""Counts the sessions in each module by locks, which the kernel releases when a process ends."""

from __future__ import annotations

import errno
import fcntl
import os

__all__ = ["Slots"]

SLOTS_PER_MODULE = 4_096
"""Bytes per module in the lock file: the largest possible `connections`."""


class Slots:
    """An anonymous file in which each session locks one byte. POSIX record locks belong to a process and end
    with it, even if it is killed, so the count is never too high."""

    def __init__(self) -> None:
        self._fd = _file_without_name()
        self._numbers: dict[str, int] = {}

    def know(self, module: str) -> None:
        """Assign `module` its part of the file, in the daemon's main process, before sessions of it begin."""
        self._numbers.setdefault(module, len(self._numbers))

    def take(self, module: str, limit: int) -> bool:
        """Take a slot, in a session's process. False: `limit` other sessions are in the module."""
        first = self._numbers[module] * SLOTS_PER_MODULE
        for offset in range(first, first + min(limit, SLOTS_PER_MODULE)):
            try:
                fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, offset)
            except OSError:
                continue
            return True
        return False


def _file_without_name() -> int:
    """Return an empty file that is gone with its last descriptor. Raises OSError."""
    try:
        return os.memfd_create("rdc-slots")
    except (AttributeError, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.ENOSYS:
            raise
        import tempfile

        with tempfile.TemporaryFile(prefix="rdc-slots-") as file:
            return os.dup(file.fileno())
