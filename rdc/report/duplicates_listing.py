"""Groups of identical files as lines of text, as names for programs, and as a CSV table."""

from __future__ import annotations

from collections.abc import Iterator

from rdc.errors import printable
from rdc.model.duplicates import DuplicateGroup, DuplicateSummary
from rdc.report.names import csv_name
from rdc.report.sizes import counted, size_text

__all__ = ["CSV_HEAD", "csv_lines", "summary_text", "text_lines"]

CSV_HEAD = "group,file,size,path,path_b64\n"
"""Names of the columns. New columns may be added at the end."""


def text_lines(group: DuplicateGroup) -> str:
    """One file per line. Its other names follow, indented after an equals sign."""
    lines = []
    for file in group.files:
        lines.append(printable(file.path))
        lines += [f"  = {printable(link)}" for link in file.links]
    return "\n".join(lines) + "\n"


def csv_lines(number: int, group: DuplicateGroup) -> Iterator[str]:
    """One name per row. Rows with the same `file` number are names of one file.

    A name that is not plain text has escapes in `path` and its bytes in `path_b64`.
    """
    for position, file in enumerate(group.files, 1):
        for name in (file.path, *file.links):
            yield f"{number},{position},{group.size},{csv_name(name)}\n"


def summary_text(summary: DuplicateSummary) -> str:
    """`123 groups, 456 files, 1.2 GB could be saved`."""
    groups, files = counted(summary.groups, "group"), counted(summary.files, "file")
    return f"{groups}, {files}, {size_text(summary.waste)} could be saved"
