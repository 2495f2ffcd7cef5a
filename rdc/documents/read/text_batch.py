"""The result of reading documents: texts of several documents, in batches and within bounds, and what is
wrong with rows.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import accumulate

from rdc.errors import ExitCode, FileError, printable
from rdc.lean.enums import IntEnum
from rdc.lean.records import Record, replace
from rdc.limits import (
    BATCH_BYTES,
    BATCH_DOCUMENTS,
    ROW_PROBLEMS,
    STORED_BYTES_LEAST,
    STORED_DOCUMENT_BYTES,
    STORED_FILE_BYTES,
    STORED_SHARE,
)
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from typing_extensions import Buffer

    from rdc.documents.read.file_kinds import FileRange


# TextBatch: texts of several documents.


class TextSpan(Record):
    """Texts in Arrow's layout: those between the offsets, one after another."""

    text: Buffer
    """Valid UTF-8. Bytes before the first offset and after the last belong to no text."""
    offsets: array[int]
    """Typecode 'q', one more than texts."""

    @classmethod
    def join(cls, texts: Sequence[bytes]) -> TextSpan:
        """Make one of these texts."""
        return cls(b"".join(texts), array("q", accumulate(map(len, texts), initial=0)))

    @property
    def size(self) -> int:
        """Bytes of its texts."""
        return self.offsets[-1] - self.offsets[0]

    def content(self) -> memoryview:
        """Return the bytes of its texts alone."""
        return memoryview(self.text)[self.offsets[0] : self.offsets[-1]]


class TextBatch(Record):
    """Texts, and the document of each. Documents are in increasing order."""

    paths: list[bytes]
    """In increasing order."""
    sources: array[int]
    """Typecode 'I': the number in `paths` of each document."""
    rows: array[int]
    """Typecode 'Q': the row of each document, 0 for a file."""
    spans: list[TextSpan]
    """The texts of the first documents, of those behind them, and so on."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def size(self) -> int:
        """Bytes of the texts."""
        return sum([span.size for span in self.spans])

    @classmethod
    def of_files(cls, paths: list[bytes], texts: Sequence[bytes]) -> TextBatch:
        """Return a batch of whole files."""
        count = len(paths)
        return cls(paths, array("I", range(count)), array("Q", bytes(8 * count)), [TextSpan.join(texts)])

    @classmethod
    def of_rows(cls, path: bytes, rows: array[int], spans: list[TextSpan]) -> TextBatch:
        """Return a batch of rows of one file."""
        return cls([path], array("I", bytes(4 * len(rows))), rows, spans)


# BatchBuilder: batches of the rows of one file, made of texts as they are found.

SPANS = 16
"""Most spans of a batch. More are joined, as each takes some calls of the kernel."""


class BatchBuilder:
    """A batch ends with the text that fills BATCH_BYTES, or the last of BATCH_DOCUMENTS."""

    def __init__(self, path: bytes) -> None:
        self._path = path
        self._start()

    def _start(self) -> None:
        self._spans: list[TextSpan] = []
        self._rows = array("Q")
        self._size = 0

    def add(self, row: int, text: bytes) -> Iterator[TextBatch]:
        """Add one text. Yields the batch that it fills."""
        return self.extend(row, text, array("q", [0, len(text)]))

    def extend(self, first: int, texts: bytes, bounds: array[int]) -> Iterator[TextBatch]:
        """Add the texts of rows from the `first` on. Yields the batches that they fill.

        `bounds`: where each of the texts begins, and where the last one ends: typecode 'q'.
        """
        at, count = 0, len(bounds) - 1
        while at < count:
            full = bisect_left(bounds, bounds[at] + BATCH_BYTES - self._size, at + 1)
            end = min(full, count, at + BATCH_DOCUMENTS - len(self._rows))
            span = TextSpan(texts, bounds[at : end + 1])
            self._spans.append(span)
            self._rows.extend(range(first + at, first + end))
            self._size += span.size
            if self._size >= BATCH_BYTES or len(self._rows) == BATCH_DOCUMENTS:
                yield self._batch()
            at = end

    def rest(self) -> Iterator[TextBatch]:
        """Yield the last batch, if there are texts for one."""
        if self._rows:
            yield self._batch()

    def _batch(self) -> TextBatch:
        rows, spans = self._rows, self._spans
        self._start()
        if len(spans) > SPANS:
            spans = [_joined(spans)]
        return TextBatch.of_rows(self._path, rows, spans)


def _joined(spans: list[TextSpan]) -> TextSpan:
    offsets = array("q", [0])
    for span in spans:
        before = offsets[-1] - span.offsets[0]
        offsets.extend([before + offset for offset in span.offsets[1:]])
    return TextSpan(b"".join([span.content() for span in spans]), offsets)


# StoredBound: how much documents may take on disk, by the size of the files that they come from.


class StoredBound:
    """Counts what is kept of the documents of one run, in its temporary files or its parts.

    A row of a few bytes, of which a packed file may have millions, is kept as half a kilobyte: 128 samples, a
    digest, a name. So a small file could fill a disk. What a run keeps is at most STORED_SHARE times the
    files that it has read or reads now, and STORED_BYTES_LEAST. It is estimated from documents and their
    bytes, so that the same rows count whoever reads them, in whatever order they are stored.
    """

    def __init__(self) -> None:
        self._stored = 0
        self._allowed = STORED_BYTES_LEAST

    def admit(self, files: int, size: int) -> None:
        """Count files that are about to be read, `size` bytes in total."""
        self._allowed += STORED_SHARE * max(size, files * STORED_FILE_BYTES)

    def count(self, path: bytes, batch: TextBatch) -> None:
        """Count documents of a file. Raises FileError once the files are too small for them."""
        more = len(batch) * STORED_DOCUMENT_BYTES + batch.size
        if self._stored + more > self._allowed:
            raise FileError(
                path,
                f"{printable(path)}: expected documents that take at most {STORED_SHARE} times its size in"
                " temporary files, found more, so the rest is left out: it repeats a few bytes, as files do"
                " that are made to fill disks; if it is meant so, unpack it",
            )
        self._stored += more


# RowProblems: what is wrong with rows of one file, named up to a limit and counted beyond.


class ProblemKind(IntEnum):
    ROW = 0
    """A bad row. The first ones of a file are named."""
    NOTE = 1
    """Something else that one part of the file has."""
    WHOLE = 2
    """Every range of the file meets it."""


class RowProblem(Record):
    kind: ProblemKind
    row: int
    """0 if it is of no single row."""
    message: str
    """It completes `PATH: row N: `, or `PATH: `."""
    left_out: int = 0
    """Rows left out because of a WHOLE one. Others are counted apart."""


class RowProblems:
    """Collects the problems of one file. `count` is the number of rows left out."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.found: list[RowProblem] = []
        self.count = 0
        self.bad = 0
        """Rows that were added one by one."""

    def add(self, row: int, reason: str) -> None:
        """Add a bad row. `reason` completes `PATH: row N: `."""
        self.count += 1
        self.bad += 1
        if self.bad <= ROW_PROBLEMS:
            self.found.append(RowProblem(ProblemKind.ROW, row, reason))

    def note(self, message: str, row: int = 0) -> None:
        """Note a problem that is not counted among bad rows."""
        self.found.append(RowProblem(ProblemKind.NOTE, row, message))

    def refuse(self, message: str, left_out: int) -> None:
        """Note a problem of the whole file, which every range of it meets. `left_out`: rows."""
        self.count += left_out
        self.found.append(RowProblem(ProblemKind.WHOLE, 0, message, left_out))

    def take(self, other: RowProblems, rows: int) -> None:
        """Add those of the next range of the same file, with `rows` rows before it."""
        self.count += other.count
        bad = self.bad
        for one in other.found:
            if one.kind is ProblemKind.WHOLE and one in self.found:
                self.count -= one.left_out
                continue
            bad += one.kind is ProblemKind.ROW
            if one.kind is not ProblemKind.ROW or bad <= ROW_PROBLEMS:
                self.found.append(replace(one, row=one.row + rows) if one.row else one)
        self.bad += other.bad

    def problems(self) -> list[Problem]:
        """Return all of them, and how many rows were not named."""
        messages = [f"row {one.row}: {one.message}" if one.row else one.message for one in self.found]
        if self.bad > ROW_PROBLEMS:
            messages.append(f"{self.bad - ROW_PROBLEMS:,} more rows could not be used; {self.bad:,} in total")
        shown = printable(self.path)
        return [Problem(ExitCode.PARTIAL, self.path, f"{shown}: {message}") for message in messages]


# RangeOutcome: what reading one range of a file found, besides texts.


class RangeOutcome(Record):
    path: bytes
    range: FileRange
    lines: int
    """Lines of a JSONL file that begin in the range. The rows of the next range follow them. 0 for Parquet,
    whose rows have their numbers."""
    complete: bool
    """True if the range was read to its end."""
    problems: RowProblems
    """Rows count from the range's first line."""
    failure: Problem | None
    """Why the file could not be read or is not to be trusted."""

    @property
    def left_out(self) -> int:
        """Rows left out, and 1 for a failure."""
        return self.problems.count + (self.failure is not None)

    def all_problems(self) -> list[Problem]:
        """Return all problems, where rows count from the range's first line."""
        return [*([] if self.failure is None else [self.failure]), *self.problems.problems()]
