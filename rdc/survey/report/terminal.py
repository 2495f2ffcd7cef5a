"""A scan report on a terminal: tables drawn by rich, the headline first."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.own.output_file import Output, OutputKind, make_directory, write_output
from rdc.report.output import counted, plain_text, size_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from rich.console import Console

    from rdc.model.scan import DirectorySummary, LevelSummary, ScanReport, TypeSummary
    from rdc.report.json_output import Value


# A scan report for programs: one JSON document, CSV, Parquet files. And its headline, which all forms have.
#
# scan.schema.json beside this file defines the JSON document.

HEADLINE_LEVEL = "cdc-16384"


def headline(report: ScanReport) -> str:
    """Return one line: what 16 KiB chunks save, what compression adds, and whether everything was read."""
    level = report.level(HEADLINE_LEVEL)
    if level is None or not level.bytes:
        return "nothing to save: no content was read"
    about = "" if level.exact else "about "
    text = f"{level_title(level.name)} save {about}{percent(saved_share(level, level.unique_bytes))}"
    if level.compressed_bytes is not None:
        text += f", zstd after them {percent(saved_share(level, level.compressed_bytes))}"
    return text if report.coverage.complete else f"{text}, of what was read"


def saved_share(level: LevelSummary, stored: int) -> float:
    """Return the share of the level's bytes that is saved if `stored` bytes remain: 0 to 1; 0 for an empty
    level."""
    return max(0.0, 1 - stored / level.bytes) if level.bytes else 0.0


def percent(share: float) -> str:
    """`31 %`; `0.4 %` below ten, where the digit matters; 100 % only if exact."""
    value = 100 * share
    if 99.5 <= value < 100:
        return "99.9 %"
    return f"{value:.0f} %" if value >= 9.95 or value == 0 else f"{value:.1f} %"


def level_title(name: str) -> str:
    """`16 KiB chunks`, `4 KiB blocks`, `whole files`."""
    kind, _, size = name.partition("-")
    if kind == "file":
        return "whole files"
    return f"{int(size) >> 10} KiB {'blocks' if kind == 'fixed' else 'chunks'}"


SCHEMA = 1
"""`schema` of the document. Within one schema, fields may be added but never renamed or removed."""


def scan_json(report: ScanReport) -> str:
    """Return the document as one line of ASCII without control characters, whatever names it contains."""
    import json

    return json.dumps(scan_document(report)).replace("\x7f", "\\u007f") + "\n"


def scan_document(report: ScanReport) -> dict[str, Value]:
    """Return the document that scan.schema.json defines. A path that is not UTF-8 has `NAME_b64` beside
    `NAME`."""
    from rdc.report.json_output import json_fields

    return {"schema": SCHEMA, "headline": headline(report), **json_fields(report)}


TABLES = ("levels", "directories", "types", "overlaps", "errors")

CsvValue = str | int | float | bool | None


def scan_csv(report: ScanReport, table: str) -> str:
    """Return one of TABLES with a header line. Control characters and bytes that are not UTF-8 appear as
    \\xNN."""
    import csv
    import io

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    head, rows = table_rows(report, table)
    writer.writerow(head)
    writer.writerows(
        [plain_text(value) if isinstance(value, str) else value for value in row] for row in rows
    )
    return text.getvalue()


def table_rows(report: ScanReport, table: str) -> tuple[Sequence[str], list[Sequence[CsvValue]]]:
    """Return the names of the columns, and the rows, of one of TABLES."""
    if table == "levels":
        head = ["name", "mean_bytes", "chunks", "bytes", "unique_chunks", "unique_bytes", "ratio"]
        head += ["exact", "low", "high", "compressed_bytes", "compressed_low", "compressed_high"]
        return head, [[getattr(level, name) for name in head] for level in report.levels]
    if table == "directories":
        head = ["path", "files", "bytes", "duplicate_bytes", "own_bytes", "own_duplicate_bytes"]
        return head, [
            [printable(one.path_bytes), *(getattr(one, name) for name in head[1:])]
            for one in report.directories
        ]
    if table == "types":
        head = ["name", "files", "bytes", "duplicate_bytes"]
        return head, [
            [printable(one.name), *(getattr(one, name) for name in head[1:])] for one in report.types
        ]
    if table == "overlaps":
        head = ["first", "second", "shared_bytes", "first_bytes", "second_bytes"]
        return head, [
            [printable(one.first), printable(one.second), *(getattr(one, name) for name in head[2:])]
            for one in report.overlaps
        ]
    return ["path", "message", "code"], [
        [printable(one.path_bytes), one.message, int(one.code)] for one in report.errors
    ]


_PARQUET = OutputKind("a Parquet file", lambda head: head.startswith(b"PAR1"))


def parquet_outputs(directory: str, *, overwrite: bool) -> list[Output]:
    """Return the files that `write_parquet` writes: levels.parquet, directories.parquet and so on."""
    return [
        Output(os.fsencode(os.path.join(directory, f"{name}.parquet")), _PARQUET, overwrite)
        for name in TABLES
    ]


def write_parquet(report: ScanReport, directory: str, *, overwrite: bool = False) -> None:
    """Write the tables into `directory`, which is created if missing.

    Raises UsageError if pyarrow is not installed, and RdcError if a file cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "--parquet needs pyarrow (python3 -m pip install pyarrow); --csv needs nothing"
        ) from error
    try:
        make_directory(os.fsencode(directory))
    except OSError as error:
        raise RdcError(
            f"{directory}: cannot write the report: {error.strerror or error}", code=ExitCode.FILE_IO
        ) from error
    for name, output in zip(TABLES, parquet_outputs(directory, overwrite=overwrite), strict=True):
        head, rows = table_rows(report, name)
        columns = {title: [row[number] for row in rows] for number, title in enumerate(head)}
        content = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.table(columns), content)
        write_output(output, [content.getvalue()])


NEARLY_ALL = 0.95
"""If a directory below holds at least this share of a directory's duplicate bytes, only the one below is
shown."""

ROWS = 10
"""Rows of a table of directories, types or pairs: what fits on a screen. --json has the rest."""

SCREEN_ROWS = 3
"""Directories on a terminal, where the whole report should fit on a screen of 24 lines."""

FIRST_WIDTH = 24
"""Fewest columns for a path before it is wrapped; titles of levels need less. A table that leaves fewer folds
its rows."""

COLUMN_SPACE = 3
"""Columns between two cells."""

UNBOUNDED = 1 << 20
"""Columns if the output is no terminal. Each row is then one line, for programs that read it."""


def print_scan(
    report: ScanReport,
    stream: TextIO,
    *,
    terminal: bool,
    color: bool,
    width: int | None = None,
    page: bool = False,
) -> None:
    """Write the report to `stream`.

    `width` in columns; None: the terminal's, or unbounded. `page`: True if a page is written, too, which has
    all that a terminal leaves out.
    """
    from rich.console import Console

    console = Console(
        file=stream,
        force_terminal=terminal,
        no_color=not color,
        color_system="standard" if color and terminal else None,
        width=width if width is not None or terminal else UNBOUNDED,
        highlight=False,
        markup=False,
        emoji=False,
    )
    console.print(headline(report), style="bold")
    _totals(console, report)
    if report.bytes:
        _levels(console, report)
        _directories(console, report, SCREEN_ROWS if terminal else ROWS)
        if not terminal:
            _types(console, report)
            _overlaps(console, report)
            _similar(console, report)
    console.print(_coverage(report))
    if terminal and not page and (more := _left_out(report)):
        console.print(f"with --html=FILE or in a pipe also: {more}")


def _totals(console: Console, report: ScanReport) -> None:
    parts = [
        counted(report.files, "file"),
        size_text(report.bytes),
        f"{size_text(report.allocated_bytes)} allocated",
    ]
    if report.hardlinks:
        parts.append(counted(report.hardlinks, "further hard link"))
    if report.holes_bytes:
        parts.append(f"{size_text(report.holes_bytes)} of holes")
    if report.already_shared_bytes:
        parts.append(f"{size_text(report.already_shared_bytes)} shared already")
    console.print(", ".join(parts))
    if report.duplicate_groups:
        groups = counted(report.duplicate_groups, "group")
        console.print(f"identical files: {groups}, {size_text(report.duplicate_bytes)} in further copies")
    if report.growth is not None:
        grown = report.bytes - report.growth.before_bytes
        files = report.files - report.growth.before_files
        sign = "+" if grown >= 0 else "-"
        console.print(f"since the earlier scan: {sign}{size_text(abs(grown))}, {files:+,} files")


def _levels(console: Console, report: ScanReport) -> None:
    rows = [
        (
            level_title(level.name),
            f"{level.chunks:,}",
            _about(level, f"{level.unique_chunks:,}"),
            _stored(level),
            percent(saved_share(level, level.unique_bytes)),
            f"{level.ratio:.2f}",
            _compressed(level),
        )
        for level in report.levels
    ]
    heads: tuple[str, ...] = ("granularity", "chunks", "unique", "kept", "saves", "ratio", "with zstd")
    if console.is_terminal:
        # Without the counts, the answer fits on 80 columns.
        chosen = (0, 3, 4, 6)
        heads = tuple(heads[at] for at in chosen)
        _print_table(
            console, "What deduplication keeps", heads, [tuple(row[at] for at in chosen) for row in rows]
        )
        return
    _print_table(console, "What deduplication keeps", heads, rows)


def _about(level: LevelSummary, text: str) -> str:
    return text if level.exact else f"~{text}"


def _stored(level: LevelSummary) -> str:
    text = _about(level, size_text(level.unique_bytes))
    if level.exact or not level.unique_bytes:
        return text
    return f"{text} ±{100 * (level.high - level.low) / 2 / level.unique_bytes:.1f} %"


def _compressed(level: LevelSummary) -> str:
    if level.compressed_bytes is None or level.compressed_low is None or level.compressed_high is None:
        return "-"
    text = f"{size_text(level.compressed_bytes)}, {percent(saved_share(level, level.compressed_bytes))}"
    half = (level.compressed_high - level.compressed_low) / 2
    # The bound is left out if it would not be visible in the rounded figure.
    return text if half < 0.005 * level.bytes else f"{text} ±{100 * half / level.bytes:.0f}"


def _left_out(report: ScanReport) -> str:
    """Return the lines about what a screen has no room for."""
    kinds = {
        "types": any(one.duplicate_bytes for one in report.types),
        "like directories": bool(report.overlaps),
        "similar files": bool(report.similar),
    }
    return ", ".join(kind for kind, there in kinds.items() if there)


def _directories(console: Console, report: ScanReport, most: int) -> None:
    shown = _worth_showing(report)[:most]
    if not shown:
        return
    rows = [(printable(one.path_bytes), *_duplicate_columns(one)) for one in shown]
    heads = ("directory", "files", "bytes", "duplicate", "")
    _print_table(console, "Where duplicate bytes are", heads, rows)


def _duplicate_columns(one: DirectorySummary | TypeSummary) -> tuple[str, str, str, str]:
    share = one.duplicate_bytes / one.bytes if one.bytes else 0.0
    return f"{one.files:,}", size_text(one.bytes), size_text(one.duplicate_bytes), percent(share)


def _worth_showing(report: ScanReport) -> list[DirectorySummary]:
    """Return the directories with duplicates, most first, without those whose duplicates nearly all lie in
    one directory below."""
    found: list[DirectorySummary] = []
    for one in report.directories:
        if not one.duplicate_bytes:
            continue
        # In this order, a directory inside that holds nearly as much follows soon and replaces the outer one.
        inside = found and one.path_bytes.startswith(found[-1].path_bytes.rstrip(b"/") + b"/")
        if inside and one.duplicate_bytes >= NEARLY_ALL * found[-1].duplicate_bytes:
            found[-1] = one
        else:
            found.append(one)
    return found


def _types(console: Console, report: ScanReport) -> None:
    shown = [one for one in report.types if one.duplicate_bytes][:ROWS]
    if not shown:
        return
    rows = [(printable(one.name) or "(none)", *_duplicate_columns(one)) for one in shown]
    _print_table(console, "By type", ("type", "files", "bytes", "duplicate", ""), rows)


def _overlaps(console: Console, report: ScanReport) -> None:
    if not report.overlaps:
        return
    rows = []
    for one in report.overlaps[:ROWS]:
        first, second = (
            percent(one.shared_bytes / whole if whole else 0.0)
            for whole in (one.first_bytes, one.second_bytes)
        )
        rows.append((printable(one.first), size_text(one.shared_bytes), first))
        rows.append((printable(one.second), "", second))
    _print_table(console, "Directories that hold the same", ("directories", "in common", "of each"), rows)


def _similar(console: Console, report: ScanReport) -> None:
    if not report.similar:
        return
    rows = []
    for one in report.similar[:ROWS]:
        names = [printable(path) for path in one.paths_bytes[:ROWS]]
        if len(one.paths_bytes) > ROWS:
            names.append(f"and {len(one.paths_bytes) - ROWS:,} more")
        rows.append((names[0], size_text(one.bytes), percent(one.resemblance)))
        rows += [(name, "", "") for name in names[1:]]
    _print_table(console, "Files that resemble each other", ("files", "bytes", "alike, about"), rows)


def _print_table(
    console: Console, title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> None:
    """Align figures to the right, and never cut them off. If the first column would have no room, the
    figures of each row go below its name, with their headers."""
    from rich import box
    from rich.table import Table

    widths = [max(map(len, columns)) for columns in zip(heads, *rows, strict=True)]
    widths[0] = min(widths[0], FIRST_WIDTH)
    if sum(widths) + COLUMN_SPACE * len(widths) > console.width:
        _print_folded(console, title, heads, rows)
        return
    room = console.width - sum(widths[1:]) - COLUMN_SPACE * len(widths)
    table = Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=not console.is_terminal,
    )
    table.add_column(heads[0], overflow="fold")
    for head in heads[1:]:
        table.add_column(head, justify="right", no_wrap=True)
    for name, *figures in rows:
        table.add_row(in_components(name, room), *figures)
    if console.is_terminal:
        console.print()
    console.print(table)


def _print_folded(
    console: Console, title: str, heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]
) -> None:
    console.print(title, style="bold")
    for name, *columns in rows:
        console.print(in_components(name, console.width), overflow="fold")
        texts: list[str] = []
        for head, column in zip(heads[1:], columns, strict=True):
            if column and not head:  # belongs to the one before
                texts[-1] += f", {column}"
            elif column:
                texts.append(f"{head} {column}")
        lines: list[str] = []
        for text in texts:
            if lines and len(f"{lines[-1]}; {text}") < console.width:
                lines[-1] += f"; {text}"
            else:
                lines.append(f"  {text}")
        for line in lines:
            console.print(line)
    console.print()


def in_components(path: str, width: int) -> str:
    """Break a path that is too long after slashes, so that each name in it stays whole if it fits."""
    if len(path) <= width:
        return path
    lines = [""]
    for part in path.replace("/", "/\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > width:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def _coverage(report: ScanReport) -> str:
    coverage = report.coverage
    text = f"read {counted(report.files, 'file')} of {coverage.found_files:,}"
    why = {"sample": "a sample", "time": "the time was over", "interrupted": "interrupted"}
    if not coverage.complete:
        text += f" ({why.get(coverage.reason, coverage.reason)}): all figures are of what was read"
    problems = len(report.errors) + report.more_errors
    if coverage.known_bytes:
        text += f"; {size_text(coverage.known_bytes)} known from before"
    if problems:
        text += f"; {counted(problems, 'problem')}"
    return text
