"""Near-duplicate documents: as lines of text, as the list of those that a training set keeps, and as one
self-contained page with pictures, without scripts and without the network.
"""

from __future__ import annotations

import heapq
import html
import json
from operator import attrgetter

from rdc.errors import printable
from rdc.files.own.output_file import OutputKind
from rdc.report.json_output import json_fields
from rdc.report.output import counted, percent, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rdc.model.scan import ScanSlice
    from rdc.model.similar import Document, DocumentGroup, DocumentReport, DocumentSlice, SimilarDocument


def listed_documents(report: DocumentReport) -> Iterator[str]:
    """List the groups as text, then the matches."""
    for number, group in enumerate(report.groups):
        yield ("\n" if number else "") + "".join(map(document_text, group.documents))
    for one in report.matches:
        yield document_text(one, like=True)


def document_name(document: Document) -> str:
    """The path, and behind a colon the row, if it is one."""
    return printable(document.path_bytes) + (f":{document.row}" if document.row else "")


def document_text(one: SimilarDocument, *, like: bool = False) -> str:
    """A line with exact resemblance and estimate in per cent, size and name. Copies follow, indented after an
    equals sign. `like`: also the document that it resembles, behind an arrow."""
    figures = f"{percent(one.resemblance)} {'~' + percent(one.estimate).strip():>6}"
    name = document_name(one.document)
    arrow = f" -> {document_name(one.like)}" if like else ""
    lines = [f"{figures}  {size_text(one.document.size):>9}  {name}{arrow}"]
    lines += [f"{'':23}= {document_name(copy)}" for copy in one.copies]
    return "\n".join(lines) + "\n"


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
    """One object a document: `path`, `path_b64` if the path is not UTF-8, and `row` if it is a row."""
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


ROWS = 20
"""Groups and matches in the tables, the largest and the most alike ones. The JSON events have all."""

NAMES = 8
"""Documents of a group in its table row."""

BINS = 25

_HEAD = """<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Near-duplicate documents</title>
<style>
body{font:15px/1.5 system-ui,sans-serif;color:#1c2430;margin:2rem auto;max-width:70rem;padding:0 1rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}
ul{display:flex;flex-wrap:wrap;gap:1rem;padding:0;list-style:none}
li{border:1px solid #dbe1e8;border-radius:6px;padding:.6rem 1rem}li b{display:block;font-size:1.3rem}
table{border-collapse:collapse;width:100%}td,th{text-align:left;padding:.3rem .6rem;vertical-align:top;
border-bottom:1px solid #eceff3;white-space:pre-line;overflow-wrap:anywhere}
svg{max-width:100%;height:auto}svg rect{fill:#1f5fa8}svg text{font:12px system-ui,sans-serif;fill:#1c2430}
</style></head><body>
"""


DOCUMENTS_PAGE = OutputKind("a page of documents", lambda head: b"<title>Near-duplicate documents<" in head)


class _Counts:
    """The counts for pictures and tables, made in one pass over the results."""

    def __init__(self, report: DocumentReport) -> None:
        self.resemblances = [0] * BINS
        self.sizes: dict[int, int] = {}
        """Groups by the exponent of the power of two that their documents reach."""
        self.largest = heapq.nlargest(ROWS, self._groups(report), key=attrgetter("count"))
        """The first ones in order, of equal sizes."""
        self.best = heapq.nlargest(ROWS, self._matches(report), key=attrgetter("resemblance"))

    def _groups(self, report: DocumentReport) -> Iterator[DocumentGroup]:
        for group in report.groups:
            exponent = group.count.bit_length() - 1
            self.sizes[exponent] = self.sizes.get(exponent, 0) + 1
            self._count(group.documents)
            yield group

    def _matches(self, report: DocumentReport) -> Iterator[SimilarDocument]:
        for one in report.matches:
            self._count((one,))
            yield one

    def _count(self, documents: Sequence[SimilarDocument]) -> None:
        for one in documents:
            if one.resemblance < 1 or one.like not in one.copies:
                self.resemblances[min(int(one.resemblance * BINS), BINS - 1)] += 1


def documents_page(report: DocumentReport) -> Iterator[bytes]:
    """The page, in spans."""
    counts = _Counts(report)
    summary = report.summary
    yield _HEAD.encode()
    yield f"<h1>{html.escape(_sentence(documents_summary(report)))}</h1><ul>".encode()
    for value, what in (
        (f"{summary.documents:,}", f"documents, {size_text(summary.bytes)} of text"),
        (f"{summary.kept:,}", "to keep"),
        (f"{summary.grouped:,}", "like another" if not summary.groups else counted(summary.groups, "group")),
        (f"{summary.copies:,}", "of equal text"),
    ):
        yield f"<li><b>{html.escape(value)}</b>{html.escape(what)}</li>".encode()
    yield b"</ul>"
    bins = [(f"{at / BINS:.2f}", count) for at, count in enumerate(counts.resemblances)]
    first = next((at for at, (_, count) in enumerate(bins) if count), BINS)
    if first < BINS:
        yield _chart("How alike: documents by the resemblance with the one most like them", bins[first:])
    if counts.sizes:
        rows = [(f"{2**at:,}+", counts.sizes.get(at, 0)) for at in range(1, max(counts.sizes) + 1)]
        yield _chart("Groups by their number of documents", rows)
    yield _table(
        "Largest groups",
        ("documents", "the least", "others"),
        [_group_row(group) for group in counts.largest],
    )
    yield _table(
        "Documents most like one of the older corpus",
        ("resemblance", "document", "old document"),
        [
            (f"{one.resemblance:.3f}", document_name(one.document), document_name(one.like))
            for one in counts.best
        ],
    )
    yield b"</body></html>\n"


def _group_row(group: DocumentGroup) -> tuple[str, str, str]:
    names = [document_name(document) for one in group.documents for document in (one.document, *one.copies)]
    shown = sorted(names[1:])[:NAMES]
    if len(names) - 1 > NAMES:
        shown.append(f"and {len(names) - 1 - NAMES:,} more")
    return f"{group.count:,}", names[0], "\n".join(shown)


def _chart(title: str, rows: Sequence[tuple[str, int]]) -> bytes:
    """Horizontal bars, one a row, with their counts."""
    most = max(count for _, count in rows)
    bars = "".join(
        f'<text x="60" y="{20 * at + 14}" text-anchor="end">{html.escape(name)}</text>'
        f'<rect x="70" y="{20 * at + 3}" width="{600 * count / most:.1f}" height="14"></rect>'
        f'<text x="{76 + 600 * count / most:.1f}" y="{20 * at + 14}">{count:,}</text>'
        for at, (name, count) in enumerate(rows)
    )
    height = 20 * len(rows) + 6
    return (
        f'<h2>{html.escape(title)}</h2><svg viewBox="0 0 760 {height}" width="760" height="{height}"'
        f' role="img" aria-label="{html.escape(title)}">{bars}</svg>'
    ).encode()


def _table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> bytes:
    if not rows:
        return b""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    return f"<h2>{html.escape(title)}</h2><table><tr>{head}</tr>{body}</table>".encode()


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:]
