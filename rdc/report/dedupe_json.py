"""A deduplication as JSON events, one a line: the fields are a promise, versioned by `v`."""

from __future__ import annotations

import base64
from collections.abc import Callable

from rdc.errors import FileError, RdcError
from rdc.instances.events import DedupeEvent
from rdc.model.instances import DedupeReport, Instance
from rdc.progress import Problem, Progressed
from rdc.report.sync_json import PROGRESS_INTERVAL, Field, json_line, path_fields

__all__ = ["DedupeJson"]


class DedupeJson:
    """Takes the events of one run; `start` comes first, and `finish` or `fail` last."""

    def __init__(
        self,
        write: Callable[[str], None],
        flush: Callable[[], None],
        clock: Callable[[], float],
        *,
        dry_run: bool,
    ) -> None:
        """`clock` gives seconds that never go back."""
        self._write = write
        self._flush = flush
        self._clock = clock
        self._dry_run = dry_run
        self._started = clock()
        self._progress_at: dict[str, float] = {}

    def start(self) -> None:
        self._emit("start", dry_run=self._dry_run)

    def __call__(self, event: DedupeEvent, /) -> None:
        if isinstance(event, Instance):
            self._write(
                json_line(
                    "item",
                    action=event.action.value,
                    **path_fields(event.path),
                    **_source_fields(event.source),
                    bytes=event.bytes,
                    won=event.won,
                    perhaps=event.perhaps,
                )
            )
        elif isinstance(event, Progressed):
            self._progressed(event)
        elif isinstance(event, Problem):
            self._emit("error", code=int(event.code), **path_fields(event.path), message=event.message)

    def finish(self, report: DedupeReport, journal: bytes | None) -> None:
        self._emit(
            "summary",
            groups=report.groups,
            files=report.files,
            bytes=report.bytes,
            won=report.won,
            perhaps=report.perhaps,
            already=report.already,
            skipped=report.skipped,
            errors=report.errors,
            capped=report.capped,
            journal="" if journal is None else journal.decode("utf-8", "replace"),
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
        self._progress_at[event.phase] = now
        total: dict[str, Field] = {} if event.total is None else {"total": event.total}
        self._emit("progress", phase=event.phase, done=event.done, **total)

    def _emit(self, event: str, **fields: Field) -> None:
        self._write(json_line(event, **fields))
        self._flush()


def _source_fields(path: bytes) -> dict[str, Field]:
    """As `path_fields`, of the file that stays."""
    try:
        return {"source": path.decode("utf-8")}
    except UnicodeDecodeError:
        encoded = base64.b64encode(path).decode("ascii")
        return {"source": path.decode("utf-8", "replace"), "source_b64": encoded}
