"""Identical files, similar files and overlapping folders: as lines of text, and as CSV tables."""

from __future__ import annotations

from rdc.errors import printable
from rdc.report.text import counted, csv_name, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.model.duplicates import DuplicateGroup, DuplicateSummary
    from rdc.model.similar import SimilarFile, SimilarFolders, SimilarGroup, SimilarSummary

__all__ = [
    "DUPLICATES_HEAD",
    "FILES_HEAD",
    "FOLDERS_HEAD",
    "duplicate_rows",
    "duplicates_summary",
    "duplicates_text",
    "file_rows",
    "files_text",
    "folder_rows",
    "folders_text",
    "percent",
    "similar_summary",
]

DUPLICATES_HEAD = "group,file,size,path,path_b64\n"
FILES_HEAD = "group,similarity,contained,size,path,path_b64,like,like_b64\n"
FOLDERS_HEAD = "overlap,shared,first_bytes,second_bytes,first,first_b64,second,second_b64\n"
"""Names of the columns. New columns may be added at the end."""


def duplicates_text(group: DuplicateGroup) -> str:
    """One file per line. Its other names follow, indented after an equals sign."""
    lines = []
    for file in group.files:
        lines.append(printable(file.path))
        lines += [f"  = {printable(link)}" for link in file.links]
    return "\n".join(lines) + "\n"


def duplicate_rows(number: int, group: DuplicateGroup) -> Iterator[str]:
    """One name per row. Rows with the same `file` number are names of one file.

    A name that is not plain text has escapes in `path` and its bytes in `path_b64`.
    """
    for position, file in enumerate(group.files, 1):
        for name in (file.path, *file.links):
            yield f"{number},{position},{group.size},{csv_name(name)}\n"


def duplicates_summary(summary: DuplicateSummary) -> str:
    """`123 groups, 456 files, 1.2 GB could be saved`."""
    groups, files = counted(summary.groups, "group"), counted(summary.files, "file")
    return f"{groups}, {files}, {size_text(summary.waste)} could be saved"


def files_text(files: Iterable[SimilarFile]) -> str:
    """One file per line: resemblance in per cent, size, name. Copies follow, indented after an equals
    sign."""
    lines = []
    for file in files:
        lines.append(f"{percent(file.similarity)}  {size_text(file.size):>9}  {printable(file.path)}")
        lines += [f"{'':16}= {printable(copy)}" for copy in file.copies]
    return "\n".join(lines) + "\n" if lines else ""


def folders_text(pair: SimilarFolders) -> str:
    """Overlap and shared bytes, then both folders with their sizes."""
    return (
        f"{percent(pair.overlap)}  {size_text(pair.shared):>9}\n"
        f"{size_text(pair.first_bytes):>17}  {printable(pair.first)}\n"
        f"{size_text(pair.second_bytes):>17}  {printable(pair.second)}\n"
    )


def file_rows(number: int, group: SimilarGroup) -> Iterator[str]:
    """One file per row. A copy has the resemblance of the file that it equals."""
    for file in group.files:
        for path in (file.path, *file.copies):
            like = csv_name(file.like)
            yield f"{number},{file.similarity:.4f},{file.contained:.4f},{file.size},{csv_name(path)},{like}\n"


def folder_rows(pair: SimilarFolders) -> str:
    first, second = csv_name(pair.first), csv_name(pair.second)
    return f"{pair.overlap:.4f},{pair.shared},{pair.first_bytes},{pair.second_bytes},{first},{second}\n"


def similar_summary(summary: SimilarSummary) -> str:
    """`2 groups of 5 similar files, out of 123 with different content; 9 pairs compared, 4 below the
    threshold`."""
    found = f"{counted(summary.groups, 'group')} of {counted(summary.grouped, 'similar file')}"
    text = found if summary.groups else "no similar files"
    text += f", out of {summary.files:,} with different content"
    if summary.candidates:
        text += f"; {counted(summary.candidates, 'pair')} compared"
    if summary.false_candidates:
        text += f", {summary.false_candidates:,} below the threshold"
    if summary.left_out:
        text += f"; {counted(summary.left_out, 'less likely pair')} not compared"
    return text


def percent(part: float) -> str:
    """Return a share in per cent. What differs is never shown with 100 %."""
    return f"{min(part * 100, 99.9 if part < 1 else 100.0):5.1f}"
