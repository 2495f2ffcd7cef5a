"""A sync as JSON events, one per line."""

from __future__ import annotations

from rdc.progress import ItemChanged, PlanKnown
from rdc.report.json_events import JsonEvents, Value, path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.sync_report import SyncReport

__all__ = ["SyncJson"]


class SyncJson(JsonEvents):
    """A Reporter that writes events."""

    def __call__(self, event: object, /) -> None:
        if isinstance(event, ItemChanged):
            self.queue("item", {"change": event.change, **path_fields(event.path)})
        elif isinstance(event, PlanKnown):
            self.emit("plan", files=event.files, bytes=event.bytes, deletes=event.deletes)
        else:
            super().__call__(event)

    def finish(self, report: SyncReport) -> None:
        fields: dict[str, Value] = {
            "files": report.files,
            "changed": report.changed,
            "deleted": report.deleted,
            "moved": report.moved,
            "bytes_sent": report.bytes_sent,
            "bytes_received": report.bytes_received,
            "literal_bytes": report.literal_bytes,
            "reused_bytes": report.reused_bytes,
            "round_trips": report.round_trips,
            "bytes_by_purpose": {purpose.value: size for purpose, size in report.by_purpose.items()},
        }
        self.summary(fields, report.exit)
