"""Similar files and folders as lines of text, as names for programs, and as CSV tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rdc.errors import printable
from rdc.model.similar import SimilarFile, SimilarFolders, SimilarGroup, SimilarSummary
from rdc.report.names import csv_name
from rdc.report.sizes import counted, size_text

__all__ = [
    "FILES_HEAD",
    "FOLDERS_HEAD",
    "file_rows",
    "files_text",
    "folder_rows",
    "folders_text",
    "summary_text",
]

FILES_HEAD = "group,similarity,contained,size,path,path_b64,like,like_b64\n"
FOLDERS_HEAD = "overlap,shared,first_bytes,second_bytes,first,first_b64,second,second_b64\n"
"""Names of the columns. New columns may be added at the end."""


def files_text(files: Iterable[SimilarFile]) -> str:
    """One file per line: resemblance in per cent, size, name. Copies follow, indented after an equals
    sign."""
    lines = []
    for file in files:
        lines.append(f"{_percent(file.similarity)}  {size_text(file.size):>9}  {printable(file.path)}")
        lines += [f"{'':16}= {printable(copy)}" for copy in file.copies]
    return "\n".join(lines) + "\n" if lines else ""


def folders_text(pair: SimilarFolders) -> str:
    """Overlap and shared bytes, then both folders with their sizes."""
    return (
        f"{_percent(pair.overlap)}  {size_text(pair.shared):>9}\n"
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


def summary_text(summary: SimilarSummary) -> str:
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


def _percent(part: float) -> str:
    # Files that differ are never shown with 100 %.
    return f"{min(part * 100, 99.9 if part < 1 else 100.0):5.1f}"
