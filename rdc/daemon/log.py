"""Log lines that programs can read: logfmt or JSON, one event each, on stderr."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from rdc.errors import printable

__all__ = ["Log", "fault"]

LINE_BYTES = 4_000
"""Of a line at most: a write of up to PIPE_BUF (4,096) to a pipe is never mixed with another process's."""

VALUE_CHARACTERS = 1_000
"""Of one value at most: names and messages may come from a peer."""

STRANGER_LINES = 20
"""Lines a second about peers that are not known: they must not fill a disk."""

Value = str | bytes | int | float | None


class Log:
    """Writes events. Every value is escaped: a peer's text makes no line and moves no cursor."""

    def __init__(
        self,
        *,
        as_json: bool,
        write: Callable[[bytes], object] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`write`: takes a whole line. `clock`: seconds since 1970."""
        self.as_json = as_json
        self._write = write or _to_stderr
        self._clock = clock
        self._second = 0
        self._lines = 0

    def __call__(self, level: str, event: str, **fields: Value) -> None:
        """`level`: info, warning or error. Fields that are None are left out."""
        when = datetime.fromtimestamp(self._clock(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"
        shown = {"ts": when, "level": level, "event": event} | {
            name: _plain(value) for name, value in fields.items() if value is not None
        }
        line = json.dumps(shown) if self.as_json else " ".join(f"{k}={_quoted(v)}" for k, v in shown.items())
        self._write(line.encode("ascii", "backslashreplace")[:LINE_BYTES] + b"\n")

    def stranger(self, event: str, **fields: Value) -> None:
        """A line about a peer that is not known; past STRANGER_LINES a second they are counted only."""
        second = int(self._clock())
        if second != self._second:
            if self._lines > STRANGER_LINES:
                self("warning", "suppressed", lines=self._lines - STRANGER_LINES)
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines <= STRANGER_LINES:
            self("warning", event, **fields)


def fault(error: BaseException) -> str:
    """An error that should not be and where it came from, on one line."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)[-4:]
    places = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
    return f"{type(error).__name__}: {error} at {places}"


def _plain(value: str | bytes | float) -> str | int | float:
    if isinstance(value, int | float):
        return value
    text = printable(value)
    return text if len(text) <= VALUE_CHARACTERS else text[:VALUE_CHARACTERS] + "..."


def _quoted(value: str | float) -> str:
    text = str(value)
    if text and not any(ch in ' "=\\' for ch in text):
        return text
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _to_stderr(line: bytes) -> None:
    # Whoever read the log may be gone; the daemon is not there for the log.
    with contextlib.suppress(OSError):
        os.write(2, line)
