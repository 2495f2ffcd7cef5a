"""The stream of a daemon's log lines: it takes a whole line or refuses it, and never blocks."""

from __future__ import annotations

import os
import select
import socket
import stat

__all__ = ["LogStream", "hold_standard_streams"]


class LogStream:
    """A log stream whose reader may be slow, stopped or gone; the daemon and its sessions continue
    regardless."""

    def __init__(self, fd: int = 2) -> None:
        """fd: stays the caller's. Its flags are not changed, since other programs may share them."""
        self._given = self._fd = fd
        self._socket: socket.socket | None = None
        mode = os.fstat(fd).st_mode
        if stat.S_ISSOCK(mode):
            self._socket = socket.socket(fileno=os.dup(fd))
        elif stat.S_ISFIFO(mode):
            self._fd = _reopened(fd)
        self._poll = select.poll()
        self._poll.register(self._fd, select.POLLOUT)

    def write(self, line: bytes) -> None:
        """Write `line` of up to PIPE_BUF bytes. OSError if there is no reader, BlockingIOError if the reader
        is behind; the line is then not written."""
        if self._socket is not None:
            self._socket.send(line, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            return
        if not self._poll.poll(0):
            raise BlockingIOError
        os.write(self._fd, line)

    def close(self) -> None:
        """Close the stream. `fd` stays open."""
        if self._socket is not None:
            self._socket.close()
        elif self._fd != self._given:
            os.close(self._fd)


def _reopened(fd: int) -> int:
    """The pipe at `fd`, opened again so that only the copy is non-blocking; `fd` itself if that is not
    allowed."""
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return fd


def hold_standard_streams() -> None:
    """Open /dev/null for each of descriptors 0, 1 and 2 that was closed at the start. Otherwise a peer's
    connection would get the number, and with it the log."""
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: fd
