"""A sync as JSON events, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rdc.progress import Event, ItemChanged, PlanKnown, Problem, Progressed
from rdc.report.json_events import JsonEvents, path_fields

if TYPE_CHECKING:
    from rdc.model.sync import SyncReport

__all__ = ["SyncJson"]


class SyncJson(JsonEvents):
    """A Reporter that writes events."""

    def __call__(self, event: Event, /) -> None:
        if isinstance(event, ItemChanged):
            self.queue("item", {"change": event.change, **path_fields(event.path)})
        elif isinstance(event, PlanKnown):
            self.tell("plan", files=event.files, bytes=event.bytes, deletes=event.deletes)
        elif isinstance(event, Progressed):
            self.progressed(event)
        elif isinstance(event, Problem):
            self.problem(event)

    def finish(self, report: SyncReport) -> None:
        self.tell(
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
            seconds=self.seconds,
            exit=int(report.exit),
        )
