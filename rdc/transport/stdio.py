"""The pipes of a remote shell: a server's own stdin and stdout, and a child's from outside."""

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
"""How long a child may take to end after its input did: a far side may have files to flush."""

TERMINATE_SECONDS = 2.0
"""How long it may then ignore SIGTERM."""


class StdioTransport(PipeTransport):
    """A server's end, on this process's stdin and stdout.

    Both are moved to new descriptors. Descriptor 1 becomes a copy of stderr and 0 reads nothing, so neither a
    stray print nor a child process can put bytes into the stream or take any out of it.
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
    """The dialler's end: `argv` is started, its stdin and stdout are the stream, its stderr is ours.

    The child stays in our process group: a remote shell may ask for a password on the terminal, which only
    the foreground group may read, and Ctrl-C must reach both.
    Raises CommandMissingError when `argv[0]` cannot be started.
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
        """Exit status, negative for a signal; None while it runs. Looks, never waits."""
        return self._child.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit status, after up to `timeout` seconds (EXIT_SECONDS by default); None when it still runs.
        After an end of the stream this tells why."""
        return self._child.wait(EXIT_SECONDS if timeout is None else timeout)

    def close(self) -> None:
        """Ends the stream both ways, gives the child EXIT_SECONDS to follow, then terminates it."""
        super().close()
        if self.wait() is None:
            self._child.terminate()
            if self.wait(TERMINATE_SECONDS) is None:
                self._child.kill()
                self._child.wait()
