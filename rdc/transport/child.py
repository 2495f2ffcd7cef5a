"""A child process with pipes to its stdin and stdout.

Not subprocess, which takes 3 ms of a start to load, and the regular expressions of what it loads 2.5 ms more.
What is asked of it here, posix_spawn does.
"""

from __future__ import annotations

import _signal  # signal makes enums of the numbers, for 0.4 ms
import contextlib
import os
import select
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Child"]

LOOK_SECONDS = 0.02
"""Between two looks at a child, where the system cannot tell us when it ends."""


class Child:
    """`stdin` and `stdout` are our ends of the pipes, and the caller's to close; stderr is ours.

    Raises OSError or ValueError when `argv[0]`, looked for in PATH, cannot be started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        ends: list[int] = []
        try:
            ends += os.pipe()
            ends += os.pipe()
            actions: list[tuple[int, ...]] = [
                (os.POSIX_SPAWN_DUP2, ends[0], 0),
                (os.POSIX_SPAWN_DUP2, ends[3], 1),
            ]
            actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in _strays()]
            # Python ignores two signals that other programs rely on.
            ignored = (_signal.SIGPIPE, _signal.SIGXFSZ)
            self._pid = os.posix_spawnp(
                argv[0], list(argv), os.environ, file_actions=actions, setsigdef=ignored
            )
        except BaseException:
            for fd in ends:
                os.close(fd)
            raise
        theirs_in, self.stdin, self.stdout, theirs_out = ends
        os.close(theirs_in)
        os.close(theirs_out)
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while it runs."""
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int | None:
        """The same after up to `timeout` seconds; None waits until it has ended."""
        if timeout is None:
            return self._reap(0)
        if self.poll() is None:
            self._watch(timeout)
        return self.poll()

    def terminate(self) -> None:
        self._send(_signal.SIGTERM)

    def kill(self) -> None:
        self._send(_signal.SIGKILL)

    def _send(self, signal: int) -> None:
        # One that has ended, and was asked about, is gone: its number may be another's.
        if self.poll() is None:
            os.kill(self._pid, signal)

    def _reap(self, flags: int) -> int | None:
        if self._code is None:
            try:
                pid, status = os.waitpid(self._pid, flags)
            except ChildProcessError:
                pid, status = self._pid, 0  # it has ended; where SIGCHLD is ignored, nobody learns how
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
        return self._code

    def _watch(self, timeout: float) -> None:
        """Until it ends or the time is over."""
        try:
            fd = os.pidfd_open(self._pid)
        except (AttributeError, OSError):
            end = time.monotonic() + timeout
            while self.poll() is None and time.monotonic() < end:
                time.sleep(LOOK_SECONDS)
            return
        try:
            poll = select.poll()
            poll.register(fd, select.POLLIN)
            poll.poll(timeout * 1000)
        finally:
            os.close(fd)


def _strays() -> list[int]:
    """Descriptors that a child would inherit: not Python's own, but say one with which a script holds a lock,
    and which a remote shell that stays in the background would keep."""
    try:
        fds = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        return []  # nothing tells of them
    strays = []
    for fd in fds:
        with contextlib.suppress(OSError):  # the one with which the list was read is closed again
            if fd > 2 and os.get_inheritable(fd):
                strays.append(fd)
    return strays
