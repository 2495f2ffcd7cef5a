"""Reads the rows of a JSONL file: one object a line, whose field holds the text."""

from __future__ import annotations

import json
from array import array

from rdc.documents.read.batch_builder import BatchBuilder
from rdc.documents.read.byte_stream import UNPACK_ERRORS, TrailingBytesError, spans_of
from rdc.documents.read.json_decoder import json_decoder
from rdc.documents.read.line_range import line_spans
from rdc.errors import one_line, printable
from rdc.kernel import json_texts
from rdc.limits.searches import DOCUMENT_BYTES, LINE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    from typing_extensions import Buffer

    from rdc.documents.read.file_range import FileRange
    from rdc.documents.read.row_problems import RowProblems
    from rdc.documents.read.text_batch import TextBatch

__all__ = ["BYTE_ORDER_MARK", "JsonLines"]

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which some programs put before the first line."""

_BAD_LINE = (KeyError, TypeError, AttributeError, ValueError, RecursionError)
"""The exceptions of a line that is no object with a text in the field."""


class JsonLines:
    """Reads the lines of a file, or those of one range of it.

    Empty lines are no rows, but count as lines. In a range, lines count from its first one.
    """

    def __init__(self, path: bytes, field: str, problems: RowProblems, range_: FileRange | None) -> None:
        self._path = path
        self._problems = problems
        self._range = range_
        self._lines = _Lines(path, field, problems)
        self.complete = True
        """False if it was not read to its end."""

    @property
    def lines(self) -> int:
        """Lines read."""
        return self._lines.row - 1

    def batches(self, stream: BinaryIO) -> Iterator[TextBatch]:
        """Yields the texts of the lines. A line without a text is added to the problems. So is the end of
        what can be read."""
        lines, range_ = self._lines, self._range
        spans = (
            spans_of(self._path, stream) if range_ is None else line_spans(stream, range_.start, range_.end)
        )
        try:
            for block in _line_blocks(spans):
                yield from lines.take(block)
        except TrailingBytesError as error:
            self._problems.note(str(error))
        except UNPACK_ERRORS as error:
            self.complete = False
            text = one_line(str(error) or type(error).__name__)
            self._problems.note(f"cannot read on: {text}", lines.row)
            self._problems.count += 1
        yield from lines.batches.rest()


class _Lines:
    def __init__(self, path: bytes, field: str, problems: RowProblems) -> None:
        self.batches = BatchBuilder(path)
        self.row = 1
        """The row of the next line."""
        self._field = field
        self._name = field.encode("utf-8", "surrogatepass")
        self._problems = problems
        self._loads = json_decoder().decode

    def take(self, block: Buffer | None) -> Iterator[TextBatch]:
        """Takes lines; None is one that is too long. Yields the batches that they fill."""
        if block is None:
            self._problems.add(self.row, f"a line of more than {LINE_BYTES:,} bytes")
            self.row += 1
            return
        texts, packed, left = json_texts(block, self._name, DOCUMENT_BYTES)
        bounds, lines = array("q", packed), None
        at = 0
        while at < len(left):
            end = left.find(1, at)
            end = len(left) if end < 0 else end
            if end > at:
                yield from self.batches.extend(self.row, texts, bounds[at : end + 1])
                self.row += end - at
            if end < len(left):
                lines = lines or bytes(block).split(b"\n")
                yield from self._take_line(lines[end])
            at = end + 1

    def _take_line(self, line: bytes) -> Iterator[TextBatch]:
        """Takes what the kernel left: a rare line or a bad one."""
        row = self.row
        self.row += 1
        line = line.removeprefix(BYTE_ORDER_MARK)
        if not line.strip():
            return  # a file may have millions of empty ones
        try:
            text = self._loads(line.decode())[self._field].encode()
            if len(text) > DOCUMENT_BYTES:
                raise ValueError(f"{len(text):,} bytes of text, {DOCUMENT_BYTES:,} are the most")
        except _BAD_LINE as error:
            if line.decode("utf-8", "replace").strip():
                self._problems.add(row, _reason(line, self._field, self._loads, error))
            return
        yield from self.batches.add(row, text)


def _line_blocks(spans: Iterator[bytes]) -> Iterator[Buffer | None]:
    """All lines, some in a block. None stands for a line of more than LINE_BYTES, which is never in memory
    whole."""
    parts: list[bytes] = []
    waiting = 0
    for span in spans:
        first, end = span.find(b"\n"), span.rfind(b"\n")
        if first < 0:
            waiting += len(span)
            # What comes after the limit is dropped, so that the line stays known as too long.
            if waiting <= LINE_BYTES + 1:
                parts.append(span)
            elif parts:
                parts = []
            continue
        start = 0
        if waiting + first > LINE_BYTES:
            yield None
            start = first + 1
        elif waiting:
            yield b"".join([*parts, span[:first]])
            start = first + 1
        if start <= end:
            yield memoryview(span)[start:end]
        parts, waiting = [span[end + 1 :]], len(span) - end - 1
    if waiting > LINE_BYTES:
        yield None
    elif waiting:
        yield b"".join(parts)


def _reason(line: bytes, field: str, loads: Callable[[str], object], error: Exception) -> str:
    """Says what was expected and found."""
    shown = printable(field)
    if isinstance(error, UnicodeDecodeError):
        return f"expected UTF-8, found byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
    if isinstance(error, UnicodeEncodeError):
        return f"expected text in '{shown}', found half of a surrogate pair"
    if isinstance(error, KeyError):
        return f"expected a field '{shown}', found none; --field names another"
    if isinstance(error, (TypeError, AttributeError)):
        found = loads(line.decode())
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
