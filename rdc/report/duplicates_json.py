"""Identical files as JSON events, one a line, in the form of the events of a sync."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, TypeAlias

from rdc.errors import ExitCode, FileError, RdcError
from rdc.progress import Event, Problem, Progressed
from rdc.report.sync_json import EVENT_VERSION, PROGRESS_INTERVAL, Field, path_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rdc.model.duplicates import DuplicateFile, DuplicateGroup, DuplicateSummary

__all__ = ["DuplicatesJson"]

Value: TypeAlias = "Field | list[dict[str, Value]]"


class DuplicatesJson:
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
        self._emit("start", {})

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, Problem):
            fields = {"code": int(event.code), **path_fields(event.path), "message": event.message}
            self._emit("error", fields)
        elif isinstance(event, Progressed):
            now = self._clock()
            if now - self._progressed >= PROGRESS_INTERVAL:
                self._progressed = now
                total = {} if event.total is None else {"total": event.total}
                self._emit("progress", {"phase": event.phase, "done": event.done, **total})

    def group(self, group: DuplicateGroup) -> None:
        files: list[dict[str, Value]] = [_file(file) for file in group.files]
        # Not flushed one by one: a million groups would be a million writes.
        self._write(_line("group", {"size": group.size, "waste": group.waste, "files": files}))

    def finish(self, summary: DuplicateSummary, code: ExitCode) -> None:
        self._emit(
            "summary",
            {
                "searched": summary.searched,
                "groups": summary.groups,
                "files": summary.files,
                "waste": summary.waste,
                "files_read": summary.files_read,
                "bytes_read": summary.bytes_read,
                "seconds": round(self._clock() - self._started, 3),
                "exit": int(code),
            },
        )

    def fail(self, error: RdcError) -> None:
        """The run ends here without a summary."""
        path = error.path if isinstance(error, FileError) else b""
        self._emit("error", {"code": int(error.code), **path_fields(path), "message": str(error)})

    def _emit(self, event: str, fields: Mapping[str, Value]) -> None:
        self._write(_line(event, fields))
        self._flush()


def _file(file: DuplicateFile) -> dict[str, Value]:
    fields: dict[str, Value] = {**path_fields(file.path)}
    if file.links:
        fields["links"] = [{**path_fields(link)} for link in file.links]
    return fields


def _line(event: str, fields: Mapping[str, Value]) -> str:
    text = json.dumps({"v": EVENT_VERSION, "event": event, **fields}, separators=(",", ":"))
    # As in rdc.report.sync_json: JSON lets DEL stand raw.
    return text.replace("\x7f", "\\u007f") + "\n"
