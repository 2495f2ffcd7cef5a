"""Reads the rows of a JSONL file: one object a line, whose field holds the text."""

from __future__ import annotations

import json
from array import array

from rdc.documents.read.byte_stream import UNPACK_ERRORS, spans_of
from rdc.documents.read.text_batch import TextBatch
from rdc.errors import one_line, printable
from rdc.limits.documents import BATCH_BYTES, BATCH_DOCUMENTS, DOCUMENT_BYTES, LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

    from rdc.documents.read.row_problems import RowProblems

__all__ = ["JSON_ENDINGS", "read_json_lines"]

JSON_ENDINGS = tuple(kind + packing for kind in (b".jsonl", b".ndjson") for packing in (b"", b".gz", b".zst"))
"""Endings of the names of JSONL files."""

_BAD_LINE = (KeyError, TypeError, AttributeError, ValueError, RecursionError)
"""The exceptions of a line that is no object with a text in the field."""


def read_json_lines(path: bytes, stream: BinaryIO, field: str, problems: RowProblems) -> Iterator[TextBatch]:
    """Yields the texts of the lines in batches. Empty lines are no rows, but count as lines.

    A line without a text is added to `problems`. So is the end of what can be read.
    """
    texts: list[bytes] = []
    rows = array("Q")
    size, row = 0, 0
    loads = json.JSONDecoder().decode
    try:
        for lines in _line_blocks(spans_of(path, stream), problems):
            for line in lines:
                row += 1
                try:
                    text = loads(line if isinstance(line, str) else _decoded(line))[field].encode()
                    if len(text) > DOCUMENT_BYTES:
                        raise ValueError(f"{len(text):,} bytes of text, {DOCUMENT_BYTES:,} are the most")
                except _BAD_LINE as error:
                    if line is None or line.strip():
                        problems.add(row, _reason(line, field, loads, error))
                    continue
                texts.append(text)
                rows.append(row)
                size += len(text)
                if size >= BATCH_BYTES or len(rows) == BATCH_DOCUMENTS:
                    yield TextBatch.of_rows(path, rows, texts)
                    texts, rows, size = [], array("Q"), 0
    except UNPACK_ERRORS as error:
        problems.note(f"row {row + 1}: cannot read on: {one_line(str(error) or type(error).__name__)}")
        problems.count += 1
    if texts:
        yield TextBatch.of_rows(path, rows, texts)


def _line_blocks(spans: Iterator[bytes], problems: RowProblems) -> Iterator[Sequence[str | bytes | None]]:
    """The lines of each span: decoded if all of them are UTF-8, else as bytes.

    A line of more than LINE_BYTES is None, and is never in memory whole.
    """
    parts: list[bytes] = []
    waiting = 0
    for span in spans:
        end = span.rfind(b"\n")
        if end < 0:
            waiting += len(span)
            # What comes after the limit is dropped, so that the line stays known as too long.
            if waiting <= LINE_BYTES + 1:
                parts.append(span)
            elif parts:
                parts = []
            continue
        if waiting + span.find(b"\n") > LINE_BYTES:
            yield [None]
            start = span.find(b"\n") + 1
            parts = []
        else:
            start = 0
        parts.append(span[start:end])
        if start <= end:
            yield _lines(b"".join(parts))
        parts, waiting = [span[end + 1 :]], len(span) - end - 1
    if waiting > LINE_BYTES:
        yield [None]
    elif waiting:
        yield _lines(b"".join(parts))


def _lines(block: bytes) -> list[str] | list[bytes]:
    try:
        return block.decode().split("\n")
    except UnicodeDecodeError:
        return block.split(b"\n")


def _decoded(line: bytes | None) -> str:
    if line is None:
        raise ValueError(f"a line of more than {LINE_BYTES:,} bytes")
    return line.decode()


def _reason(line: str | bytes | None, field: str, loads: Callable[[str], object], error: Exception) -> str:
    """Says what was expected and found."""
    shown = printable(field)
    if isinstance(error, UnicodeDecodeError):
        return f"expected UTF-8, found byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
    if isinstance(error, UnicodeEncodeError):
        return f"expected text in '{shown}', found half of a surrogate pair"
    if isinstance(error, KeyError):
        return f"expected a field '{shown}', found none; --field names another"
    if isinstance(error, (TypeError, AttributeError)) and line is not None:
        found = loads(line if isinstance(line, str) else line.decode())
        if not isinstance(found, dict):
            return f"expected an object, found {_kind(found)}"
        return f"expected a text in '{shown}', found {_kind(found.get(field))}"
    if isinstance(error, RecursionError):
        return "expected an object, found values nested too deep"
    if isinstance(error, json.JSONDecodeError):
        return f"expected an object, found bad JSON at character {error.pos + 1}"
    return one_line(str(error))


def _kind(value: object) -> str:
    kinds = {dict: "an object", list: "an array", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
