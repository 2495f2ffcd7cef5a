"""A scan report as Parquet files, one per table, to be stored and queried later."""

from __future__ import annotations

import os

from rdc.errors import ExitCode, RdcError, UsageError
from rdc.files.own.opened_path import make_directory
from rdc.files.own.output_file import Output, OutputKind, write_output
from rdc.report.scan.csv_tables import TABLES, table_rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from rdc.model.scan import ScanReport

__all__ = ["parquet_outputs", "write_parquet"]

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
