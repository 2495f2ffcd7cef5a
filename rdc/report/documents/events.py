"""Near-duplicate documents as JSON events, one per line."""

from __future__ import annotations

from rdc.records import asdict
from rdc.report.json_events import JsonEvents, Value, path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.errors import ExitCode
    from rdc.model.documents import Document, DocumentGroup, DocumentSummary, SimilarDocument

__all__ = ["DocumentsJson"]


class DocumentsJson(JsonEvents):
    """Adds `group` and `match` to the events of every command."""

    def group(self, group: DocumentGroup) -> None:
        self.queue("group", {"count": group.count, "documents": [_similar(one) for one in group.documents]})

    def match(self, one: SimilarDocument) -> None:
        self.queue("match", _similar(one))

    def finish(self, summary: DocumentSummary, code: ExitCode) -> None:
        self.summary(asdict(summary), code)


def _similar(one: SimilarDocument) -> dict[str, Value]:
    fields: dict[str, Value] = {
        **_named(one.document),
        "size": one.document.size,
        "resemblance": round(one.resemblance, 4),
        "estimate": round(one.estimate, 4),
        "like": _named(one.like),
    }
    if one.copies:
        fields["copies"] = [_named(copy) for copy in one.copies]
    return fields


def _named(document: Document) -> dict[str, Value]:
    fields: dict[str, Value] = {**path_fields(document.path)}
    if document.row:
        fields["row"] = document.row
    return fields
