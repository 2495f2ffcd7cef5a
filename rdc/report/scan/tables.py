"""A scan report for programs: one JSON document, CSV, Parquet files. And its headline, which all forms have.

scan.schema.json beside this file defines the JSON document.
"""

from __future__ import annotations

import os

from rdc.errors import ExitCode, RdcError, UsageError, printable
from rdc.files.own.opened_path import make_directory
from rdc.files.own.output_file import Output, OutputKind, write_output
from rdc.report.text import plain_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.scan import LevelSummary, ScanReport
    from rdc.report.json_output import Value

__all__ = [
    "HEADLINE_LEVEL",
    "SCHEMA",
    "TABLES",
    "headline",
    "level_title",
    "parquet_outputs",
    "percent",
    "saved_share",
    "scan_csv",
    "scan_document",
    "scan_json",
    "table_rows",
    "write_parquet",
]

HEADLINE_LEVEL = "cdc-16384"


def headline(report: ScanReport) -> str:
    """One line: what 16 KiB chunks save, what compression adds, and whether everything was read."""
    level = report.level(HEADLINE_LEVEL)
    if level is None or not level.bytes:
        return "nothing to save: no content was read"
    about = "" if level.exact else "about "
    text = f"{level_title(level.name)} save {about}{percent(saved_share(level, level.unique_bytes))}"
    if level.compressed_bytes is not None:
        text += f", zstd after them {percent(saved_share(level, level.compressed_bytes))}"
    return text if report.coverage.complete else f"{text}, of what was read"


def saved_share(level: LevelSummary, stored: int) -> float:
    """The share of the level's bytes that is saved if `stored` bytes remain: 0 to 1; 0 for an empty level."""
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
    """The document as one line of ASCII without control characters, whatever names it contains."""
    import json

    return json.dumps(scan_document(report)).replace("\x7f", "\\u007f") + "\n"


def scan_document(report: ScanReport) -> dict[str, Value]:
    """The document that scan.schema.json defines. A path that is not UTF-8 has `NAME_b64` beside `NAME`."""
    from rdc.report.json_output import json_fields

    return {"schema": SCHEMA, "headline": headline(report), **json_fields(report)}


TABLES = ("levels", "directories", "types", "overlaps", "errors")

CsvValue = str | int | float | bool | None


def scan_csv(report: ScanReport, table: str) -> str:
    """One of TABLES with a header line. Control characters and bytes that are not UTF-8 appear as \\xNN."""
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
    """Names of the columns, and the rows, of one of TABLES."""
    if table == "levels":
        head = ["name", "mean_bytes", "chunks", "bytes", "unique_chunks", "unique_bytes", "ratio"]
        head += ["exact", "low", "high", "compressed_bytes", "compressed_low", "compressed_high"]
        return head, [[getattr(level, name) for name in head] for level in report.levels]
    if table == "directories":
        head = ["path", "files", "bytes", "duplicate_bytes", "own_bytes", "own_duplicate_bytes"]
        return head, [
            [printable(one.path), *(getattr(one, name) for name in head[1:])] for one in report.directories
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
        [printable(one.path), one.message, int(one.code)] for one in report.errors
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
