"""A sync as JSON events, one a line: what scripts read; the fields are a promise, versioned by `v`."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TypeAlias

from rdc.errors import FileError, RdcError
from rdc.model.sync import SyncReport
from rdc.progress import Event, ItemChanged, PlanKnown, Problem, Progressed

__all__ = ["EVENT_VERSION", "PROGRESS_INTERVAL", "SyncJson", "json_line", "path_fields"]

EVENT_VERSION = 1
"""`v` of each event; fields may be added under one version, never renamed or removed."""

PROGRESS_INTERVAL = 0.2
"""Seconds between progress events of one phase: five a second are enough for any display and cost nothing."""

Field: TypeAlias = str | int | float
"""One value of an event."""


def json_line(event: str, **fields: Field | dict[str, int]) -> str:
    """One event as a line of ASCII without control characters, whatever its strings hold."""
    text = json.dumps({"v": EVENT_VERSION, "event": event, **fields}, separators=(",", ":"))
    # JSON lets DEL stand raw; terminals do not have to. It can only occur inside a string.
    return text.replace("\x7f", "\\u007f") + "\n"


def path_fields(path: bytes) -> dict[str, Field]:
    """`path`, and `path_b64` where it is not UTF-8 and `path` therefore shows replacement characters."""
    try:
        return {"path": path.decode("utf-8")}
    except UnicodeDecodeError:
        encoded = base64.b64encode(path).decode("ascii")
        return {"path": path.decode("utf-8", "replace"), "path_b64": encoded}


class SyncJson:
    """A Reporter that writes events; `start` comes first, and `finish` or `fail` last."""

    def __init__(
        self, write: Callable[[str], None], flush: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        """`clock` gives seconds that never go back."""
        self._write = write
        self._flush = flush
        self._clock = clock
        self._started = clock()
        self._progress_at: dict[str, float] = {}
        self._done: dict[str, int] = {}

    def start(self) -> None:
        self._emit("start")

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, ItemChanged):
            # Not flushed one by one: a million changes would be a million writes.
            self._write(json_line("item", change=event.change, **path_fields(event.path)))
        elif isinstance(event, PlanKnown):
            self._emit("plan", files=event.files, bytes=event.bytes, deletes=event.deletes)
        elif isinstance(event, Progressed):
            self._progressed(event)
        elif isinstance(event, Problem):
            self._emit("error", code=int(event.code), **path_fields(event.path), message=event.message)

    def finish(self, report: SyncReport) -> None:
        self._emit(
            "summary",
            files=report.files,
            changed=report.changed,
            deleted=report.deleted,
            bytes_sent=report.bytes_sent,
            bytes_received=report.bytes_received,
            literal_bytes=report.literal_bytes,
            reused_bytes=report.reused_bytes,
            round_trips=report.round_trips,
            bytes_by_purpose={purpose.value: size for purpose, size in report.by_purpose.items()},
            seconds=round(self._clock() - self._started, 3),
            exit=int(report.exit),
        )

    def fail(self, error: RdcError) -> None:
        """The run ends here without a report."""
        path = error.path if isinstance(error, FileError) else b""
        self._emit("error", code=int(error.code), **path_fields(path), message=str(error))

    def close(self) -> None:
        """Nothing is left on a terminal."""

    def _progressed(self, event: Progressed) -> None:
        now = self._clock()
        last = self._progress_at.get(event.phase)
        complete = event.total is not None and event.done >= event.total
        if last is not None and now - last < PROGRESS_INTERVAL and not complete:
            return
        if event.done <= self._done.get(event.phase, -1):
            return
        self._progress_at[event.phase] = now
        self._done[event.phase] = event.done
        if event.total is None:
            self._emit("progress", phase=event.phase, done=event.done)
        else:
            self._emit("progress", phase=event.phase, done=event.done, total=event.total)

    def _emit(self, event: str, **fields: Field | dict[str, int]) -> None:
        self._write(json_line(event, **fields))
        self._flush()
