"""A watch as JSON events, one per line: those of a sync, and one per turn and per problem."""

from __future__ import annotations

from collections.abc import Callable

from rdc.errors import RdcError
from rdc.model.watch import Disconnected, Halted, InStep, Limited, Resumed, WatchEvent, WatchReport
from rdc.progress import Event
from rdc.report.sync_json import SyncJson

__all__ = ["WatchJson"]


class WatchJson:
    """`start` comes first, `finish` or `fail` last. Every event is written at once, except `item`, which is
    written with its turn."""

    def __init__(
        self, write: Callable[[str], None], flush: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        """`clock` returns seconds and never goes back."""
        self._sync = SyncJson(write, flush, clock)

    def start(self) -> None:
        self._sync.start()

    def report(self, event: Event) -> None:
        self._sync(event)

    def emit(self, event: WatchEvent) -> None:
        emit = self._sync.emit
        if isinstance(event, InStep):
            emit(
                "in_step",
                whole=event.whole,
                files=event.files,
                changed=event.changed,
                deleted=event.deleted,
                bytes_sent=event.bytes_sent,
                bytes_received=event.bytes_received,
                seconds=round(event.seconds, 3),
            )
        elif isinstance(event, Halted):
            emit("halted", message=event.reason)
        elif isinstance(event, Resumed):
            emit("resumed")
        elif isinstance(event, Limited):
            emit("limited", message=event.reason, seconds=event.seconds)
        elif isinstance(event, Disconnected):
            emit("disconnected", message=event.reason, seconds=round(event.seconds, 3))

    def finish(self, report: WatchReport) -> None:
        self._sync.emit(
            "stopped",
            turns=report.turns,
            changed=report.changed,
            deleted=report.deleted,
            bytes_sent=report.bytes_sent,
            bytes_received=report.bytes_received,
            errors=report.errors,
            seconds=self._sync.seconds,
        )

    def fail(self, error: RdcError) -> None:
        self._sync.fail(error)

    def close(self) -> None:
        """Does nothing: there is nothing to remove from a terminal."""
