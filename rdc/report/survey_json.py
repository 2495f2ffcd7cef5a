"""The JSON events of every survey: start, progress, error, summary; one a line, as those of a sync."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from rdc.errors import ExitCode, FileError, RdcError
from rdc.progress import Event, Problem, Progressed
from rdc.report.sync_json import EVENT_VERSION, PROGRESS_INTERVAL, Field, path_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["SurveyJson", "Value"]

Value: TypeAlias = "Field | list[dict[str, Value]] | dict[str, Value]"


class SurveyJson:
    """A Reporter that writes events; `start` comes first, and `finish` or `fail` last."""

    def __init__(
        self, write: Callable[[str], None], flush: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        """`clock` gives seconds that never go back."""
        self._write = write
        self._flush = flush
        self._clock = clock
        self._started = clock()
        self._progressed = float("-inf")

    def start(self) -> None:
        self.emit("start", {})
        self._flush()

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            self.emit("error", {"code": int(event.code), **path_fields(event.path), "message": event.message})
            self._flush()
        elif isinstance(event, Progressed):
            now = self._clock()
            if now - self._progressed >= PROGRESS_INTERVAL:
                self._progressed = now
                total = {} if event.total is None else {"total": event.total}
                self.emit("progress", {"phase": event.phase, "done": event.done, **total})
                self._flush()

    def emit(self, event: str, fields: Mapping[str, Value]) -> None:
        """Not flushed one by one: a million groups would be a million writes."""
        text = json.dumps({"v": EVENT_VERSION, "event": event, **fields}, separators=(",", ":"))
        # As in rdc.report.sync_json: JSON lets DEL stand raw.
        self._write(text.replace("\x7f", "\\u007f") + "\n")

    def finish(self, summary: Mapping[str, Value], code: ExitCode) -> None:
        self.emit(
            "summary", {**summary, "seconds": round(self._clock() - self._started, 3), "exit": int(code)}
        )
        self._flush()

    def fail(self, error: RdcError) -> None:
        """The run ends here without a summary."""
        path = error.path if isinstance(error, FileError) else b""
        self.emit("error", {"code": int(error.code), **path_fields(path), "message": str(error)})
        self._flush()
