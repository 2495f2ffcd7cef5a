"""Events as JSON, one per line, for scripts. The fields are a stable interface, versioned by `v`."""

from __future__ import annotations

import base64
import json

from rdc.errors import FileError, RdcError
from rdc.progress import Problem, Progressed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    from rdc.errors import ExitCode

__all__ = [
    "EVENT_VERSION",
    "PROGRESS_INTERVAL",
    "ChangeJson",
    "Field",
    "JsonEvents",
    "Value",
    "json_line",
    "path_fields",
]

EVENT_VERSION = 1
"""`v` of each event. Within one version, fields may be added but never renamed or removed."""

PROGRESS_INTERVAL = 0.2
"""Seconds between progress events of one phase. Five per second suit any display and cost nothing."""

Field: TypeAlias = str | int | float
"""One value of an event."""

Value: TypeAlias = "Field | list[dict[str, Value]] | dict[str, Value]"
"""A value that may be nested."""


def json_line(event: str, **fields: Value) -> str:
    """One event as a line of ASCII without control characters, whatever its strings contain."""
    text = json.dumps({"v": EVENT_VERSION, "event": event, **fields}, separators=(",", ":"))
    # JSON allows a raw DEL, which a terminal may interpret. It can only occur inside a string.
    return text.replace("\x7f", "\\u007f") + "\n"


def path_fields(path: bytes, name: str = "path") -> dict[str, Field]:
    """`path`, and `path_b64` if the path is not UTF-8, since `path` then has replacement characters. `name`
    replaces "path" in both keys."""
    try:
        return {name: path.decode("utf-8")}
    except UnicodeDecodeError:
        encoded = base64.b64encode(path).decode("ascii")
        return {name: path.decode("utf-8", "replace"), f"{name}_b64": encoded}


class JsonEvents:
    """The events that all commands share: `start` comes first, a summary or `fail` last."""

    def __init__(
        self, write: Callable[[str], None], flush: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        """`clock` returns seconds and never goes back."""
        self._write = write
        self._flush = flush
        self._clock = clock
        self._started = clock()
        self._progress_at: dict[str, float] = {}
        self._done: dict[str, int] = {}

    @property
    def seconds(self) -> float:
        """Seconds since this object was made, as a summary shows them."""
        return round(self._clock() - self._started, 3)

    def start(self) -> None:
        self.emit("start")

    def emit(self, event: str, **fields: Value) -> None:
        """Writes one event at once."""
        self.queue(event, fields)
        self._flush()

    def queue(self, event: str, fields: Mapping[str, Value]) -> None:
        """Queues one of many events. It is written with the next event of `emit`, which saves a write for
        each."""
        self._write(json_line(event, **fields))

    def __call__(self, event: object, /) -> None:
        """A Reporter for problems and progress. Subclasses add the events of their command."""
        if isinstance(event, Problem):
            self._problem(event)
        elif isinstance(event, Progressed):
            self._progressed(event)

    def summary(self, fields: Mapping[str, Value], code: ExitCode) -> None:
        """The last event of a run that completed."""
        self.emit("summary", **fields, seconds=self.seconds, exit=int(code))

    def _problem(self, event: Problem) -> None:
        self.emit("error", code=int(event.code), **path_fields(event.path), message=event.message)

    def _progressed(self, event: Progressed) -> None:
        """Progress at most every PROGRESS_INTERVAL, and at the end of a phase. It never goes back."""
        now = self._clock()
        last = self._progress_at.get(event.phase)
        complete = event.total is not None and event.done >= event.total
        if last is not None and now - last < PROGRESS_INTERVAL and not complete:
            return
        if event.done <= self._done.get(event.phase, -1):
            return
        self._progress_at[event.phase] = now
        self._done[event.phase] = event.done
        total: dict[str, Field] = {} if event.total is None else {"total": event.total}
        self.emit("progress", phase=event.phase, done=event.done, **total)

    def fail(self, error: RdcError) -> None:
        """Ends the run without a report."""
        path = error.path if isinstance(error, FileError) else b""
        self.emit("error", code=int(error.code), **path_fields(path), message=str(error))

    def close(self) -> None:
        """Does nothing: there is nothing to remove from a terminal."""


class ChangeJson(JsonEvents):
    """Receives the events of one run, which changes files or, as a dry run, only says how."""

    def __init__(
        self,
        write: Callable[[str], None],
        flush: Callable[[], None],
        clock: Callable[[], float],
        *,
        dry_run: bool,
    ) -> None:
        super().__init__(write, flush, clock)
        self._dry_run = dry_run

    def start(self) -> None:
        self.emit("start", dry_run=self._dry_run)
