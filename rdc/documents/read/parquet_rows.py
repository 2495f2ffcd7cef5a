"""Reads the rows of a Parquet file: one column of texts, a row group at a time.

pyarrow is an optional dependency. Only this module and rdc.documents.reread.parquet_copy import it.
"""

from __future__ import annotations

from array import array
from operator import sub

from rdc.documents.read.text_batch import RowProblems, TextBatch, TextSpan
from rdc.errors import UsageError, one_line, printable
from rdc.limits import BATCH_BYTES, BATCH_DOCUMENTS, DOCUMENT_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

    from rdc.documents.read.file_kinds import FileRange


STREAM_BYTES = 1 << 20
"""Bytes of a column that Arrow reads at a time."""

_NAMES_SHOWN = 8


def check_pyarrow(path: bytes) -> None:
    """Raise UsageError if pyarrow is missing, before anything is read."""
    from importlib.util import find_spec

    if find_spec("pyarrow") is None:
        raise UsageError(
            f"{printable(path)}: reading Parquet needs pyarrow (python3 -m pip install pyarrow);"
            " JSONL needs nothing"
        )


def broken_parquet() -> tuple[type[Exception], ...]:
    """Return the exceptions that pyarrow raises for a file that it cannot read."""
    from pyarrow import ArrowException

    return (ArrowException, OSError, ValueError, TypeError, KeyError, EOFError, MemoryError)


def read_parquet(
    path: bytes, stream: BinaryIO, field: str, problems: RowProblems, range_: FileRange | None
) -> Iterator[TextBatch]:
    """Yield the texts of the column `field` in batches: all, or those of row groups that begin in a range.

    A row without a text is added to `problems`. A row group that cannot be read is named with its rows, and
    the next one is read. Arrow unpacks one page of one column at a time.
    """
    from pyarrow.parquet import ParquetFile

    broken = broken_parquet()
    try:
        file = ParquetFile(stream, buffer_size=STREAM_BYTES, pre_buffer=False)
        column = _column(file, field, problems)
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        counts = [group.num_rows for group in groups]
    except broken as error:
        problems.refuse(f"cannot read it as Parquet: {one_line(str(error))[:200]}", 1)
        return
    if column < 0:
        return
    first = 1
    for number, count in enumerate(counts):
        row = first
        first += count
        if range_ is not None and not _begins_in(groups[number], range_):
            continue
        mean = groups[number].column(column).total_uncompressed_size // max(count, 1)
        rows = max(1, min(BATCH_DOCUMENTS, BATCH_BYTES // max(mean, 1)))
        try:
            for batch in file.iter_batches(
                batch_size=rows, row_groups=[number], columns=[field], use_threads=False
            ):
                yield from _batches(path, batch.column(0), row, problems)
                row += len(batch)
        except broken as error:
            problems.note(f"rows {row:,} to {first - 1:,}: cannot read them: {one_line(str(error))[:200]}")
            problems.count += first - row


def _begins_in(group: Any, range_: FileRange) -> bool:
    """Return whether a row group begins in a range. Each begins in one, also if the file lies about where."""
    column = group.column(0) if group.num_columns else None
    starts = [] if column is None else [column.dictionary_page_offset, column.data_page_offset]
    start = min([at for at in starts if at is not None], default=0)
    return range_.start <= min(max(start, 0), range_.size - 1) < range_.end


def _column(file: Any, field: str, problems: RowProblems) -> int:
    """Return the number of the leaf column, or -1 with a problem if there is no text of that name."""
    schema = file.schema_arrow
    at = schema.get_field_index(field)
    if at < 0:
        names = ", ".join(map(printable, schema.names[:_NAMES_SHOWN]))
        more = ", ..." if len(schema.names) > _NAMES_SHOWN else ""
        problems.refuse(
            f"expected a column '{printable(field)}', found {names or 'none'}{more}; --field names another",
            file.metadata.num_rows,
        )
        return -1
    kind = str(schema.field(at).type)
    if not any(text in kind for text in ("string", "utf8")) or "<" in kind.replace("dictionary<", "", 1):
        problems.refuse(
            f"expected texts in '{printable(field)}', found {printable(kind)}; --field names another",
            file.metadata.num_rows,
        )
        return -1
    paths = [file.metadata.schema.column(number).path for number in range(len(file.metadata.schema))]
    return paths.index(field)


def _batches(path: bytes, values: Any, first: int, problems: RowProblems) -> Iterator[TextBatch]:
    from pyarrow import ArrowInvalid, large_string, string

    # A cast makes pyarrow import its module compute, which takes as long as reading 3,000 pages.
    column = values if values.type in (string(), large_string()) else values.cast(large_string())
    count = len(column)
    if not count:
        return
    offsets = array("i" if column.type == string() else "q")
    first_offset, width = column.offset, offsets.itemsize
    found = memoryview(column.buffers()[1])[width * first_offset : width * (first_offset + count + 1)]
    offsets.frombytes(found)
    offsets = array("q", offsets)
    text = memoryview(column.buffers()[2] or b"")
    sizes = array("q", map(sub, offsets[1:], offsets))
    try:
        column.validate(full=True)
        good = not column.null_count and max(sizes) <= DOCUMENT_BYTES
    except ArrowInvalid:
        good = False
    if good and sum(sizes) <= 2 * BATCH_BYTES:
        yield TextBatch.of_rows(path, array("Q", range(first, first + count)), [TextSpan(text, offsets)])
        return
    yield from _checked(path, column.is_valid().to_pylist(), text, offsets, first, problems)


def _checked(
    path: bytes, valid: list[bool], text: memoryview, offsets: array[int], first: int, problems: RowProblems
) -> Iterator[TextBatch]:
    """Yield the rows of a batch one by one, where some are bad or long."""
    texts: list[bytes] = []
    rows = array("Q")
    size = 0
    for at, there in enumerate(valid):
        content = text[offsets[at] : offsets[at + 1]]
        if not there:
            problems.add(first + at, "expected a text, found null")
            continue
        if len(content) > DOCUMENT_BYTES:
            problems.add(first + at, f"{len(content):,} bytes of text, {DOCUMENT_BYTES:,} are the most")
            continue
        try:
            str(content, "utf-8")
        except UnicodeDecodeError as error:
            problems.add(
                first + at,
                f"expected UTF-8, found byte 0x{error.object[error.start]:02x} at byte {error.start + 1}",
            )
            continue
        texts.append(bytes(content))
        rows.append(first + at)
        size += len(content)
        if size >= BATCH_BYTES:
            yield TextBatch.of_rows(path, rows, [TextSpan.join(texts)])
            texts, rows, size = [], array("Q"), 0
    if texts:
        yield TextBatch.of_rows(path, rows, [TextSpan.join(texts)])
