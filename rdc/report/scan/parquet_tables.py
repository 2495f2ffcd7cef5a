"""A scan report as Parquet files, one per table, to be stored and queried later."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.report.scan.csv_tables import TABLES, table_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.scan import ScanReport

__all__ = ["write_parquet"]


def write_parquet(report: ScanReport, directory: str) -> None:
    """Writes levels.parquet, directories.parquet and so on into `directory`, which is created if missing.

    Raises RdcError if pyarrow is not installed or a file cannot be written.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise UsageError(
            "--parquet needs pyarrow (python3 -m pip install pyarrow); --csv needs nothing"
        ) from error
    try:
        os.makedirs(directory, exist_ok=True)
        for name in TABLES:
            head, rows = table_rows(report, name)
            columns = {title: [row[number] for row in rows] for number, title in enumerate(head)}
            parquet.write_table(pyarrow.table(columns), os.path.join(directory, f"{name}.parquet"))
    except OSError as error:
        raise RdcError(
            f"{directory}: cannot write the report: {error.strerror or error}", code=ExitCode.FILE_IO
        ) from error
