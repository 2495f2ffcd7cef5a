"""UnitReader: the texts of a unit of files, in batches, and what is wrong with it."""

from __future__ import annotations

import os

from blake3 import blake3

from rdc.documents.read.json_lines import JsonLines
from rdc.documents.read.parquet_rows import read_parquet
from rdc.documents.read.range_outcome import RangeOutcome
from rdc.documents.read.row_problems import RowProblems
from rdc.documents.read.text_batch import TextBatch
from rdc.errors import ExitCode, FileChangedError, RdcError, printable
from rdc.limits.documents import BATCH_BYTES, BATCH_DOCUMENTS, DOCUMENT_BYTES
from rdc.progress import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from rdc.documents.read.file_units import FileUnit
    from rdc.files.root.source_file import SourceFile
    from rdc.model.entries import Identity
    from rdc.survey.walk.file_columns import FileColumns

__all__ = ["UnitReader"]


class UnitReader:
    """Reads one unit. `problems` and `left_out` are complete when `batches` has ended."""

    def __init__(self, files: FileColumns, unit: FileUnit, field: str) -> None:
        self._files = files
        self._unit = unit
        self._field = field
        self.problems: list[Problem] = []
        self.left_out = 0
        self.done = 0
        """Bytes of files read so far."""
        self.outcome: RangeOutcome | None = None
        """Of a range, in place of `problems` and `left_out`."""

    def key(self, method: bytes) -> str:
        """A name for what is read from the files as they are now, under `method`. Raises RdcError for a file
        that cannot be opened."""
        digest = blake3(method + b"\0" + self._field.encode("utf-8", "surrogateescape"))
        for row, path in zip(self._unit.rows, self._unit.paths, strict=True):
            with self._files.open(row) as source:
                digest.update(b"\0" + path + b"\0" + _text(source.identity))
        return digest.hexdigest()[:32]

    def batches(self) -> Iterator[TextBatch]:
        """Yields the texts. A file that cannot be read or changes meanwhile is a problem."""
        if not self._unit.has_rows:
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

    def _check_size(self, source: SourceFile) -> None:
        """Ranges divide the file as it was listed."""
        listed = self._unit.range
        if listed is not None and source.size != listed.size:
            path = self._unit.paths[0]
            raise FileChangedError(
                path,
                f"{printable(path)}: expected {listed.size} bytes as listed, found {source.size}; search"
                " again when nobody writes it",
            )

    def _rows(self, source: SourceFile, problems: RowProblems, lines: JsonLines) -> Iterator[TextBatch]:
        source.rest()
        unit = self._unit
        before = 0 if unit.range is None else unit.range.start
        with os.fdopen(os.dup(source.fileno()), "rb") as stream:
            if unit.is_parquet:
                found = read_parquet(unit.paths[0], stream, self._field, problems, unit.range)
            else:
                found = lines.batches(stream)
            for batch in found:
                at = os.lseek(stream.fileno(), 0, os.SEEK_CUR) - before
                self.done = max(self.done, min(at, unit.bytes))
                yield batch

    def _plain(self) -> Iterator[TextBatch]:
        paths: list[bytes] = []
        texts: list[bytes] = []
        size = 0
        for row, path in zip(self._unit.rows, self._unit.paths, strict=True):
            self.done += self._files.sizes[row]
            text = self._whole(row, path)
            if text is None:
                self.left_out += 1
                continue
            paths.append(path)
            texts.append(text)
            size += len(text)
            if size >= BATCH_BYTES or len(paths) == BATCH_DOCUMENTS:
                yield TextBatch.of_files(paths, texts)
                paths, texts, size = [], [], 0
        if paths:
            yield TextBatch.of_files(paths, texts)

    def _whole(self, row: int, path: bytes) -> bytes | None:
        """The text of a plain file, or None with a problem."""
        problems = RowProblems(path)
        try:
            with self._files.open(row) as source:
                if source.size > DOCUMENT_BYTES:
                    problems.note(f"{source.size:,} bytes of text, {DOCUMENT_BYTES:,} are the most")
                else:
                    text = source.whole()
                    source.check_unchanged()
                    str(text, "utf-8")
                    return text
        except UnicodeDecodeError as error:
            problems.note(
                f"expected UTF-8, found byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
            )
        except RdcError as error:
            self.problems.append(Problem(error.code, path, str(error)))
        self.problems += problems.problems()
        return None


def _text(identity: Identity) -> bytes:
    return repr(
        (identity.device, identity.inode, identity.size, identity.mtime_ns, identity.ctime_ns)
    ).encode()
