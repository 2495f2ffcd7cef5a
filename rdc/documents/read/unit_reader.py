"""UnitReader: the texts of a unit of files, in batches, and what is wrong with it."""

from __future__ import annotations

import os
from io import UnsupportedOperation

from blake3 import blake3

from rdc.documents.read.file_kinds import FileKind
from rdc.documents.read.file_units import FileUnit, JoinedFiles, opened_stream
from rdc.documents.read.json_lines import BYTE_ORDER_MARK, JsonLines
from rdc.documents.read.parquet_rows import read_parquet
from rdc.documents.read.text_batch import RangeOutcome, RowProblems, StoredBound, TextBatch
from rdc.errors import ExitCode, FileChangedError, RdcError, one_line, printable
from rdc.files.objects.object_file import ObjectFile
from rdc.files.objects.object_store import is_url
from rdc.files.root.source_file import SourceFile
from rdc.lean.records import Record
from rdc.limits import BATCH_BYTES, BATCH_DOCUMENTS, DOCUMENT_BYTES
from rdc.progress import Problem
from rdc.survey.read import in_order

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from rdc.survey.walk.file_columns import FileColumns


NEAR_BYTES = 1 << 20
"""Bytes of an object that may be read beside others."""

OBJECTS_AT_ONCE = 16
"""Threads that read small objects. Twice as many objects are in memory."""


class UnitReader:
    """Reads one unit. `problems` and `left_out` are complete when `batches` has ended."""

    def __init__(
        self, files: FileColumns | JoinedFiles, unit: FileUnit, field: str, bound: StoredBound
    ) -> None:
        self._bound = bound
        self._files = files
        self._unit = unit
        self._field = field
        self.problems: list[Problem] = []
        self.left_out = 0
        self.done = 0
        """Bytes of files read so far."""
        self.outcome: RangeOutcome | None = None
        """A unit that is a range has its problems and rows here, in place of `problems` and `left_out`."""

    def key(self, method: bytes) -> str:
        """Return a name for what is read from the files as they are now, under `method`. Raises RdcError for
        a file that cannot be opened."""
        kind = self._unit.kind.value.encode()
        digest = blake3(method + b"\0" + self._field.encode("utf-8", "surrogateescape") + b"\0" + kind)
        for row, path in zip(self._unit.rows, self._unit.paths, strict=True):
            with self._files.open(row) as source:
                digest.update(b"\0" + path + b"\0" + _identity(source))
        return digest.hexdigest()[:32]

    def batches(self) -> Iterator[TextBatch]:
        """Yield the texts. A file that cannot be read or changes meanwhile is a problem."""
        self._bound.admit(len(self._unit.rows), self._unit.bytes)
        if self._unit.kind is FileKind.TEXT:
            yield from self._plain()
            return
        path = self._unit.paths[0]
        problems = RowProblems(path)
        lines = JsonLines(path, self._field, problems, self._unit.range)
        failure: Problem | None = None
        begun = False
        try:
            with self._files.open(self._unit.rows[0]) as source:
                self._check_size(source)
                begun = True
                yield from self._rows(source, problems, lines)
                source.check_unchanged()
        except RdcError as error:
            failure = Problem(error.code or ExitCode.PARTIAL, path, str(error))
        self.done = self._unit.bytes
        if self._unit.range is not None:
            self.outcome = RangeOutcome(
                path, self._unit.range, lines.lines, begun and lines.complete, problems, failure
            )
            return
        if failure is not None:
            self.left_out += 1
            self.problems.append(failure)
        self.problems += problems.problems()
        self.left_out += problems.count

    def _check_size(self, source: SourceFile | ObjectFile) -> None:
        """Check that the file still has its listed size, by which it was divided into ranges."""
        listed = self._unit.range
        if listed is not None and source.size != listed.size:
            path = self._unit.paths[0]
            raise FileChangedError(
                path,
                f"{printable(path)}: expected {listed.size} bytes as listed, found {source.size}; search"
                " again when nobody writes it",
            )

    def _rows(
        self, source: SourceFile | ObjectFile, problems: RowProblems, lines: JsonLines
    ) -> Iterator[TextBatch]:
        source.rest()
        unit = self._unit
        before = 0 if unit.range is None else unit.range.start
        with opened_stream(source) as stream:
            if unit.kind is FileKind.PARQUET:
                found = read_parquet(unit.paths[0], stream, self._field, problems, unit.range)
            else:
                found = lines.batches(stream)
            for batch in found:
                at = _position(stream) - before
                self.done = max(self.done, min(at, unit.bytes))
                self._bound.count(unit.paths[0], batch)
                yield batch

    def _plain(self) -> Iterator[TextBatch]:
        paths: list[bytes] = []
        texts: list[bytes] = []
        size = 0
        for whole in self._wholes():
            self.done += self._files.sizes[whole.row]
            self.problems += whole.problems
            if whole.text is None:
                self.left_out += 1
                continue
            paths.append(whole.path)
            texts.append(whole.text)
            size += len(whole.text)
            if size >= BATCH_BYTES or len(paths) == BATCH_DOCUMENTS:
                yield TextBatch.of_files(paths, texts)
                paths, texts, size = [], [], 0
        if paths:
            yield TextBatch.of_files(paths, texts)

    def _wholes(self) -> Iterator[_Whole]:
        """Yield the plain files in order. Small objects of a store are read some at a time, since each makes
        one wait."""
        near: list[int] = []
        for at, (row, path) in enumerate(zip(self._unit.rows, self._unit.paths, strict=True)):
            if is_url(path) and self._files.sizes[row] <= NEAR_BYTES:
                near.append(at)
                continue
            yield from in_order(self._whole, near, OBJECTS_AT_ONCE)
            near = []
            yield self._whole(at)
        yield from in_order(self._whole, near, OBJECTS_AT_ONCE)

    def _whole(self, at: int) -> _Whole:
        """Return the text of a plain file, or a problem. Threads may call it in parallel."""
        row, path = self._unit.rows[at], self._unit.paths[at]
        problems = RowProblems(path)
        try:
            with self._files.open(row) as source:
                if source.size > DOCUMENT_BYTES:
                    problems.note(f"{source.size:,} bytes of text, {DOCUMENT_BYTES:,} are the most")
                else:
                    text = source.whole()
                    source.check_unchanged()
                    str(text, "utf-8")
                    return _Whole(row, path, text.removeprefix(BYTE_ORDER_MARK), [])
        except UnicodeDecodeError as error:
            problems.note(
                f"expected UTF-8, found byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
            )
        except OSError as error:
            problems.note(f"cannot read it: {one_line(str(error))}")
        except RdcError as error:
            return _Whole(row, path, None, [Problem(error.code, path, str(error))])
        return _Whole(row, path, None, problems.problems())


class _Whole(Record):
    """A plain file that was read."""

    row: int
    path: bytes
    text: bytes | None
    problems: list[Problem]


def _position(stream: BinaryIO) -> int:
    """Return the bytes read so far, about."""
    try:
        return os.lseek(stream.fileno(), 0, os.SEEK_CUR)
    except UnsupportedOperation:
        return stream.seek(0, os.SEEK_CUR)


def _identity(source: SourceFile | ObjectFile) -> bytes:
    if isinstance(source, ObjectFile):
        return repr((source.version, source.size)).encode()
    found = source.identity
    return repr((found.device, found.inode, found.size, found.mtime_ns, found.ctime_ns)).encode()
