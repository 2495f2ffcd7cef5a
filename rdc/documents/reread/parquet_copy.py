"""Rows of a Parquet file that stay, as a Parquet file with the same columns and the same compression."""

from __future__ import annotations

from rdc.documents.read.parquet_rows import STREAM_BYTES, broken_parquet
from rdc.documents.reread.wanted import changed_since
from rdc.errors import FileError, one_line, printable
from rdc.limits import BATCH_BYTES, BATCH_DOCUMENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from rdc.documents.reread.wanted import Wanted

GROUP_BYTES = 64 << 20
"""Bytes in memory of the rows of one row group that is written."""

_PACKINGS = {"SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "LZ4": "lz4", "ZSTD": "zstd"}
"""pyarrow's name of each compression, by the name in the metadata of a column."""


class _Sink:
    """Collects what pyarrow writes."""

    closed = False

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def flush(self) -> None:
        """Do nothing: what is written is taken by take()."""

    def close(self) -> None:
        """Do nothing, too."""

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def take(self) -> bytes:
        """Return what was written since the last call."""
        taken = b"".join(self._parts)
        self._parts.clear()
        return taken


def kept_rows(path: bytes, stream: BinaryIO, field: str, documents: Iterator[Wanted]) -> Iterator[bytes]:
    """Yield a Parquet file with the rows of `documents`, which increase.

    Row groups stay apart, and one is divided at GROUP_BYTES. Raises FileChangedError if a row has another
    text than was compared, and FileError if it cannot be read again.
    """
    from pyarrow import PythonFile, Table
    from pyarrow.parquet import ParquetFile, ParquetWriter

    sink = _Sink()
    wanted = next(documents, None)
    try:
        file = ParquetFile(stream, buffer_size=STREAM_BYTES, pre_buffer=False)
        schema = file.schema_arrow
        column = schema.get_field_index(field)
        with ParquetWriter(PythonFile(sink, mode="w"), schema, compression=_packing(file)) as writer:
            first = 1
            for number in range(file.num_row_groups):
                group = file.metadata.row_group(number)
                row, first = first, first + group.num_rows
                if wanted is None or wanted.row >= first:
                    continue
                kept: list[Any] = []
                mean = group.total_byte_size // max(group.num_rows, 1)
                rows = max(1, min(BATCH_DOCUMENTS, BATCH_BYTES // max(mean, 1)))
                for batch in file.iter_batches(batch_size=rows, row_groups=[number], use_threads=False):
                    chosen = []
                    while wanted is not None and wanted.row < row + len(batch):
                        if not wanted.is_text(_text(batch.column(column)[wanted.row - row])):
                            raise changed_since(path)
                        chosen.append(wanted.row - row)
                        wanted = next(documents, None)
                    row += len(batch)
                    if chosen:
                        kept.append(batch.take(chosen))
                    if sum(one.nbytes for one in kept) >= GROUP_BYTES:
                        writer.write_table(Table.from_batches(kept, schema))
                        kept = []
                        yield sink.take()
                if kept:
                    writer.write_table(Table.from_batches(kept, schema))
                    yield sink.take()
    except broken_parquet() as error:
        shown = one_line(str(error))[:200]
        raise FileError(path, f"{printable(path)}: cannot read it again as Parquet: {shown}") from error
    if wanted is not None:
        raise changed_since(path)
    yield sink.take()


def _text(value: Any) -> bytes:
    text = value.as_py()
    return text.encode() if isinstance(text, str) else b""


def _packing(file: Any) -> str:
    """Return the compression of the first column, or none."""
    if not file.num_row_groups or not file.metadata.num_columns:
        return "none"
    return _PACKINGS.get(file.metadata.row_group(0).column(0).compression, "none")
