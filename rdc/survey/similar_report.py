"""Similar files and overlapping folders, as `rdc similar` lists them: lines of text, names, and tables."""

from __future__ import annotations

from itertools import chain

from rdc.errors import printable
from rdc.model.similar import SimilarGroup
from rdc.report.output import counted, csv_name, null_names, percent, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rdc.model.similar import SimilarFile, SimilarFolders, SimilarReport


FILES_HEAD = "group,similarity,contained,size,path,path_b64,like,like_b64\n"
FOLDERS_HEAD = "overlap,shared,first_bytes,second_bytes,first,first_b64,second,second_b64\n"
"""Names of the columns. New columns may be added at the end."""


def listed_similar(report: SimilarReport, form: str, *, folders: bool) -> Iterator[str | bytes]:
    """List the results. `form`: "--null" for names as bytes, "--csv" for a table, otherwise text.

    `folders`: whether they are pairs of folders.
    """
    if form == "--null":
        yield from _names(report)
    elif form == "--csv":
        yield from _tables(report, folders=folders)
    else:
        yield from _texts(report)


def _texts(report: SimilarReport) -> Iterator[str]:
    """Yield the lines of all matches, then groups and pairs of folders with an empty line between two."""
    yield files_text(report.matches)
    groups = (files_text(group.files) for group in report.groups)
    for number, text in enumerate(chain(groups, map(folders_text, report.folders))):
        yield ("\n" if number else "") + text


def _names(report: SimilarReport) -> Iterator[bytes]:
    """Yield the names ended by NUL. Groups and pairs of folders end with one more, matches do not."""
    yield b"".join(file.path_bytes + b"\0" for file in report.matches)
    for group in report.groups:
        yield null_names(name for file in group.files for name in (file.path_bytes, *file.copies_bytes))
    for pair in report.folders:
        yield null_names((pair.first, pair.second))


def _tables(report: SimilarReport, *, folders: bool) -> Iterator[str]:
    """Yield the rows of a table below its heads. Each match is a group of its own."""
    yield FOLDERS_HEAD if folders else FILES_HEAD
    yield from map(folder_rows, report.folders)
    matches = (SimilarGroup((file,)) for file in report.matches)
    for number, group in enumerate(chain(matches, report.groups), 1):
        yield "".join(file_rows(number, group))


def files_text(files: Iterable[SimilarFile]) -> str:
    """Return one file per line: resemblance in per cent, size, name. Copies follow, indented after an equals
    sign."""
    lines = []
    for file in files:
        lines.append(f"{percent(file.similarity)}  {size_text(file.size):>9}  {printable(file.path_bytes)}")
        lines += [f"{'':16}= {printable(copy)}" for copy in file.copies_bytes]
    return "\n".join(lines) + "\n" if lines else ""


def folders_text(pair: SimilarFolders) -> str:
    """Overlap and shared bytes, then both folders with their sizes."""
    return (
        f"{percent(pair.overlap)}  {size_text(pair.shared):>9}\n"
        f"{size_text(pair.first_bytes):>17}  {printable(pair.first)}\n"
        f"{size_text(pair.second_bytes):>17}  {printable(pair.second)}\n"
    )


def file_rows(number: int, group: SimilarGroup) -> Iterator[str]:
    """Yield one file per row. A copy has the resemblance of the file that it equals."""
    for file in group.files:
        for path in (file.path_bytes, *file.copies_bytes):
            like = csv_name(file.like_bytes)
            yield f"{number},{file.similarity:.4f},{file.contained:.4f},{file.size},{csv_name(path)},{like}\n"


def folder_rows(pair: SimilarFolders) -> str:
    first, second = csv_name(pair.first), csv_name(pair.second)
    return f"{pair.overlap:.4f},{pair.shared},{pair.first_bytes},{pair.second_bytes},{first},{second}\n"


def similar_summary(report: SimilarReport) -> str:
    """`2 groups of 5 similar files, out of 123 with different content; 9 pairs compared, 4 below the
    threshold`."""
    summary = report.summary
    if summary is None:
        return ""
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
