"""Near-duplicate documents as one self-contained page (rdc/report/html_page.py says what that promises)."""

from __future__ import annotations

import heapq
import html
from operator import attrgetter

from rdc.documents.report import difference_lines, document_name, documents_summary
from rdc.files.own.output_file import OutputKind
from rdc.report.html_page import (
    NAME_CHARACTERS,
    PAGE_END,
    PageOrigin,
    Row,
    cards,
    name_text,
    page_head,
    paragraph,
    section,
    table,
)
from rdc.report.output import counted, percent, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rdc.model.similar import Document, DocumentGroup, DocumentReport, SimilarDocument

TITLE = "Near-duplicate documents"

DOCUMENTS_PAGE = OutputKind("a page of documents", lambda head: f"<title>{TITLE}<".encode() in head)
"""page_head writes the mark."""

ROWS = 20
"""Groups and matches that the page shows: the largest and the most similar ones. The JSON events have all."""

NAMES = 40
"""Documents of one group that the page lists. The others are counted."""

PAGE_BYTES = 1_200_000
"""Bytes of groups that the page shows, so that phones open it."""

BINS = 25
"""Steps of resemblance that documents are counted by."""


class _Counts:
    """The figures of the page, from one pass over the results."""

    def __init__(self, report: DocumentReport) -> None:
        self.resemblances = [0] * BINS
        self.sizes: dict[int, int] = {}
        """Groups by the exponent of the power of two that their documents reach."""
        self.largest = heapq.nlargest(ROWS, self._groups(report), key=attrgetter("count"))
        """In order among those of equal size."""
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


def documents_page(report: DocumentReport, origin: PageOrigin) -> Iterator[bytes]:
    """Yield the page in parts."""
    counts = _Counts(report)
    sentence = documents_summary(report)
    yield page_head(TITLE, sentence[0].upper() + sentence[1:], origin).encode()
    yield cards(_cards(report)).encode()
    advice = (
        "rdc similar --text --write-kept=FILE lists the documents to keep; --clean=DIR writes them to new"
        " files. Neither changes the documents."
    )
    yield paragraph(advice, "advice").encode()
    yield section("How similar", _resemblances(counts.resemblances)).encode()
    yield section("Groups by size", _sizes(counts.sizes)).encode()
    yield section("Largest groups", *_groups(counts.largest, report.summary.groups)).encode()
    yield section("Documents most like the older corpus", _matches(counts.best)).encode()
    yield PAGE_END.encode()


def documents_html(report: DocumentReport) -> str:
    """Return the page, as made on this machine at this moment."""
    return b"".join(documents_page(report, PageOrigin.here())).decode()


def _cards(report: DocumentReport) -> Iterator[tuple[str, str, str]]:
    summary = report.summary
    yield "compared", counted(summary.documents, "document"), f"{size_text(summary.bytes)} of text"
    share = percent(summary.kept / summary.documents if summary.documents else 1)
    yield "to keep", f"{summary.kept:,}", f"{share.strip()} %"
    if summary.groups or not summary.grouped:
        yield "in groups", f"{summary.grouped:,}", counted(summary.groups, "group")
    else:
        yield "like an old one", f"{summary.grouped:,}", "of the older corpus"
    yield "with equal text", f"{summary.copies:,}", counted(summary.copies, "copy", "copies")


def _resemblances(bins: Sequence[int]) -> str:
    """Return the numbers of documents by resemblance, from the first bin with any."""
    most = max(bins)
    first = next((at for at, count in enumerate(bins) if count), BINS)
    rows = [
        Row(f"{at / BINS:.2f} to {(at + 1) / BINS:.2f}", (f"{bins[at]:,}",), (("kept", bins[at] / most),))
        for at in range(first, BINS)
    ]
    return table(
        "Documents by the share of text in common with the most similar one", ("share", "documents"), rows
    )


def _sizes(sizes: dict[int, int]) -> str:
    most = max(sizes.values(), default=1)
    rows = [
        Row(f"{2**at:,} to {2 ** (at + 1) - 1:,}", (f"{count:,}",), (("twice", count / most),))
        for at in range(1, max(sizes, default=0) + 1)
        for count in [sizes.get(at, 0)]
    ]
    return table("Groups by their number of documents", ("documents", "groups"), rows)


def _groups(largest: Sequence[DocumentGroup], total: int) -> Iterator[str]:
    """Yield groups up to PAGE_BYTES, and how many are not shown."""
    used = shown = 0
    for text in map(_group, largest):
        used += len(text)
        if shown and used > PAGE_BYTES:
            break
        shown += 1
        yield text
    if total > shown:
        yield paragraph(f"{counted(total - shown, 'further group')} not shown; rdc similar --text lists all.")


def _group(group: DocumentGroup) -> str:
    """Return a group: its number of documents and its label, and below it all of them."""
    documents = list(_documents(group))
    items = [
        f"<li>{percent(share)} % {_name(document)}{more}</li>" for share, document, more in documents[:NAMES]
    ]
    if len(documents) > NAMES:
        items.append(f"<li>and {len(documents) - NAMES:,} more</li>")
    head = f"{counted(group.count, 'document')}: {_name(group.label)}"
    return f"<details open><summary>{head}</summary><ol>{''.join(items)}</ol></details>\n"


def _documents(group: DocumentGroup) -> Iterator[tuple[float, Document, str]]:
    """Yield the documents of a group with their resemblance and their differences, as HTML. Copies follow."""
    for one in group.documents:
        yield one.resemblance, one.document, _differences(one)
        for copy in one.copies:
            yield 1.0, copy, f" = {_name(one.document)}"


def _differences(one: SimilarDocument) -> str:
    if not one.differences:
        return ""
    lines = [f"~ {_name(one.like)}"]
    for difference in one.differences:
        lines += [f"{sign} <code>{html.escape(text)}</code>" for sign, text in difference_lines(difference)]
    return "".join(f'<br><span class="soft">{line}</span>' for line in lines)


def _matches(best: Sequence[SimilarDocument]) -> str:
    rows = [
        Row(
            _name(one.document),
            (f"{one.resemblance:.3f}", document_name(one.like)[:NAME_CHARACTERS]),
            (("twice", one.resemblance),),
        )
        for one in best
    ]
    return table("Most similar first", ("document", "resemblance", "old document"), rows)


def _name(document: Document) -> str:
    """Return the name of a document as HTML."""
    row = f":{document.row}" if document.row else ""
    return name_text(document.path_bytes) + row
