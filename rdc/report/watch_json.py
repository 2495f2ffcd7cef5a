"""A watch as JSON events, one a line: those of a sync, and one for each turn and each trouble."""

from __future__ import annotations

from collections.abc import Callable

from rdc.errors import RdcError
from rdc.model.watch import Disconnected, Halted, InStep, Limited, Resumed, WatchEvent, WatchReport
from rdc.progress import Event
from rdc.report.sync_json import SyncJson, json_line

__all__ = ["WatchJson"]


class WatchJson:
    """`start` comes first, `finish` or `fail` last; every event but `item` is written out at once, an item
    with the turn that it belongs to."""

    def __init__(
        self, write: Callable[[str], None], flush: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        """`clock` gives seconds that never go back."""
        self._write = write
        self._flush = flush
        self._clock = clock
        self._began = clock()
        self._sync = SyncJson(write, flush, clock)

    def start(self) -> None:
        self._sync.start()

    def report(self, event: Event) -> None:
        self._sync(event)

    def tell(self, event: WatchEvent) -> None:
        if isinstance(event, InStep):
            line = json_line(
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
            line = json_line("halted", message=event.reason)
        elif isinstance(event, Resumed):
            line = json_line("resumed")
        elif isinstance(event, Limited):
            line = json_line("limited", message=event.reason, seconds=event.seconds)
        elif isinstance(event, Disconnected):
            line = json_line("disconnected", message=event.reason, seconds=round(event.seconds, 3))
        self._write(line)
        self._flush()

    def finish(self, report: WatchReport) -> None:
        self._write(
            json_line(
                "stopped",
                turns=report.turns,
                changed=report.changed,
                deleted=report.deleted,
                bytes_sent=report.bytes_sent,
                bytes_received=report.bytes_received,
                errors=report.errors,
                seconds=round(self._clock() - self._began, 3),
            )
        )
        self._flush()

    def fail(self, error: RdcError) -> None:
        self._sync.fail(error)

    def close(self) -> None:
        """Nothing is left on a terminal."""
