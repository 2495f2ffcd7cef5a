"""RunMarker: a file beside the parts. While it is there, workers go on; without it, they end.

It needs no connection of its own, so it works with every engine. A worker that does not see it writes to
another directory than the machine that waits for its part.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import time

from rdc.files.base.os_errors import failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["LOOK_SECONDS", "RunMarker", "looking"]

LOOK_SECONDS = 0.5
"""The time between two looks of a worker. A look over a network takes some 100 us."""

_NAME = re.compile(rb"\.rdcparts-[0-9a-f]{16}(\.run|-\d+\.list)")


class RunMarker:
    """Is there from `begin` to `end`. A run that begins in the same directory ends the one before it. The
    lists of slices lie beside it, and go with it."""

    def __init__(self, directory: bytes) -> None:
        self._directory = directory
        self._stem = os.path.join(directory, b".rdcparts-%b" % secrets.token_hex(8).encode())
        self.path = self._stem + b".run"

    def list_path(self, number: int) -> bytes:
        """Where the list of a slice is, until it is dropped or the run ends."""
        return b"%b-%d.list" % (self._stem, number)

    def drop_list(self, number: int) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.list_path(number))

    def begin(self) -> None:
        """Raises FileError if the directory cannot be written to."""
        try:
            self._clear(_NAME)
            os.close(os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666))
        except OSError as error:
            raise failure(error, self.path, self.path, "write a file beside the parts") from error

    def end(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self.path)
            self._clear(re.compile(re.escape(os.path.basename(self._stem)) + rb"-\d+\.list"))

    def _clear(self, pattern: re.Pattern[bytes]) -> None:
        for name in os.listdir(self._directory):
            if pattern.fullmatch(name):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(self._directory, name))


def looking(path: bytes, clock: Callable[[], float] = time.monotonic) -> Callable[[], bool]:
    """Returns a function that says whether the marker at `path` is gone. It looks every LOOK_SECONDS."""
    gone, next_look = False, clock()

    def ended() -> bool:
        nonlocal gone, next_look
        if not gone and clock() >= next_look:
            next_look = clock() + LOOK_SECONDS
            gone = not os.path.exists(path)
        return gone

    return ended
