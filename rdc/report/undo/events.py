"""An undo as JSON events, one per line."""

from __future__ import annotations

from rdc.model.undo import UndoItem
from rdc.report.json_events import ChangeJson, Value, path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.undo import UndoableSync, UndoReport

__all__ = ["UndoJson"]


class UndoJson(ChangeJson):
    """Receives the events of one undo."""

    def __call__(self, event: object, /) -> None:
        if isinstance(event, UndoItem):
            self.queue("item", {"action": event.action, **path_fields(event.path)})
        else:
            super().__call__(event)

    def listed(self, syncs: tuple[UndoableSync, ...]) -> None:
        for sync in syncs:
            fields: dict[str, Value] = {
                "number": sync.number,
                "began": sync.seconds,
                "entries": sync.entries,
                "bytes": sync.bytes,
                "complete": sync.complete,
                **({} if sync.left_alone is None else {"left_alone": sync.left_alone}),
            }
            self.emit("undoable", **fields)

    def finish(self, report: UndoReport) -> None:
        fields: dict[str, Value] = {
            **({} if report.number is None else {"number": report.number}),
            "restored": report.restored,
            "removed": report.removed,
            "moved": report.moved,
            "changed": report.changed,
            "left_alone": report.left_alone,
            "older": report.older,
        }
        self.summary(fields, report.exit)
