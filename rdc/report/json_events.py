"""Events as JSON, one a line: what scripts read. The fields are a promise, versioned by `v`."""

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

__all__ = ["EVENT_VERSION", "PROGRESS_INTERVAL", "Field", "JsonEvents", "Value", "json_line", "path_fields"]

EVENT_VERSION = 1
"""`v` of each event; fields may be added under one version, never renamed or removed."""

PROGRESS_INTERVAL = 0.2
"""Seconds between progress events of one phase: five a second are enough for any display and cost nothing."""

Field: TypeAlias = str | int | float
"""One value of an event."""

Value: TypeAlias = "Field | list[dict[str, Value]] | dict[str, Value]"
"""One that may have parts."""


def json_line(event: str, **fields: Value) -> str:
    """One event as a line of ASCII without control characters, whatever its strings hold."""
    text = json.dumps({"v": EVENT_VERSION, "event": event, **fields}, separators=(",", ":"))
    # JSON lets DEL stand raw; terminals do not have to. It can only occur inside a string.
    return text.replace("\x7f", "\\u007f") + "\n"


def path_fields(path: bytes, name: str = "path") -> dict[str, Field]:
    """`path`, and `path_b64` where it is not UTF-8 and `path` therefore shows replacement characters; with
    another `name`, these."""
    try:
        return {name: path.decode("utf-8")}
    except UnicodeDecodeError:
        encoded = base64.b64encode(path).decode("ascii")
        return {name: path.decode("utf-8", "replace"), f"{name}_b64": encoded}


class JsonEvents:
    """What all verbs' events have in common: `start` comes first, and a summary or `fail` last."""

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

    @property
    def seconds(self) -> float:
        """Since it was made, as a summary shows them."""
        return round(self._clock() - self._started, 3)

    def start(self) -> None:
        self.tell("start")

    def tell(self, event: str, **fields: Value) -> None:
        """One event, written out at once."""
        self.queue(event, fields)
        self._flush()

    def queue(self, event: str, fields: Mapping[str, Value]) -> None:
        """One of many, which goes out with the next that is told: a million of them would be a million
        writes."""
        self._write(json_line(event, **fields))

    def __call__(self, event: object, /) -> None:
        """A Reporter for trouble and progress; what else a verb tells of is up to its class."""
        if isinstance(event, Problem):
            self._problem(event)
        elif isinstance(event, Progressed):
            self._progressed(event)

    def summary(self, fields: Mapping[str, Value], code: ExitCode) -> None:
        """The last event of a run that came to its end."""
        self.tell("summary", **fields, seconds=self.seconds, exit=int(code))

    def _problem(self, event: Problem) -> None:
        self.tell("error", code=int(event.code), **path_fields(event.path), message=event.message)

    def _progressed(self, event: Progressed) -> None:
        """Not more often than PROGRESS_INTERVAL but for the last one of a phase, and never backwards."""
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
        self.tell("progress", phase=event.phase, done=event.done, **total)

    def fail(self, error: RdcError) -> None:
        """The run ends here without a report."""
        path = error.path if isinstance(error, FileError) else b""
        self.tell("error", code=int(error.code), **path_fields(path), message=str(error))

    def close(self) -> None:
        """Nothing is left on a terminal."""
