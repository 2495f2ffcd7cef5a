"""The documents that a training set keeps, as JSON lines."""

from __future__ import annotations

import json

from rdc.files.own.output_file import OutputKind
from rdc.report.json_events import path_fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.model.documents import Document

__all__ = ["DOCUMENT_LIST", "keep_lines"]

_FIELDS = {"path", "path_b64", "row"}


def keep_lines(documents: Iterable[Document]) -> Iterator[bytes]:
    """One object a document: `path`, `path_b64` if the path is not UTF-8, and `row` if it is a row."""
    for document in documents:
        fields = path_fields(document.path)
        if document.row:
            fields["row"] = document.row
        yield json.dumps(fields, separators=(",", ":")).encode() + b"\n"


def _begins(head: bytes) -> bool:
    """Whether the first line names a document and has no other fields, unlike a line of a corpus."""
    line, end, _ = head.partition(b"\n")
    try:
        fields = json.loads(line) if end else None
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "path" in fields and fields.keys() <= _FIELDS


DOCUMENT_LIST = OutputKind("a list of documents to keep", _begins)
