"""The mounts below a tree, and notice of changed mounts, which inotify reports only in part.

IN_UNMOUNT reports a file system that is unmounted for good. It reports neither a bind mount nor a file system
detached while in use (umount -l).
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import sys
import threading

from rdc.errors import RdcError
from rdc.watching.bell import Bell

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["MountBell", "Mounts"]

_TABLE = "/proc/self/mountinfo"
_CHANGED = select.POLLPRI | select.POLLERR
"""The events of a changed mount table since the descriptor's last poll (proc(5))."""
_ESCAPE = re.compile(rb"\\([0-7]{3})")


class Mounts:
    """The mounts below a directory. A mount that disappears is missed with its content, which would otherwise
    look deleted."""

    def __init__(self, top: bytes) -> None:
        """top: absolute path of the directory, without links. On a system without a mount table nothing is
        ever missed. Raises RdcError where the system has one and /proc is not mounted."""
        self._below = top.rstrip(b"/") + b"/"
        self._known: dict[int, bytes] = {}
        self._fd = -1
        self._missed: bytes | None = None
        try:
            self._fd = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if sys.platform == "linux":
                # What is in a file system that was unmounted would be taken for deleted.
                raise RdcError(
                    f"cannot watch: {_TABLE} cannot be read ({error.strerror}); mount /proc and run again"
                ) from error
            return
        with contextlib.suppress(OSError):
            self._poll = select.poll()
            self._poll.register(self._fd, _CHANGED)
            self._poll.poll(0)
            self._known = self._read()

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def missed(self) -> bytes | None:
        """Path, below the directory, of a mount that disappeared; None without one, or once it is mounted
        there again. Costs one system call if no mount changed."""
        if self._fd >= 0 and self._poll.poll(0):
            now = self._read()
            # By number, since the path of a mount changes when a directory above it is renamed.
            gone = [path for number, path in self._known.items() if number not in now]
            self._missed = next((path for path in gone if path not in now.values()), None)
            if self._missed is None:
                self._known = now
        return self._missed

    def _read(self) -> dict[int, bytes]:
        """Paths relative to the directory, by mount number."""
        found = {}
        os.lseek(self._fd, 0, os.SEEK_SET)
        with open(self._fd, "rb", closefd=False) as table:
            for line in table:
                number, _, _, _, point, *_ = line.split(b" ")
                path = _ESCAPE.sub(lambda escape: bytes((int(escape[1], 8),)), point)
                if path.startswith(self._below):
                    found[int(number)] = path[len(self._below) :]
        return found


class MountBell(threading.Thread):
    """Calls `ring`, from this thread, whenever the mount table changes."""

    def __init__(self, ring: Callable[[], None]) -> None:
        super().__init__(name="rdc mounts", daemon=True)
        self._ring = ring
        self._end = Bell()
        self.start()

    def stop(self) -> None:
        self._end.ring()
        self.join()
        self._end.close()

    def run(self) -> None:
        try:
            table = os.open(_TABLE, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        poll = select.poll()
        poll.register(table, _CHANGED)
        poll.register(self._end.fd, select.POLLIN)
        try:
            # The first poll of a descriptor only records the state of the table.
            poll.poll(0)
            while self._end.fd not in {fd for fd, _ in poll.poll()}:
                self._ring()
        finally:
            os.close(table)
