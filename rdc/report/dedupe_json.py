"""A deduplication as JSON events, one per line."""

from __future__ import annotations

from rdc.model.instances import DedupeReport, Instance
from rdc.report.json_events import ChangeJson, Value, path_fields

__all__ = ["DedupeJson"]


class DedupeJson(ChangeJson):
    """Receives the events of one run."""

    def __call__(self, event: object, /) -> None:
        if isinstance(event, Instance):
            fields = {
                "action": event.action.value,
                **path_fields(event.path),
                **path_fields(event.source, "source"),
                "bytes": event.bytes,
                "won": event.won,
                "perhaps": event.perhaps,
                "compressed": event.compressed,
                "held": event.held,
                **(path_fields(event.destination, "destination") if event.destination else {}),
            }
            self.queue("item", fields)
        else:
            super().__call__(event)

    def finish(self, report: DedupeReport, journal: bytes | None) -> None:
        fields: dict[str, Value] = {
            "groups": report.groups,
            "files": report.files,
            "bytes": report.bytes,
            "won": report.won,
            "perhaps": report.perhaps,
            "compressed": report.compressed,
            "held": report.held,
            "already": report.already,
            "skipped": report.skipped,
            "errors": report.errors,
            "capped": report.capped,
            "journal": "" if journal is None else journal.decode("utf-8", "replace"),
        }
        self.summary(fields, report.exit)
