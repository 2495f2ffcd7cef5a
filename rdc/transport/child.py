"""A child process with pipes to its stdin and stdout.

The subprocess module takes 3 ms of a start, and 2.5 ms more for the regular expressions that it loads.
posix_spawn does what this module needs.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Child"]

LOOK_SECONDS = 0.02
"""Seconds between two polls of a child on systems that do not report its end."""


class Child:
    """A started process. The caller closes `stdin` and `stdout`, this process's ends of the pipes; the child
    shares stderr.

    Raises OSError or ValueError if `argv[0]`, searched in PATH, cannot be started.
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
            ignored = (signal.SIGPIPE, signal.SIGXFSZ)
            self._pid = os.posix_spawnp(
                argv[0], list(argv), os.environ, file_actions=actions, setsigdef=ignored
            )
        except BaseException:
            for fd in ends:
                os.close(fd)
            raise
        child_in, self.stdin, self.stdout, child_out = ends
        os.close(child_in)
        os.close(child_out)
        self._code: int | None = None

    def poll(self) -> int | None:
        """The exit status, negative for a signal; None while the child runs."""
        return self._reap(os.WNOHANG)

    def wait(self, timeout: float | None = None) -> int | None:
        """The exit status after at most `timeout` seconds, or None; without a timeout it waits for the
        end."""
        if timeout is None:
            return self._reap(0)
        if self.poll() is None:
            self._watch(timeout)
        return self.poll()

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, signal: int) -> None:
        # A child that has been reaped is gone: its number may belong to another process.
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
        """Wait until the child ends or the time is over."""
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
    """Descriptors that a child would inherit although Python did not open them, such as a script's lock. A
    remote shell that stays in the background would keep it."""
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
