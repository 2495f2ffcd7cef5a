"""Transports over the pipes of a remote shell: a server's own stdin and stdout, and those of a child."""

from __future__ import annotations

import os
import sys

from rdc.errors import CommandMissingError, printable
from rdc.transport.pipes import PipeTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ChildTransport", "StdioTransport"]

EXIT_SECONDS = 5.0
"""Seconds that a child may take to exit after its input ends: a far side may have files to flush."""

TERMINATE_SECONDS = 2.0
"""Seconds that a child may then ignore SIGTERM."""


class StdioTransport(PipeTransport):
    """A server's end, on this process's stdin and stdout.

    Both move to new descriptors. Descriptor 1 becomes a copy of stderr, and descriptor 0 reads nothing. A
    stray print or a child process can thus neither write into the stream nor read from it.
    """

    def __init__(self, read_fd: int = 0, write_fd: int = 1) -> None:
        if write_fd == 1:
            sys.stdout.flush()
        super().__init__(os.dup(read_fd), os.dup(write_fd))
        if write_fd == 1:
            os.dup2(2, 1)
        else:
            os.close(write_fd)
        if read_fd == 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            os.dup2(nothing, 0)
            os.close(nothing)
        else:
            os.close(read_fd)


class ChildTransport(PipeTransport):
    """The dialler's end: it starts `argv`, whose stdin and stdout are the stream and whose stderr is this
    process's.

    The child stays in this process group: a remote shell may ask for a password on the terminal, which only
    the foreground group may read, and Ctrl-C must reach both. CommandMissingError if `argv[0]` cannot be
    started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        from rdc.transport.child import Child  # the far side is nobody's parent, and need not load it

        try:
            self._child = Child(argv)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CommandMissingError(f"cannot start {printable(argv[0])}: {reason}") from error
        super().__init__(self._child.stdout, self._child.stdin)

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while the child runs. Never waits."""
        return self._child.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit status after at most `timeout` seconds (EXIT_SECONDS by default); None if the child still
        runs. It explains an end of the stream."""
        return self._child.wait(EXIT_SECONDS if timeout is None else timeout)

    def close(self) -> None:
        """End the stream in both directions, wait EXIT_SECONDS for the child's exit, then terminate it."""
        super().close()
        if self.wait() is None:
            self._child.terminate()
            if self.wait(TERMINATE_SECONDS) is None:
                self._child.kill()
                self._child.wait()
