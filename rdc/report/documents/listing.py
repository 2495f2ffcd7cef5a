"""Near-duplicate documents as lines of text."""

from __future__ import annotations

from rdc.errors import printable
from rdc.report.sizes import counted, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.documents import Document, DocumentSlice, DocumentSummary, SimilarDocument
    from rdc.model.scan import ScanSlice

__all__ = ["document_name", "document_text", "slice_text", "summary_text"]


def document_name(document: Document) -> str:
    """The path, and behind a colon the row, if it is one."""
    return printable(document.path) + (f":{document.row}" if document.row else "")


def document_text(one: SimilarDocument, *, like: bool = False) -> str:
    """A line with exact resemblance and estimate in per cent, size and name. Copies follow, indented after an
    equals sign. `like`: also the document that it resembles, behind an arrow."""
    figures = f"{_percent(one.resemblance)} {'~' + _percent(one.estimate).strip():>6}"
    name = document_name(one.document)
    arrow = f" -> {document_name(one.like)}" if like else ""
    lines = [f"{figures}  {size_text(one.document.size):>9}  {name}{arrow}"]
    lines += [f"{'':23}= {document_name(copy)}" for copy in one.copies]
    return "\n".join(lines) + "\n"


def summary_text(summary: DocumentSummary) -> str:
    """`2 groups of 5 documents, out of 123; 120 are kept; 1 copy; 9 pairs compared, 3 similar`."""
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


def _percent(part: float) -> str:
    # Sets that differ are never shown with 100 %.
    return f"{min(part * 100, 99.9 if part < 1 else 100.0):5.1f}"
