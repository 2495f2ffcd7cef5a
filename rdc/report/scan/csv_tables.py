"""One table of a scan report as CSV."""

from __future__ import annotations

import csv
import io

from rdc.errors import printable
from rdc.report.names import plain_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from rdc.model.scan import ScanReport

__all__ = ["TABLES", "scan_csv", "table_rows"]

TABLES = ("levels", "directories", "types", "overlaps", "errors")

CsvValue = str | int | float | bool | None


def scan_csv(report: ScanReport, table: str) -> str:
    """One of TABLES with a header line. Control characters and bytes that are not UTF-8 appear as \\xNN."""
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
