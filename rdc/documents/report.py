"""Near-duplicate documents as lines of text, and the list of those that a training set keeps."""

from __future__ import annotations

import json

from rdc.errors import printable
from rdc.files.own.output_file import OutputKind
from rdc.report.json_output import json_fields
from rdc.report.output import counted, percent, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.model.scan import ScanSlice
    from rdc.model.similar import Document, DocumentReport, DocumentSlice, SimilarDocument, TextDifference


def listed_documents(report: DocumentReport) -> Iterator[str]:
    """List the groups as text, then the matches."""
    for number, group in enumerate(report.groups):
        yield ("\n" if number else "") + "".join(map(document_text, group.documents))
    for one in report.matches:
        yield document_text(one, like=True)


def document_name(document: Document) -> str:
    """Return the path, followed by a colon and the row if it is one."""
    return printable(document.path_bytes) + (f":{document.row}" if document.row else "")


def document_text(one: SimilarDocument, *, like: bool = False) -> str:
    """Return a line with exact resemblance and estimate in per cent, size and name. Copies follow, indented
    after an equals sign, then differences: the most similar document after a tilde, and for each difference a
    line of it and a line of this document. `like`: the most similar document stands after an arrow."""
    figures = f"{percent(one.resemblance)} {'~' + percent(one.estimate).strip():>6}"
    name = document_name(one.document)
    arrow = f" -> {document_name(one.like)}" if like else ""
    lines = [f"{figures}  {size_text(one.document.size):>9}  {name}{arrow}"]
    lines += [f"{'':23}= {document_name(copy)}" for copy in one.copies]
    if one.differences:
        lines.append(f"{'':23}~ {document_name(one.like)}")
    for difference in one.differences:
        lines += [f"{'':23}{sign} {text}" for sign, text in difference_lines(difference)]
    return "\n".join(lines) + "\n"


def difference_lines(difference: TextDifference) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return a minus and the words of the other document, and a plus and those of this one. Brackets enclose
    what differs. Other characters than those of plain text are escaped."""
    before, after = printable(difference.before), printable(difference.after)
    like, here = (
        " ".join(filter(None, (before, f"[{printable(text)}]", after)))
        for text in (difference.like, difference.here)
    )
    return ("-", like), ("+", here)


def documents_summary(report: DocumentReport) -> str:
    """`2 groups of 5 documents, out of 123; 120 are kept; 1 copy; 9 pairs compared, 3 similar`."""
    summary = report.summary
    if summary.groups:
        found = f"{counted(summary.groups, 'group')} of {counted(summary.grouped, 'document')}"
    elif summary.grouped:
        found = f"{counted(summary.grouped, 'document')} with one like it in the older corpus"
    else:
        found = "no similar documents"
    text = f"{found}, out of {summary.documents:,}; {summary.kept:,} to keep"
    if summary.copies:
        text += f"; {counted(summary.copies, 'copy', 'copies')}"
    if summary.candidates:
        text += f"; {counted(summary.candidates, 'pair')} compared, {summary.pairs:,} similar"
    unread = summary.left_out - summary.pairs_left_out
    if unread:
        text += f"; {unread:,} could not be read"
    if summary.pairs_left_out:
        text += f"; up to {counted(summary.pairs_left_out, 'pair')} left out"
    return text


def slice_text(found: DocumentSlice, slice_: ScanSlice) -> str:
    """`slice 1/8: 123 documents, 4.5 MB of text; rdc merge adds slices up`."""
    text = f"slice {slice_}: {counted(found.documents, 'document')}, {size_text(found.bytes)} of text"
    if found.left_out:
        text += f"; {found.left_out:,} could not be read"
    return f"{text}; rdc merge adds slices up"


_FIELDS = {"path", "path_b64", "row"}


def keep_lines(documents: Iterable[Document]) -> Iterator[bytes]:
    """Yield one object a document: `path`, `path_b64` if the path is not UTF-8, and `row` if it is a row."""
    for document in documents:
        yield json.dumps(json_fields(document), separators=(",", ":")).encode() + b"\n"


def _begins(head: bytes) -> bool:
    """Return whether the first line names a document and has no other fields, unlike a line of a corpus."""
    line, end, _ = head.partition(b"\n")
    try:
        fields = json.loads(line) if end else None
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "path" in fields and fields.keys() <= _FIELDS


DOCUMENT_LIST = OutputKind("a list of documents to keep", _begins)
