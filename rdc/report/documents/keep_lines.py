"""The documents that a training set keeps, as JSON lines."""

from __future__ import annotations

import json

from rdc.report.json_events import path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.model.documents import Document

__all__ = ["keep_lines"]


def keep_lines(documents: Iterable[Document]) -> Iterator[bytes]:
    """One object a document: `path`, `path_b64` if the path is not UTF-8, and `row` if it is a row."""
    for document in documents:
        fields = path_fields(document.path)
        if document.row:
            fields["row"] = document.row
        yield json.dumps(fields, separators=(",", ":")).encode() + b"\n"
