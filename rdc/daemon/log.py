"""Log lines for programs: logfmt or JSON, one event per line, on stderr."""

from __future__ import annotations

import json
import os
import select
import socket
import stat
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rdc.errors import one_line, printable

# The stream of a daemon's log lines: it takes a whole line or refuses it, and never blocks.


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
    """Return the pipe at `fd`, opened again so that only the copy is non-blocking; `fd` itself if that is not
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


LINE_BYTES = 4_000
"""Bytes of a line. A write of up to PIPE_BUF (4,096) bytes to a pipe is atomic among processes."""

VALUE_CHARACTERS = (1_000, 250, 60)
"""Characters of a value, since names and messages may come from a peer. The first limit is used whose line is
not longer than LINE_BYTES; a character may become 6 bytes."""

BOUNDED_LINES = 20
"""Lines per second about strangers: they must not fill a disk."""

FRAMES = 4
"""Frames of a traceback: enough to find the place."""

Value = str | bytes | int | float | None


class Log:
    """Writes events. Each value is escaped: a peer's text makes no line and moves no cursor.

    No method raises. A line that cannot be made or written is counted, and the next written line reports the
    count.
    """

    def __init__(
        self,
        *,
        as_json: bool,
        write: Callable[[bytes], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """write: takes a whole line; stderr by default. clock: seconds since 1970."""
        self.as_json = as_json
        self._write = write or LogStream().write
        self._clock = clock
        self._second = 0
        self._lines = 0
        self._lost = 0

    def __call__(self, level: str, event: str, **fields: Value) -> None:
        """Log an event. level: info, warning or error. Fields that are None are left out."""
        if self._lost and self._wrote("warning", "lost", lines=self._lost):
            self._lost = 0
        if not self._wrote(level, event, **fields):
            self._lost += 1

    def stranger(self, event: str, **fields: Value) -> None:
        """Log a line about a stranger. Above BOUNDED_LINES per second such lines are only counted."""
        if self._within_bound():
            self("warning", event, **fields)

    def internal(self, error: BaseException, **fields: Value) -> None:
        """Log an unexpected error with its place. A stranger may be its cause, so it counts as a line about
        one."""
        if self._within_bound():
            try:
                message = fault(error)
            except Exception:  # noqa: BLE001 - an error whose own text cannot be made
                message = type(error).__name__
            self("error", "internal", message=message, **fields)

    def _within_bound(self) -> bool:
        second = int(self._clock())
        if second != self._second:
            if self._lines > BOUNDED_LINES:
                self("warning", "suppressed", lines=self._lines - BOUNDED_LINES)
            self._second, self._lines = second, 0
        self._lines += 1
        return self._lines <= BOUNDED_LINES

    def _wrote(self, level: str, event: str, **fields: Value) -> bool:
        try:
            when = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
            for most in VALUE_CHARACTERS:
                shown = {"ts": when, "level": level, "event": event} | {
                    name: _plain(value, most) for name, value in fields.items() if value is not None
                }
                line = self._line(shown)
                if len(line) <= LINE_BYTES:
                    break
            self._write(line[:LINE_BYTES] + b"\n")
        except Exception:  # noqa: BLE001 - the daemon is not there for the log
            return False
        return True

    def _line(self, shown: dict[str, str | int | float]) -> bytes:
        line = json.dumps(shown) if self.as_json else " ".join(f"{k}={_quoted(v)}" for k, v in shown.items())
        return line.encode("ascii", "backslashreplace")


def fault(error: BaseException) -> str:
    """Return an unexpected error with its place, on one line."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__, limit=-FRAMES)
    locations = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__}: {error} at {locations}"


def _plain(value: str | bytes | float, most: int) -> str | int | float:
    """Return the value, as text of at most `most` characters."""
    if isinstance(value, int | float):
        return value
    text = one_line(value) if isinstance(value, str) else printable(value)
    return text if len(text) <= most else text[:most] + "..."


def _quoted(value: str | float) -> str:
    text = str(value)
    if text and not any(ch in ' "=\\' for ch in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
