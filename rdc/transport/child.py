"""A program that was started to be talked to: pipes on its stdin and stdout, and how it ended."""

from __future__ import annotations

import contextlib
import os
import select
import time
from fcntl import F_DUPFD_CLOEXEC, fcntl

from rdc.signals import signal
from rdc.typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Child"]

LOOK_SECONDS = 0.01
"""Between two looks at a child, where the system has no descriptors of processes (before Linux 5.3)."""

_RESTORED = (signal.SIGPIPE, signal.SIGXFSZ)
"""Python ignores these, and what is ignored stays so in the programs that it starts."""


class Child:
    """`argv`, found as a shell finds it, in our process group; its stderr is ours.

    Not subprocess.Popen: with locale, re and selectors it takes 5 ms to load. Nothing of ours stays open in
    the child, since whatever Python opens closes when a program is started.
    Raises OSError, or ValueError for a NUL byte, when it cannot be started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            their_stdin, self.stdin = _pipe()
            theirs.callback(os.close, their_stdin)
            ours.callback(os.close, self.stdin)
            self.stdout, their_stdout = _pipe()
            theirs.callback(os.close, their_stdout)
            ours.callback(os.close, self.stdout)
            self.pid = os.posix_spawnp(
                argv[0],
                list(argv),
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, their_stdin, 0), (os.POSIX_SPAWN_DUP2, their_stdout, 1)],
                setsigdef=_RESTORED,
            )
            ours.pop_all()
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        if self._code is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                self._code = 0  # whoever started us has the system wait for our children: nobody knows
            else:
                self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def wait(self, seconds: float) -> int | None:
        """As poll(), after it ended or `seconds` have passed."""
        if self.poll() is None and not self._ended_within(seconds):
            end = time.monotonic() + seconds
            while self.poll() is None and time.monotonic() < end:
                time.sleep(LOOK_SECONDS)
        return self.poll()

    def _ended_within(self, seconds: float) -> bool:
        """Waits on a descriptor of the child, which tells at once. False where there is no such thing."""
        try:
            fd = os.pidfd_open(self.pid)
        except (AttributeError, OSError):
            return False
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(seconds * 1000)
        finally:
            os.close(fd)
        return True

    def send(self, number: signal.Signals) -> None:
        if self.poll() is None:  # its pid may be another's otherwise
            os.kill(self.pid, number)


def _pipe() -> tuple[int, int]:
    """The end to read and the end to write, both above stderr: where one of our own streams is closed, pipes
    would take its number, and making one end the child's stdin would close the other."""
    low = os.pipe()
    try:
        reading = fcntl(low[0], F_DUPFD_CLOEXEC, 3)
        try:
            return reading, fcntl(low[1], F_DUPFD_CLOEXEC, 3)
        except OSError:
            os.close(reading)
            raise
    finally:
        for fd in low:
            os.close(fd)
