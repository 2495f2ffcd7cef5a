"""Transports over the pipes of a remote shell: a server's own stdin and stdout, and those of a child."""

from __future__ import annotations

import os
import sys

from rdc.errors import CommandMissingError, printable
from rdc.lean.typed import Protocol
from rdc.transport.pipes import PipeTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


class Process(Protocol):
    """What the dialler's end needs of a subprocess.Popen."""

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def terminate(self) -> None: ...
    def kill(self) -> None: ...


def start_process(argv: Sequence[str], stdin: int, stdout: int) -> Process:
    """Start `argv` with these descriptors, which the caller closes, and this process's stderr. OSError or
    ValueError if it cannot be started."""
    import subprocess  # takes 12 ms: only the dialler of another process needs it

    return subprocess.Popen(argv, stdin=stdin, stdout=stdout)


class ChildTransport(PipeTransport):
    """The dialler's end: it starts `argv`, whose stdin and stdout are the stream and whose stderr is this
    process's.

    The child stays in this process group: a remote shell may ask for a password on the terminal, which only
    the foreground group may read, and Ctrl-C must reach both. CommandMissingError if `argv[0]` cannot be
    started.
    """

    start: Callable[[Sequence[str], int, int], Process] = staticmethod(start_process)

    def __init__(self, argv: Sequence[str]) -> None:
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        try:
            self._process = self.start(argv, theirs_in, theirs_out)
        except (OSError, ValueError) as error:
            os.close(ours_in)
            os.close(ours_out)
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise CommandMissingError(f"cannot start {printable(argv[0])}: {reason}") from error
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        super().__init__(ours_in, ours_out)

    @property
    def returncode(self) -> int | None:
        """The exit status, negative for a signal; None while the child runs. Never waits."""
        return self._process.poll()

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit status after at most `timeout` seconds (EXIT_SECONDS by default); None if the child still
        runs. It explains an end of the stream."""
        from subprocess import TimeoutExpired

        try:
            return self._process.wait(EXIT_SECONDS if timeout is None else timeout)
        except TimeoutExpired:
            return None

    def close(self) -> None:
        """End the stream in both directions, wait EXIT_SECONDS for the child's exit, then terminate it."""
        super().close()
        if self.wait() is None:
            self._process.terminate()
            if self.wait(TERMINATE_SECONDS) is None:
                self._process.kill()
                self._process.wait()
