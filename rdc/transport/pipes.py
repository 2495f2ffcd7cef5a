"""A transport over two file descriptors: non-blocking, with one poll for both directions."""

from __future__ import annotations

import contextlib
import os
import select

from rdc.transport.base import Exchange, timed_out

__all__ = ["PipeTransport"]

READ_BYTES = 256 << 10
"""Bytes per read: a quarter of a full pipe, so a reply does not wait for the copy of a megabyte."""

PIPE_BYTES = 1 << 20
"""Linux's largest pipe for a user without privileges. The default of 64 KiB costs one wake-up per 64 KiB."""


class PipeTransport:
    """Owns both descriptors and closes them. They differ; a single socket is passed twice, duplicated."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._read_fd = read_fd
        self._write_fd = write_fd
        # The flag belongs to the open file, which a parent shell may share. close() restores it.
        self._was_blocking = {fd: os.get_blocking(fd) for fd in (read_fd, write_fd)}
        for fd in self._was_blocking:
            os.set_blocking(fd, False)
            _enlarge(fd)
        self._polls: dict[tuple[bool, bool], select.poll] = {}
        self._far_reads = True
        self._write_open = True
        self._closed = False

    def fileno(self) -> int:
        """The descriptor that becomes readable when input arrives or the stream ends."""
        return self._read_fd

    @property
    def events(self) -> int:
        return select.POLLIN  # what was not written is the caller's, who waits in `exchange` for it to go

    def descriptors(self, *, reads: bool, writes: bool) -> dict[int, int]:
        polled = {self._read_fd: select.POLLIN} if reads else {}
        if writes:
            polled[self._write_fd] = select.POLLOUT
        return polled

    def exchange(self, outgoing: memoryview, want_input: bool, timeout: float | None) -> Exchange:
        # Most writes fit and need no poll first.
        written = self._write(outgoing) if outgoing else 0
        if written and not want_input:
            return Exchange(written, b"", False)
        ready = self._poll(not written and bool(outgoing), want_input, 0 if written else timeout)
        if not ready and not written:
            if timeout:
                raise timed_out(timeout)
            return Exchange(0, b"", False)
        if ready & select.POLLOUT:
            written = self._write(outgoing)
        if not ready & select.POLLIN:
            return Exchange(written, b"", False)
        try:
            received = os.read(self._read_fd, READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return Exchange(written, b"", False)
        except OSError:
            # A reset connection or a hung-up terminal ends the stream as a close does.
            received = b""
        return Exchange(written, received, not received)

    def _poll(self, want_output: bool, want_input: bool, timeout: float | None) -> int:
        """The requested ones of POLLIN and POLLOUT that are ready. An error or a hang-up counts as ready: the
        next call reports it."""
        poll = self._polls.get((want_output, want_input))
        if poll is None:
            poll = self._polls[want_output, want_input] = select.poll()
            if want_input:
                poll.register(self._read_fd, select.POLLIN)
            if want_output:
                poll.register(self._write_fd, select.POLLOUT)
        ready = 0
        for fd, events in poll.poll(None if timeout is None else timeout * 1000):
            asked = select.POLLIN if fd == self._read_fd else select.POLLOUT
            ready |= asked if events & ~(select.POLLIN | select.POLLOUT) else events
        return ready

    def _write(self, outgoing: memoryview) -> int:
        if not self._far_reads:
            return len(outgoing)
        try:
            return os.write(self._write_fd, outgoing)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            # EPIPE, ECONNRESET: the far side has stopped reading. Python ignores SIGPIPE, so the error
            # arrives here.
            self._far_reads = False
            return len(outgoing)

    def close_write(self) -> None:
        if self._write_open:
            self._write_open = self._far_reads = False
            self._shut(self._write_fd)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self.close_write()
            self._shut(self._read_fd)

    def _shut(self, fd: int) -> None:
        with contextlib.suppress(OSError):
            os.set_blocking(fd, self._was_blocking[fd])
        with contextlib.suppress(OSError):
            os.close(fd)


def _enlarge(fd: int) -> None:
    try:
        from fcntl import F_SETPIPE_SZ, fcntl
    except ImportError:
        return  # not Linux
    # Sockets and terminals refuse this, and so does the kernel above the user's share of pipe pages.
    with contextlib.suppress(OSError):
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES)
