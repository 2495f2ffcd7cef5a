"""A check as JSON events, one per line."""

from __future__ import annotations

from rdc.report.json_events import JsonEvents, Value, path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.check import CheckReport, EntryDiffers

__all__ = ["CheckJson"]


class CheckJson(JsonEvents):
    """A Reporter that writes events."""

    def differs(self, found: EntryDiffers) -> None:
        fields: dict[str, Value] = {"aspects": " ".join(found.aspects.names), **path_fields(found.path)}
        self.queue("difference", fields)

    def finish(self, report: CheckReport) -> None:
        fields: dict[str, Value] = {
            "entries": report.entries,
            "different": report.different,
            "missing": report.missing,
            "extra": report.extra,
            "files": report.files,
            "bytes": report.total_bytes,
            "files_compared": report.files_compared,
            "bytes_compared": report.bytes_compared,
            "bytes_sent": report.bytes_sent,
            "bytes_received": report.bytes_received,
            "round_trips": report.round_trips,
        }
        self.summary(fields, report.exit)
