"""Groups of identical files as one self-contained page (rdc/report/html_page.py says what that promises)."""

from __future__ import annotations

import html
import os
from collections import Counter
from itertools import chain

from rdc.duplicates.report import uncovered
from rdc.errors import printable
from rdc.files.own.output_file import OutputKind
from rdc.report.html_page import PAGE_END, PageOrigin, Row, name_text, page_head, paragraph, section, table
from rdc.report.output import counted, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.model.duplicates import DirectoryGroup, DuplicateGroup, DuplicateReport

DUPLICATES_PAGE = OutputKind("a page of rdc dupes", lambda head: b"<title>rdc dupes</title>" in head)
"""page_head writes the mark."""

PAGE_BYTES = 1_300_000
"""Bytes of groups that a page shows, so that phones open it. The page counts the others."""

NAMES = 200
"""Files of one group that the page lists. The others are counted."""

FOLDERS = 20
FOLDERS_COUNTED = 100_000
"""Folders that are summed up apart from each other, to bound memory."""


def duplicates_page(report: DuplicateReport, origin: PageOrigin) -> Iterator[bytes]:
    """Yield the page in parts. The groups are read twice: for the sums of the folders, then for the list."""
    summary = report.summary
    found = f"{size_text(summary.waste)} in identical files could be saved"
    yield page_head("rdc dupes", found, origin).encode()
    totals = (
        f"{counted(summary.searched, 'entry', 'entries')} searched,"
        f" {counted(summary.groups, 'group')} of {counted(summary.files, 'identical file')}."
    )
    yield paragraph(totals).encode()
    advice = (
        "To share the blocks of identical files (btrfs, XFS), run rdc dedupe on the same paths; to delete all"
        " but one of each group, run rdc dupes --delete. Both change nothing without --apply."
    )
    yield paragraph(advice, "advice").encode()
    yield section("Folders with most duplicates", _folders(report)).encode()
    yield b"<section><h2>Groups</h2>\n"
    used = left = 0
    for text in chain(map(_directories, report.directories), map(_group, uncovered(report))):
        used += len(text)
        if used > PAGE_BYTES:
            left += 1
        else:
            yield text
    if left:
        more = f"{counted(left, 'further group')} are not shown; rdc dupes --csv lists all files."
        yield paragraph(more).encode()
    yield f"</section>\n{PAGE_END}".encode()


def duplicates_html(report: DuplicateReport) -> str:
    """Return the page, as made on this machine at this moment."""
    return b"".join(duplicates_page(report, PageOrigin.here())).decode()


def _folders(report: DuplicateReport) -> str:
    """Return the table of the folders that hold most of the bytes that could be saved."""
    wasted: Counter[bytes] = Counter()
    files: Counter[bytes] = Counter()
    for group in report.groups:
        for file in group.files[1:]:
            folder = os.path.dirname(file.path_bytes) or b"."
            if folder in wasted or len(wasted) < FOLDERS_COUNTED:
                wasted[folder] += group.size - file.unallocated
                files[folder] += 1
    ranked = sorted(wasted.items(), key=lambda item: (-item[1], item[0]))[:FOLDERS]
    most = max(wasted.values(), default=0) or 1
    rows = [
        Row(name_text(folder), (size_text(size), f"{files[folder]:,}"), (("twice", size / most),))
        for folder, size in ranked
    ]
    return table("Bytes in copies that could be saved, most first", ("folder", "bytes", "files"), rows)


def _directories(group: DirectoryGroup) -> bytes:
    """Return a group of directories: what each holds, and below it their names."""
    each = f"{counted(group.files, 'file')}, {size_text(group.bytes)}"
    copies = counted(len(group.paths_bytes), "directory", "directories")
    names = [f"<li>{html.escape(printable(path))}</li>" for path in group.paths_bytes[:NAMES]]
    if len(group.paths_bytes) > NAMES:
        names.append(f"<li>and {len(group.paths_bytes) - NAMES:,} more</li>")
    head = f"{size_text(group.waste)} could be saved: {copies} of {each}"
    return f"<details open><summary>{head}</summary><ol>{''.join(names)}</ol></details>\n".encode()


def _group(group: DuplicateGroup) -> bytes:
    """Return a group: its sum, and below it the names of its files."""
    files = f"{counted(len(group.files), 'file')} of {size_text(group.size)}"
    head = f"{size_text(group.waste)} could be saved: {files}"
    names = []
    for file in group.files[:NAMES]:
        others = "".join(f" = {printable(link)}" for link in file.links_bytes)
        names.append(f"<li>{html.escape(printable(file.path_bytes) + others)}</li>")
    if len(group.files) > NAMES:
        names.append(f"<li>and {len(group.files) - NAMES:,} more</li>")
    return f"<details open><summary>{head}</summary><ol>{''.join(names)}</ol></details>\n".encode()
