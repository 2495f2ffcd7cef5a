"""Bell: a descriptor that becomes readable when another thread rings."""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

__all__ = ["Bell"]

_ONCE = (1).to_bytes(8, sys.byteorder)
"""What an eventfd takes. A pipe takes anything."""

_READ_BYTES = 4096
"""All that can have been written to a pipe: it is rung a few times at most before somebody looks."""


class Bell:
    """An eventfd, or a pipe where the system has none."""

    __slots__ = ("_striker", "fd")

    def __init__(self) -> None:
        """Raises OSError."""
        try:
            self.fd = self._striker = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        except (AttributeError, OSError) as error:
            if isinstance(error, OSError) and error.errno != errno.ENOSYS:
                raise
            self.fd, self._striker = os.pipe()
            os.set_blocking(self.fd, False)
            os.set_blocking(self._striker, False)

    def ring(self) -> None:
        with suppress(BlockingIOError):  # so many rings are waiting that one more tells nothing
            os.write(self._striker, _ONCE)

    def silence(self) -> None:
        """Make the descriptor unreadable until the next ring."""
        with suppress(BlockingIOError):
            os.read(self.fd, _READ_BYTES)

    def close(self) -> None:
        for fd in {self.fd, self._striker}:
            os.close(fd)
